"""Natural language inference: pairs of a premise and a hypothesis, judged entailment, neutral or contradiction.

Forms in which such data are published, recognised by the names of the files:

* ``snli_1.0_train.jsonl``, ``multinli_1.0_train.jsonl``, ``xnli.dev.en.jsonl``: an object a line;
* ``snli_1.0_train.txt``, ``multinli_1.0_train.txt``: cells separated by TABs under a header, no quoting;
* ``s1.train``, ``s2.train``, ``labels.train``: three parallel files, as SentEval keeps SNLI;
* ``ANLI_analysis_r1_dev.csv``: comma-separated cells under a header.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sembench.core.artifact import RECORD
from sembench.core.errors import SembenchError
from sembench.data.readers.lines import numbered_lines

Label = Literal["entailment", "neutral", "contradiction"]
LABELS: tuple[Label, ...] = ("entailment", "neutral", "contradiction")
# A pair on which the annotators did not agree has no gold label.
NO_LABEL = "-"
_SPELLED: Mapping[str, Label] = {name: name for name in LABELS} | {name[0]: name for name in LABELS}
# What the data sets call the three cells.
_PREMISE = ("sentence1", "premise", "context")
_HYPOTHESIS = ("sentence2", "hypothesis", "statement")
_LABEL = ("gold_label", "label")


class Judged(NamedTuple):
    """A pair with its gold label; texts are without surrounding white space."""

    premise: str
    hypothesis: str
    label: Label


@dataclass(frozen=True)
class Inference:
    """Judged pairs in the order of the files.

    Attributes:
        pairs: those with a gold label and two sentences.
        unlabelled: number of pairs left out because they have no gold label.
        blank: number of pairs left out because the premise or the hypothesis has no text.
    """

    pairs: list[Judged]
    unlabelled: int
    blank: int

    @property
    def facts(self) -> dict[str, int]:
        """Pairs of each label, and those left out."""
        counts = Counter(pair.label for pair in self.pairs)
        return {**{label: counts[label] for label in LABELS}, "unlabelled": self.unlabelled, "blank": self.blank}


class _Row(NamedTuple):
    where: str
    premise: str
    hypothesis: str
    label: str


def read_inference(folders: Iterable[Path], splits: Sequence[str]) -> Inference:
    """Read splits of some data sets, set after set, in each the splits as they are listed.

    Args:
        folders: each holds one data set.
        splits: ``train``, ``dev`` or ``test``; ``dev`` also means both development files of MultiNLI.

    Raises:
        SembenchError: a folder has no file of a split, or one in two forms; a line is not UTF-8, is cut, lacks a cell
            or has an unknown label.
    """
    rows = (row for folder in folders for split in splits for row in _split_rows(folder, split))
    return _collect(rows)


def _collect(rows: Iterable[_Row]) -> Inference:
    pairs: list[Judged] = []
    texts: dict[str, str] = {}  # a premise occurs in three pairs or more; one string serves them all
    unlabelled = blank = 0
    for row in rows:
        premise, hypothesis, label = row.premise.strip(), row.hypothesis.strip(), row.label.strip()
        if label == NO_LABEL:
            unlabelled += 1
        elif label not in _SPELLED:
            raise SembenchError(
                f"{row.where}: the label '{label[:40]}' is none of {', '.join(LABELS)} or '{NO_LABEL}'; fetch it again"
            )
        elif not premise or not hypothesis:
            blank += 1
        else:
            pairs.append(Judged(texts.setdefault(premise, premise), hypothesis, _SPELLED[label]))
    return Inference(pairs, unlabelled, blank)


# ------------------------------------------------------------------------------------------------------- files


def _split_rows(folder: Path, split: str) -> Iterator[_Row]:
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RECORD and split in re.split(r"[._-]", path.name)
    ]
    forms = {form for path in files if (form := _form(path))}
    if len(forms) != 1:
        found = "no file" if not forms else f"files in {len(forms)} forms ({', '.join(sorted(forms))})"
        raise SembenchError(f"{folder} has {found} of the split '{split}'; correct 'splits', or fetch the set again")
    form = forms.pop()
    if form == "parallel":
        yield from _parallel(folder, split)
        return
    for path in files:
        if _form(path) == form:
            yield from _READERS[form](path)


def _form(path: Path) -> str:
    if path.name.startswith(("s1.", "s2.", "labels.")):
        return "parallel"
    return path.suffix[1:] if path.suffix[1:] in _READERS else ""


def _text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield place and text of each line."""
    for number, line in numbered_lines(path):
        yield f"{path}, line {number}", line.rstrip("\r\n")


