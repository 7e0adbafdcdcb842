"""Damaged files of every sort that is read here: what comes of one is a value, or an error of one sentence.

Real copies are damaged by chance, with fixed seeds: flipped bits, cut ends, moved lines, other encodings, control
characters, deep nesting, huge numbers. A failure names sort and number of the try, from which it can be had again.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

import sembench.plan.config as values
from sembench.analogy.bats import read_bats, read_corrections
from sembench.analogy.dictionary import Gcide, read_sentence_pairs, wordnet_letters
from sembench.analogy.inventory.babelnet import BabelNetInventory
from sembench.analogy.inventory.babelnet_answers import edges_params, ids_params, synset_params
from sembench.analogy.inventory.cache import AnswerCache
from sembench.analogy.inventory.dump import DumpInventory, export_dump
from sembench.analogy.inventory.wordnet import WordNetInventory
from sembench.analogy.rules import load_rules
from sembench.core.artifact import Artifact, opened, read_record, seal
from sembench.core.errors import sentence_of
from sembench.core.frames import write_parquet
from sembench.core.plugin import CONVERTERS
from sembench.core.progress import StepProgress
from sembench.data.frames import read_examples
from sembench.data.readers.labelled import read_labelled
from sembench.data.readers.lines import iter_lines
from sembench.data.readers.nli import read_inference
from sembench.data.readers.nli_csv import read_triplets
from sembench.data.readers.pairs import read_pairs
from sembench.data.wikitext.clean import clean
from sembench.data.wikitext.dump import iter_pages
from sembench.data.wikitext.sentences import iter_sentences
from sembench.plan.code import LOCKS, read_locks
from sembench.registry import check, load, load_registry
from sembench.results.store import read_predictions, read_scores
from sembench.sources.verify import Locks
from sembench.training.checkpoint import Checkpoint, State, Weighted
from tests.conftest import DATA, ROOT, copy_project
from tests.unit import fake_babelnet as fake
from tests.unit import test_results as results
from tests.unit.test_readers import HEADER, MRPC, dataset

FIXTURES = ROOT / "tests/fixtures"
Read = Callable[[], object]

# ------------------------------------------------------------------------------------------------- kinds of damage

_NUMBERS = (b"9" * 5000, b"1e999", b"nan", b"-1", b".inf", b"1_000", b"0x10", b"2020-13-45", b"1" + b"0" * 400)
_CONTROLS = (0, 1, 7, 11, 13, 27, 127, 0x85, 0xA0, 0xC3, 0xFF)
_SIGNS = (
    b"\t",
    b'"',
    b"'",
    b": ",
    b"#",
    b"&a ",
    b"*a ",
    b"!!int ",
    b"\\",
    b"\\ud800",
    b"|",
    b"%",
    b",",
    b"<",
    b"{",
    b"}",
)
_NESTED = (b"[", b"{", b'{"a":', b"{a: ", b"- ", b"<a>", b"{{", b"[[")


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 1, 3, 10])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data))
    data[:] = data[place:] if rng.random() < 0.2 else data[:place]


def _move_lines(data: bytearray, rng: random.Random) -> None:
    lines = data.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    data[:] = b"\n".join(lines)


def _encode(data: bytearray, rng: random.Random) -> None:
    text = data.decode("utf-8", errors="replace")
    data[:] = text.encode(rng.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037"]), errors="replace")


def _end_lines(data: bytearray, rng: random.Random) -> None:
    data[:] = data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"", b"\x0b"]))


def _insert(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data))
    data[place:place] = rng.choice([*(bytes([each]) for each in _CONTROLS), *_SIGNS])


def _nest(data: bytearray, rng: random.Random) -> None:
    place = rng.choice([0, rng.randrange(len(data))])
    data[place:place] = rng.choice(_NESTED) * rng.choice([5, 3000, 20_000])


def _change_number(data: bytearray, rng: random.Random) -> None:
    if found := list(re.finditer(rb"\d+(?:\.\d+)?", data)):
        start, end = rng.choice(found).span()
        data[start:end] = rng.choice(_NUMBERS)


def _replace(data: bytearray, rng: random.Random) -> None:
    data[:] = rng.choice(
        [b"", b"\n", b"null", b"[]", b"{}", b"0", b'"x"', b"[[]]", b'{"a": null}', b"a: 2020-02-30", b"\0" * 99]
    )


DAMAGES = (_flip, _flip, _cut, _move_lines, _encode, _end_lines, _insert, _insert, _nest, _change_number, _replace)


def _damaged(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    damage = rng.choice(DAMAGES)
    changed = bytearray(data or b" ")
    damage(changed, rng)
    return damage.__name__, bytes(changed)


# ---------------------------------------------------------------------------------------------------- sorts of files


def _copied(folder: Path, *names: str) -> None:
    for name in names:
        shutil.copy(FIXTURES / name, folder)


def _sts(folder: Path) -> Read:
    _copied(folder, "sts16/STS.input.kitchen.txt", "sts16/STS.gs.kitchen.txt")
    given = dataset("sts", "STS.input.kitchen.txt", "STS.gs.kitchen.txt")
    return lambda: read_pairs(given, folder, "kitchen")


def _stsb(folder: Path) -> Read:
    _copied(folder, "stsb/sts-dev.csv")
    return lambda: read_pairs(dataset("stsb", "sts-dev.csv"), folder, "dev")


def _sick(folder: Path) -> Read:
    _copied(folder, "sick/SICK_test_annotated.txt")
    return lambda: read_pairs(dataset("sick", "SICK_test_annotated.txt", header=True), folder, "test_annotated")


def _trec(folder: Path) -> Read:
    _copied(folder, "trec/TREC_10.label")
    return lambda: read_labelled(dataset("trec", "TREC_10.label"), folder, "test").senteval_order()


def _subj(folder: Path) -> Read:
    _copied(folder, "subj/subj.objective", "subj/subj.subjective")
    return lambda: read_labelled(dataset("subj", "subj.objective", "subj.subjective"), folder, "all")


def _mpqa(folder: Path) -> Read:
    _copied(folder, "mpqa/mpqa.pos", "mpqa/mpqa.neg")
    return lambda: read_labelled(dataset("mpqa", "mpqa.pos", "mpqa.neg"), folder, "all").senteval_order()


def _sst(folder: Path) -> Read:
    _copied(folder, "sst2/sentiment-dev")
    return lambda: read_labelled(dataset("sst", "sentiment-dev"), folder, "dev")


def _mrpc(folder: Path) -> Read:
    rows = "".join(f"{i % 2}\t{i}\t{i}\tHe says {i}.\tShe says “{i}”.\r\n" for i in range(9))
    (folder / "msr_paraphrase_test.txt").write_bytes((HEADER + rows).encode())
    return lambda: read_labelled(MRPC, folder, "test")


def _nli_txt(folder: Path) -> Read:
    _copied(folder, "nli/invented_1.0_train.txt")
    return lambda: read_inference([folder], ["train"])


def _nli_rows() -> list[dict[str, str]]:
    labels = ("entailment", "neutral", "contradiction", "-")
    return [{"sentence1": f"A {i}.", "sentence2": f"B “{i}”.", "gold_label": labels[i % 4]} for i in range(12)]


def _nli_jsonl(folder: Path) -> Read:
    (folder / "snli_1.0_train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _nli_rows()))
    return lambda: read_inference([folder], ["train"])


def _nli_csv(folder: Path) -> Read:
    pd.DataFrame(_nli_rows()).to_csv(folder / "ANLI_analysis_r1_train.csv", index=False)
    return lambda: read_inference([folder], ["train"])


def _nli_parallel(folder: Path) -> Read:
    for name, column in (("s1", "sentence1"), ("s2", "sentence2"), ("labels", "gold_label")):
        (folder / f"{name}.train").write_text("".join(f"{row[column]}\n" for row in _nli_rows()))
    return lambda: read_inference([folder], ["train"])


def _triplets(folder: Path) -> Read:
    _copied(folder, "nli/nli_for_simcse.csv")
    return lambda: list(read_triplets(folder / "nli_for_simcse.csv"))


def _lines(folder: Path) -> Read:
    _copied(folder, "words/words.txt")
    return lambda: list(iter_lines(folder / "words.txt"))


def _wikipedia(folder: Path) -> Read:
    text = (FIXTURES / "wiki/dump.xml").read_bytes()[:9000]
    text = text[: text.rindex(b"</page>")] + b"</page></mediawiki>"
    for name, pack in (("a.xml", bytes), ("b.xml", bytes), ("c.gz", gzip.compress), ("d.bz2", bz2.compress)):
        (folder / name).write_bytes(pack(text))
    (folder / "e.xz").write_bytes(lzma.compress(text))
    paths = sorted(folder.iterdir())
    return lambda: [list(iter_sentences(clean(page.text))) for path in paths for page in iter_pages(path)]


def _bats(folder: Path) -> Read:
    _copied(folder, "analogy/mini_bats/3_Encyclopedic_semantics/E07 [animal - sound].txt")
    return lambda: read_bats(folder, ["E07"])


def _corrections(folder: Path) -> Read:
    shutil.copy(ROOT / "registry/corrections.tsv", folder)
    return lambda: read_corrections(folder / "corrections.tsv")


def _written_pairs(folder: Path) -> Read:
    shutil.copy(ROOT / "registry/dsbats_open.tsv", folder)
    return lambda: read_sentence_pairs(folder / "dsbats_open.tsv", "own")


def _rules(folder: Path) -> Read:
    shutil.copy(ROOT / "registry/relations.yaml", folder)
    return lambda: load_rules(folder / "relations.yaml")


def _gcide(folder: Path) -> Read:
    entries = json.loads((FIXTURES / "analogy/gcide/words_C.json").read_text())
    (folder / "words_C.json").write_text(json.dumps(entries))
    return lambda: [Gcide(folder).sentences(word, pos) for word in [*entries][:4] for pos in ("NOUN", "VERB")]


def _wordnet(folder: Path) -> Read:
    shutil.copytree(FIXTURES / "analogy/wordnet", folder, dirs_exist_ok=True)

    def read() -> object:
        inventory = WordNetInventory(folder)
        senses = [each for word in ("cow", "calf", "cat", "lion") for each in inventory.synsets(word, ("NOUN", "VERB"))]
        return [inventory.related(a, b, "ancestor") for a in senses for b in senses], wordnet_letters(folder)

    return read


def _answers(folder: Path) -> AnswerCache:
    cache = AnswerCache(folder)
    cache.put("getVersion", {}, 200, {"version": "V5_3"})
    cache.put("getSynsetIds", ids_params("florn", "NOUN"), 200, [{"id": fake.FLORN}])
    cache.put("getSynset", synset_params(fake.FLORN), 200, fake.SYNSETS[fake.FLORN])
    cache.put("getOutgoingEdges", edges_params(fake.FLORN), 200, fake.EDGES[fake.FLORN])
    return cache


def _senses(inventory: BabelNetInventory | DumpInventory) -> object:
    found = inventory.synsets("florn", ["NOUN"])
    return [inventory.related(a, b, edge) for a in found for b in found for edge in ("ancestor", "antonym")]


def _babelnet(folder: Path) -> Read:
    cache = _answers(folder)
    return lambda: _senses(BabelNetInventory(cache))


def _babelnet_dump(folder: Path) -> Read:
    cache = _answers(folder / "cache")
    export_dump(cache, folder / "dump.jsonl")
    export_dump(cache, folder / "dump.jsonl.gz")
    shutil.rmtree(folder / "cache")
    paths = sorted(folder.iterdir())
    return lambda: [_senses(DumpInventory(path)) for path in paths]


def _glove(folder: Path) -> Read:
    lines = [" ".join([word, *map(str, np.arange(5) / 8)]) for word in ("the", "lake", "is", "über", "deep")]
    (folder / "glove.5d.txt").write_text("\n".join([*lines, ""]))
    chosen = CONVERTERS.parse({"kind": "glove_text", "lowercase": False}, "here")
    return lambda: chosen.plugin.convert(chosen.config, folder, folder.with_name("vectors"))


def _config(folder: Path) -> Read:
    shutil.copy(ROOT / "config.yaml", folder)
    settings = load_registry(ROOT).settings

    def read() -> object:
        config = load.read_yaml(folder / "config.yaml")
        values.check_keys(config, settings)
        paths = [values.home(config.get(key), key) for key in settings]
        chosen = values.seeds(config.get("seeds")), values.papers(config.get("papers"))
        return paths, chosen, values.flag(config.get("partial"), "partial"), values.mirror_folder(config.get("mirror"))

    return read


def _job_config(folder: Path) -> Read:
    (folder / "config.json").write_text(json.dumps({"scale": "demo", "seeds": [42], "papers": None, "partial": False}))
    return lambda: values.from_json((folder / "config.json").read_text(encoding="utf-8", errors="surrogateescape"))


def _record(folder: Path) -> Read:
    one = Artifact("made", "one", {"a": 1}, (), Path("one"), ("data.txt",))
    two = Artifact("made", "two", {}, (one,), Path("two"), ("data.txt",))
    for each in (one, two):
        (folder / each.folder).mkdir()
        (folder / each.folder / "data.txt").write_text(each.name)
        seal(folder, each)
    return lambda: (opened(folder, two), read_record(folder, one))


def _locks(folder: Path) -> Read:
    locks = Locks(folder / "locks.json")
    locks.claim("set/file", "a test", sha256="ab" * 32)
    (folder / "locks.lock").unlink(missing_ok=True)
    return lambda: locks.value("set/file")


def _code_locks(folder: Path) -> Read:
    (folder / LOCKS).parent.mkdir()
    shutil.copy(ROOT / LOCKS, folder / LOCKS)
    return lambda: read_locks(folder)


def _scores(folder: Path) -> Read:
    one = results.artifact()
    results.write(folder, one)
    return lambda: (read_scores(folder, [one]), read_predictions(folder, one))


def _sealed_scores(folder: Path) -> Read:
    """As if somebody had sealed the damage: now the reader of the tables must find it."""
    one = results.artifact()
    results.write(folder, one)
    (folder / one.record).unlink()

    def read() -> object:
        seal(folder, one)
        try:
            return read_scores(folder, [one]), read_predictions(folder, one)
        finally:
            (folder / one.record).unlink()

    return read


def _examples(folder: Path) -> Read:
    path = folder / "sentences.parquet"
    write_parquet(pd.DataFrame({"sentence": [f"It is {i}." for i in range(40)]}), path)
    return lambda: read_examples(path, ["sentence"])


def _checkpoint(folder: Path) -> Read:
    def parts() -> tuple[Any, ...]:
        model = Weighted(encoder=torch.nn.Linear(3, 2))
        model.keep_best()
        optimiser = torch.optim.AdamW(model.parameters())
        return model, optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)

    model, *others = parts()
    model["encoder"](torch.ones(3)).sum().backward()
    others[0].step()
    checkpoint = Checkpoint(folder, "run", every=0.0, content="c")
    checkpoint.visit(State(step=1, losses=[0.5]), model, "fp32", StepProgress("run", 2), *others)

    def read() -> object:
        with torch.random.fork_rng(devices=[]):
            fresh, *its = parts()
            return Checkpoint(folder, "run", content="c").restore(fresh, "fp32", *its)

    return read


SORTS: dict[str, Callable[[Path], Read]] = {
    function.__name__.strip("_"): function
    for function in (
        *(
            _sts,
            _stsb,
            _sick,
            _trec,
            _subj,
            _mpqa,
            _sst,
            _mrpc,
            _nli_txt,
            _nli_jsonl,
            _nli_csv,
            _nli_parallel,
            _triplets,
            _lines,
        ),
        *(_wikipedia, _bats, _corrections, _written_pairs, _rules, _gcide, _wordnet, _babelnet, _babelnet_dump, _glove),
        *(_config, _job_config, _record, _locks, _code_locks, _scores, _sealed_scores, _examples, _checkpoint),
    )
}
TRIES = 16


def _check(read: Read, what: str) -> bool:
    """Read, and return whether an error was told; anything but a sentence fails."""
    try:
        read()
    except Exception as error:
        sentence = sentence_of(error)
        if not sentence or not sentence.isprintable() or len(sentence) > 1000:
            raise AssertionError(f"{what} ended in {type(error).__name__}: {str(error)[:300]}") from error
        return True
    return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


@pytest.mark.filterwarnings("ignore:No WordNet synset found")
@pytest.mark.parametrize("sort", SORTS)
def test_damaged_files_are_values_or_sentences(tmp_path: Path, sort: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    read = SORTS[sort](folder)
    files = _files(folder)
    assert not _check(read, "the undamaged copy")
    told = 0
    for number in range(TRIES):
        rng = random.Random(f"{sort} {number}")
        path = rng.choice(files)
        before = path.read_bytes()
        damage, after = _damaged(before, rng)
        path.write_bytes(after)
        told += _check(read, f"try {number}, {damage} in {path.name},")
        path.write_bytes(before)
    assert told, "no damage was noticed at all"
    assert not _check(read, "the restored copy")


# ------------------------------------------------------------------------------------------------------ the registry


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the registry of which only what was changed is parsed again."""
    parsed: dict[tuple[Path, bytes], str] = {}
    plain = load.read_yaml

    def read_yaml(path: Path) -> Any:
        key = path, path.read_bytes()
        if key not in parsed:
            parsed[key] = json.dumps(plain(path))
        return json.loads(parsed[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "read_yaml", read_yaml)
        yield copy_project(tmp_path_factory.mktemp("registry") / "project", DATA)


def _read_whole(root: Path) -> None:
    check.check_references(load.read_registry(root))


def _registry_files(root: Path) -> list[Path]:
    found = [
        path for path in sorted((root / "registry").rglob("*.yaml")) if path.name not in ("code.yaml", "relations.yaml")
    ]
    return [*found, root / "registry/paper_values.csv"]


@pytest.mark.parametrize("number", range(24))
def test_damaged_registry_files_are_sentences(registry: Path, number: int) -> None:
    rng = random.Random(f"registry {number}")
    path = rng.choice(_registry_files(registry))
    before = path.read_bytes()
    damage, after = _damaged(before, rng)
    path.write_bytes(after)
    _check(lambda: _read_whole(registry), f"{damage} in {path.name}")
    path.write_bytes(before)


ODD_VALUES: tuple[Any, ...] = (
    *(None, [], {}, "", 0, -1, 10**400, float("nan"), float("inf"), True, "{x}", "{", "x" * 5000, "\0", "\x1b[31m"),
    *("a\nb", "../x", "/etc", ["a"], {"a": 1}, {"kind": "scores"}, [[1]], r"$\foo$", "%s", 1e308, "all", "é", "a b"),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container of a value, with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


@pytest.mark.parametrize("number", range(24))
def test_odd_values_in_the_registry_are_sentences(registry: Path, number: int) -> None:
    rng = random.Random(f"values {number}")
    path = rng.choice([path for path in _registry_files(registry) if path.suffix == ".yaml"])
    before = path.read_bytes()
    value = yaml.safe_load(before)
    container, key = rng.choice(list(_places(value)))
    container[key] = rng.choice(ODD_VALUES)
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    _check(lambda: _read_whole(registry), f"'{key}' of {path.name}")
    path.write_bytes(before)
