"""Keys, records and plug-ins: names that keep their promise."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from sembench.core.artifact import (
    Artifact,
    alone,
    check_origins,
    content_of,
    key_of,
    opened,
    opened_file,
    read_record,
    seal,
)
from sembench.core.canonical import canonical_json, digest
from sembench.core.errors import SembenchError
from sembench.core.files import stamped
from sembench.core.plugin import Chosen
from sembench.core.schema import Strict, later, merged, parse


def artifact(name: str, params=None, inputs=()) -> Artifact:
    params = params or {}
    return Artifact("made", name, params, inputs, Path(f"{name}.{key_of('made', params, inputs)}"), ("data.txt",))


def made(root: Path, each: Artifact, text: str) -> Artifact:
    (root / each.folder).mkdir(exist_ok=True)
    (root / each.folder / "data.txt").write_text(text)
    seal(root, each, {"rows": 1})
    return each


def test_canonical_json_ignores_order() -> None:
    assert canonical_json({"b": 1, "a": [1, {"d": 2, "c": 3}]}) == '{"a":[1,{"c":3,"d":2}],"b":1}'
    assert digest({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()[:8]


def test_a_key_is_that_of_kind_parameters_and_inputs() -> None:
    source = artifact("a")
    by_hand = hashlib.sha256(canonical_json(["made", {"x": 1}, [source.key]]).encode()).hexdigest()[:8]
    assert artifact("b", {"x": 1}, (source,)).key == by_hand
    assert artifact("other name", {"x": 1}, (source,)).key == by_hand
    assert len({artifact("b", {"x": x}, (i,)).key for x in (1, 2) for i in (source, artifact("a", {"y": 1}))}) == 4


def test_a_changed_default_is_another_key() -> None:
    class Now:
        """Today's."""

        version = 1

        class Config(Strict):
            temperature: float = Field(0.05, gt=0)

    class Later(Now):
        class Config(Strict):
            temperature: float = Field(0.1, gt=0)

    class Fixed(Now):
        version = 2

    keys = {digest(Chosen("k", plugin, parse(plugin.Config, {}, "here")).params) for plugin in (Now, Later, Fixed)}
    assert len(keys) == 3


def test_a_parameter_that_came_later_renames_nothing_that_was_made_before() -> None:
    class Before:
        """Made things already."""

        version = 1

        class Config(Strict):
            rate: float = 0.1

    class Grown(Before):
        class Config(Strict):
            rate: float = 0.1
            how: str = later("cosine", was="cosine")

    class Turned(Before):
        class Config(Strict):
            rate: float = 0.1
            how: str = later("dot", was="cosine")

    def key(plugin: Any, **given: Any) -> str:
        return digest(Chosen("k", plugin, parse(plugin.Config, given, "here")).params)

    assert key(Grown) == key(Grown, how="cosine") == key(Turned, how="cosine") == key(Before)
    assert key(Grown, how="dot") == key(Turned) != key(Before)
    assert Chosen("k", Grown, Grown.Config()).values == {"kind": "k", "rate": 0.1, "how": "cosine"}


def test_another_kind_replaces_the_parameters_of_the_first() -> None:
    base = {"objective": {"kind": "a", "temperature": 1}, "rate": 2}
    assert merged(base, {"objective": {"temperature": 3}})["objective"] == {"kind": "a", "temperature": 3}
    assert merged(base, {"objective": {"kind": "b"}})["objective"] == {"kind": "b"}
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 9}}) == {"a": {"b": 1, "c": 9}, "d": 3}


def test_an_artefact_as_it_was_made_is_opened(tmp_path: Path) -> None:
    source = made(tmp_path, artifact("source"), "one")
    result = made(tmp_path, artifact("result", {}, (source,)), "two")
    assert opened(tmp_path, result) == tmp_path / result.folder
    record = json.loads((tmp_path / result.record).read_text())
    assert record["files"] == {"data.txt": hashlib.sha256(b"two").hexdigest()}
    assert record["inputs"][0]["content"] == content_of(tmp_path, source)
    assert record["facts"] == {"rows": 1}
    # What it was made from may be gone: the artefact still holds what it says.
    (tmp_path / source.record).unlink()
    assert opened(tmp_path, result)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda root, a, b: (root / b.folder / "data.txt").write_text("other"),
            "data.txt was changed after it was made",
        ),
        (lambda root, a, b: (root / b.folder / "data.txt").unlink(), "data.txt is missing; delete result"),
        (lambda root, a, b: (root / b.record).unlink(), "is not made yet"),
        (lambda root, a, b: (root / b.record).write_text("{"), "made.json is damaged"),
        (lambda root, a, b: (root / b.record).write_text("[1]"), "made.json is damaged"),
        (
            lambda root, a, b: (root / b.record).write_text((root / b.record).read_text().replace(b.key, "00000000")),
            "is that of key 00000000",
        ),
        # Made anew with other content under the same key, as a file without a checksum that is fetched again.
        (lambda root, a, b: made(root, a, "one and more"), "made from other content of made 'source'"),
    ],
)
def test_what_was_changed_is_never_used_unseen(tmp_path: Path, damage, sentence: str) -> None:
    source = made(tmp_path, artifact("source"), "one")
    result = made(tmp_path, artifact("result", {}, (source,)), "two")
    damage(tmp_path, source, result)
    with pytest.raises(SembenchError) as caught:
        opened(tmp_path, result)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert read_record(tmp_path, source) is not None


