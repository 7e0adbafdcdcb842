"""Frames of examples, text of one sentence a line, and samples. All texts are invented."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sembench.core.errors import SembenchError
from sembench.core.frames import read_frame, write_parquet, write_table
from sembench.core.plugin import MAKERS
from sembench.data.frames import read_examples, sample
from sembench.data.maker import only_file
from sembench.data.readers.lines import iter_lines


def test_lines_are_stripped_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeff First title \r\n\r\n   \nA line\u2028with a separator.\nlower | case\n\tÉnd".encode())
    assert list(iter_lines(path)) == ["First title", "A line\u2028with a separator.", "lower | case", "Énd"]


def test_invalid_utf8_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"good\n\nbad \xff here\n")
    with pytest.raises(SembenchError, match=r"lines\.txt, line 3 is not UTF-8 \(byte 0xff"):
        list(iter_lines(path))


def test_missing_lines(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match="does not exist"):
        list(iter_lines(tmp_path / "none.txt"))


def test_sample_follows_numpy_and_keeps_order() -> None:
    items = [f"s{i}" for i in range(1000)]
    indices = np.sort(np.random.Generator(np.random.PCG64(7)).choice(1000, 50, replace=False))
    assert sample(items, 50, 7) == [items[i] for i in indices]
    assert sample(items, 50, 7) != sample(items, 50, 8)
    assert len(set(sample(items, 50, 8))) == 50


def test_sample_of_everything() -> None:
    assert sample("abc", None, 0) == ["a", "b", "c"]
    assert sample("abc", 3, 0) == ["a", "b", "c"]


def test_sample_is_uniform() -> None:
    counts = Counter(item for seed in range(4000) for item in sample(range(10), 3, seed))
    # Each item is expected 1200 times with a standard deviation of sqrt(4000 * 0.3 * 0.7) = 29.
    assert all(abs(counts[item] - 1200) < 5 * 29 for item in range(10))


@pytest.mark.parametrize(("k", "message"), [(4, "sample of 4 .* only 3"), (0, "sample of 0"), (-1, "sample of -1")])
def test_impossible_sample(k: int, message: str) -> None:
    with pytest.raises(SembenchError, match=message):
        sample("abc", k, 0)


# ---------------------------------------------------------------------------------------------------------------------
# Frames
# ---------------------------------------------------------------------------------------------------------------------


def test_frames_come_back_as_they_were_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y,z"], "n": [1, 2]})
    write_parquet(frame, tmp_path / "new" / "f.parquet")
    write_table(frame, tmp_path / "f.csv")
    write_table(frame, tmp_path / "f.tsv")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "new" / "f.parquet", ["a"]), frame, check_dtype=False)
    pd.testing.assert_frame_equal(read_frame(tmp_path / "f.csv", ["n"]), frame, check_dtype=False)
    assert (tmp_path / "f.tsv").read_text() == "a\tn\nx\t1\ny,z\t2\n"


def test_broken_frames_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    with pytest.raises(SembenchError, match=r"f\.parquet cannot be read \(FileNotFoundError\)"):
        read_frame(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(SembenchError, match=r"f\.parquet cannot be read"):
        read_examples(path, ["sentence"])
    pd.DataFrame({"other": ["x"]}).to_parquet(path)
    with pytest.raises(SembenchError, match=r"f\.parquet lacks the column 'sentence'; delete it"):
        read_examples(path, ["sentence"])
    pd.DataFrame({"sentence": []}).to_parquet(path)
    with pytest.raises(SembenchError, match=r"f\.parquet has no row"):
        read_examples(path, ["sentence"])
    pd.DataFrame({"sentence": ["x", None]}).to_parquet(path)
    with pytest.raises(SembenchError, match=r"f\.parquet, row 2: 'sentence' is empty"):
        read_examples(path, ["sentence"])


def test_a_folder_must_hold_one_file_of_a_sort(tmp_path: Path) -> None:
    with pytest.raises(SembenchError, match=r"one file ending in \.txt, but holds none"):
        only_file(tmp_path, (".txt",))
    for name in ("a.txt", "made.json", "b.json"):
        (tmp_path / name).write_text("x")
    assert only_file(tmp_path, (".txt",)) == tmp_path / "a.txt"
    assert only_file(tmp_path, (".json",)) == tmp_path / "b.json"
    (tmp_path / "c.txt").write_text("x")
    with pytest.raises(SembenchError, match=r"but holds a\.txt, c\.txt"):
        only_file(tmp_path, (".txt",))


# ---------------------------------------------------------------------------------------------------------------------
# Maker: lines
# ---------------------------------------------------------------------------------------------------------------------


def make_lines(tmp_path: Path, content: bytes) -> dict[str, object]:
    chosen = MAKERS.parse({"kind": "lines"}, "test")
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / "text.txt").write_bytes(content)
    return chosen.plugin.make(chosen.config, {"text": tmp_path / "in"}, tmp_path / "out", tmp_path, lambda line: None)


def test_lines_keep_duplicates(tmp_path: Path) -> None:
    facts = make_lines(tmp_path, b"Title\r\n\nSame line\nSame line\n")
    frame = read_examples(tmp_path / "out" / "sentences.parquet", ["sentence"])
    assert frame["sentence"].tolist() == ["Title", "Same line", "Same line"]
    assert facts == {"rows": 3, "words": 5, "unique": 2}


@pytest.mark.parametrize("content", [b"good\n\xff\n", b"\n \n"], ids=["broken", "empty"])
def test_failed_lines_leave_the_old_file_alone(tmp_path: Path, content: bytes) -> None:
    make_lines(tmp_path, b"old\n")
    before = (tmp_path / "out" / "sentences.parquet").read_bytes()
    with pytest.raises(SembenchError):
        make_lines(tmp_path, content)
    assert (tmp_path / "out" / "sentences.parquet").read_bytes() == before
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["sentences.parquet"]