def _jsonl(path: Path) -> Iterator[_Row]:
    for where, line in _text_lines(path):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise SembenchError(f"{where} is not a JSON object, so the file is cut or damaged; fetch it again")
        # XNLI's own files hold fifteen languages.
        if content.get("language", "en") == "en":
            yield _named(where, content)


def _named(where: str, content: Mapping[str, Any]) -> _Row:
    cells: list[str] = []
    for names in _CELLS:
        cell = next((content[name] for name in names if name in content), None)
        if not isinstance(cell, str):
            raise SembenchError(f"{where}: no text under '{names[0]}'; fetch the file again")
        cells.append(cell)
    return _Row(where, *cells)


_CELLS = (_PREMISE, _HYPOTHESIS, _LABEL)


def _txt(path: Path) -> Iterator[_Row]:
    lines = _text_lines(path)
    _, header = next(lines, ("", ""))
    names = header.split("\t")
    places = _places(path, names)
    for where, line in lines:
        cells = line.split("\t")
        # Behind the named cells are labels of single annotators, of which a line may have fewer.
        if len(cells) <= max(places):
            raise SembenchError(f"{where}: {len(cells)} cells separated by TABs, {max(places) + 1} are needed")
        yield _Row(where, *(cells[place] for place in places))


def _csv(path: Path) -> Iterator[_Row]:
    reader = csv.reader(line for _, line in numbered_lines(path))
    try:
        names = next(reader, [])
        places = _places(path, names)
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            if len(cells) != len(names):
                raise SembenchError(f"{where}: {len(cells)} cells where the header has {len(names)}")
            yield _Row(where, *(cells[place] for place in places))
    except csv.Error as error:
        raise SembenchError(f"{path}, line {reader.line_num} cannot be read ({error}); fetch it again") from None


def _places(path: Path, names: Sequence[str]) -> list[int]:
    places = [next((names.index(name) for name in wanted if name in names), -1) for wanted in _CELLS]
    if -1 in places:
        raise SembenchError(f"{path}, line 1: the header has no column '{_CELLS[places.index(-1)][0]}'")
    return places


def _parallel(folder: Path, split: str) -> Iterator[_Row]:
    paths = [next(iter(sorted(folder.rglob(f"{name}.{split}"))), folder / f"{name}.{split}") for name in _PARALLEL]
    for path in paths:
        if not path.is_file():
            raise SembenchError(f"{path} is missing; fetch the set again")
    columns = [list(_text_lines(path)) for path in paths]
    if len({len(column) for column in columns}) != 1:
        sizes = ", ".join(f"{path.name} {len(column)}" for path, column in zip(paths, columns, strict=True))
        raise SembenchError(f"{folder}: parallel files have different numbers of lines ({sizes}); fetch the set again")
    for first, second, label in zip(*columns, strict=True):
        # The label can be wrong by itself, a sentence cannot.
        yield _Row(label[0], first[1], second[1], label[1])


_PARALLEL = ("s1", "s2", "labels")
_READERS: Mapping[str, Callable[[Path], Iterator[_Row]]] = {"jsonl": _jsonl, "txt": _txt, "csv": _csv}