def test_what_was_made_from_something_stale_is_stale_too(tmp_path: Path) -> None:
    """A score knows its run, the run its data: data fetched again with other content are seen in the score."""
    data = made(tmp_path, artifact("data"), "one")
    run = made(tmp_path, artifact("run", {}, (data,)), "two")
    score = made(tmp_path, artifact("score", {}, (run,)), "three")
    assert opened(tmp_path, score)
    made(tmp_path, data, "one and more")
    with pytest.raises(SembenchError, match=r"made 'run' was made from other content of made 'data'.*delete run\."):
        opened(tmp_path, score)


def test_how_long_a_training_took_is_no_part_of_its_content(tmp_path: Path) -> None:
    """The same recipe trained twice has the same weights and another history: its scores stay good."""
    run = replace(artifact("run"), files=("data.txt", "run.json"), notes=("run.json",))
    contents = []
    for weights, seconds in (("a", "10"), ("a", "11"), ("b", "11")):
        (tmp_path / run.folder).mkdir(exist_ok=True)
        (tmp_path / run.folder / "run.json").write_text(seconds)
        made(tmp_path, run, weights)
        contents.append(content_of(tmp_path, run))
    assert contents[0] == contents[1] != contents[2]
    (tmp_path / run.folder / "run.json").write_text("12")
    with pytest.raises(SembenchError, match=r"run\.json was changed after it was made"):
        opened(tmp_path, run)


def test_a_stamp_replaces_older_ones_of_its_name_only(tmp_path: Path) -> None:
    for name in ("table.1111", "table.2222", "table_two.3333"):
        stamped(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.2222", "table_two.3333"]


def test_an_origin_is_compared_when_what_lies_between_is_gone(tmp_path: Path) -> None:
    source = made(tmp_path, artifact("source"), "one")
    between = made(tmp_path, artifact("between", inputs=(source,)), "b")
    last = made(tmp_path, artifact("last", inputs=(between,)), "c")
    (tmp_path / between.record).unlink()
    opened(tmp_path, last)
    made(tmp_path, source, "two")
    with pytest.raises(SembenchError, match="'last' was made from other content of made 'source'"):
        opened(tmp_path, last)


def test_an_input_that_changes_while_something_is_made_of_it_is_noticed(tmp_path: Path) -> None:
    source = made(tmp_path, artifact("source"), "one")
    opened(tmp_path, source)
    made(tmp_path, source, "two two")
    with pytest.raises(SembenchError, match="anew with other content while made 'last' was made from it; run the same"):
        made(tmp_path, artifact("last", inputs=(source,)), "c")
    opened(tmp_path, source)
    made(tmp_path, artifact("last", inputs=(source,)), "c")


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {}},
        {"files": []},
        {"files": {"data.txt": 1}},
        {"files": {"other.txt": "0"}},
        {"inputs": None},
        {"inputs": [1]},
        {"inputs": [{"key": "a"}]},
        {"origins": {}},
        {"facts": []},
        {"key": 3},
    ],
)
def test_a_record_of_another_shape_is_damaged(tmp_path: Path, changes: dict[str, object]) -> None:
    one = made(tmp_path, artifact("one"), "text")
    record = json.loads((tmp_path / one.record).read_text())
    (tmp_path / one.record).write_text(json.dumps(record | changes))
    with pytest.raises(SembenchError, match=r"made\.json is damaged; delete"):
        opened(tmp_path, one)


@pytest.mark.parametrize("text", ["[]", "null", "[" * 100_000])
def test_a_record_that_is_no_mapping_is_damaged(tmp_path: Path, text: str) -> None:
    one = made(tmp_path, artifact("one"), "text")
    (tmp_path / one.record).write_text(text)
    with pytest.raises(SembenchError, match=r"made\.json is damaged; delete"):
        opened_file(tmp_path, one, "data.txt")


def test_scores_of_another_encoder_are_deleted_together(tmp_path: Path) -> None:
    run = Artifact("run", "v.s1", {}, (), Path("runs/v.s1.0"), ("data.txt",))
    score = Artifact("scores", "sts.stsb", {}, (run,), Path("scores/v.s1.0/cls"), ("data.txt",), "sts.stsb.0.json")
    for text in ("one", "other"):
        for each in (run, score):
            (tmp_path / each.folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / each.folder / "data.txt").write_text(text)
        seal(tmp_path, run)
        if text == "one":
            seal(tmp_path, score)
    with pytest.raises(SembenchError, match=r"; delete scores/v\.s1\.0 and run"):
        check_origins(tmp_path, [score])


def test_whoever_makes_an_artefact_first_removes_what_a_killed_process_left_of_it(tmp_path: Path) -> None:
    one = artifact("one")
    folder = tmp_path / one.folder
    folder.mkdir()
    for name in (".data.0123abcd.txt", ".made.x_x_x_x_.json", ".data.short.txt", ".other.0123abcd.txt"):
        (folder / name).write_text("half")
    with alone(tmp_path, one) as is_open:
        assert is_open
        made(tmp_path, one, "text")
    kept = {".data.short.txt", ".other.0123abcd.txt", "data.txt", "made.json"}
    assert {path.name for path in folder.iterdir()} == kept
