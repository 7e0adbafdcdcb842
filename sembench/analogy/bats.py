"""BATS 3.0: forty relations between words, one file each (Gladkova, Drozd, Matsuoka, NAACL SRW 2016)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sembench.analogy.tsv import tsv_rows
from sembench.core.errors import SembenchError, unknown

RELATION_IDS = tuple(f"{group}{number:02d}" for group in "IDEL" for number in range(1, 11))
# The paper speaks of 20 relations "less limited by morphology"; E and L hold exactly 20, and their words have
# definitions of their own where inflected and derived forms (I, D) have none.
SEMANTIC = tuple(key for key in RELATION_IDS if key[0] in "EL")
CORRECTION_COLUMNS = ["relation", "source", "wrong", "right", "why"]


@dataclass(frozen=True)
class WordPair:
    """A source word with one of its answers; ``rank`` counts its kept answers from 1.

    Words are lower case with underscores between their parts, as BATS writes them.
    """

    relation: str
    source: str
    target: str
    rank: int


@dataclass(frozen=True)
class Correction:
    """An answer of BATS that is wrong, and what replaces it; an empty ``right`` removes it."""

    relation: str
    source: str
    wrong: str
    right: str
    why: str


@dataclass(frozen=True)
class Cell:
    """A line of a file: the source and its answers as written, and what is odd about them."""

    source: str
    answers: tuple[str, ...]

    @property
    def empty(self) -> int:
        """Answers without text (``a//b`` or a trailing slash)."""
        return self.answers.count("")

    @property
    def repeated(self) -> int:
        """Answers that the cell already has."""
        filled = [answer for answer in self.answers if answer]
        return len(filled) - len(set(filled))

    @property
    def itself(self) -> int:
        """Answers that are the source."""
        return self.answers.count(self.source)


def read_bats(
    folder: Path, relations: Iterable[str] = SEMANTIC, corrections: Sequence[Correction] = ()
) -> list[WordPair]:
    """Return the word pairs of some relations, file after file, in the order of the files.

    Empty answers, repeated answers and a source among its own answers are left out. Misspellings stay: no inventory
    finds them, and the builder counts them.

    Args:
        folder: ``BATS_3.0`` with its folder per type, or any folder that holds ``E01.txt`` or ``E01 [...].txt``.
        relations: ids ``I01`` ... ``L10``.
        corrections: see ``read_corrections``; none: the answers stay as they are.

    Raises:
        SembenchError: unknown relation, missing or empty file, or a line without a TAB or without any answer.
    """
    keys = list(relations)
    for key in keys:
        if key not in RELATION_IDS:
            raise unknown("relation", key, RELATION_IDS, "BATS 3.0 (I01-I10, D01-D10, E01-E10, L01-L10)")
    table = {(c.relation, c.source, c.wrong): c.right for c in corrections}
    return [pair for key in keys for cell in read_cells(folder, key) for pair in _pairs(key, cell, table)]


def read_cells(folder: Path, relation: str) -> list[Cell]:
    """Return the lines of one relation's file, oddities included.

    Raises:
        SembenchError: missing or empty file, or a line without a TAB or without any answer.
    """
    path = bats_file(folder, relation)
    try:
        # Universal line ends: E02 and L08 mix CRLF and LF.
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise SembenchError(f"{path} is not UTF-8 (byte {error.start}); fetch BATS again") from None
    cells = [_cell(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not cells:
        raise SembenchError(f"{path} holds no word pair; fetch BATS again or leave {relation} out of the relations")
    return cells


def bats_file(folder: Path, relation: str) -> Path:
    """Return the file of a relation, at any depth and with or without its bracketed title.

    Raises:
        SembenchError: there is none, or more than one.
    """
    name = re.compile(rf"{relation}(\W.*)?\.txt")
    found = sorted(path for path in folder.rglob(f"{relation}*.txt") if name.fullmatch(path.name))
    if not found:
        raise SembenchError(f"{folder} holds no file of relation {relation} ('{relation} [...].txt'); fetch BATS there")
    if len(found) > 1:
        raise SembenchError(f"{folder} holds {len(found)} files of relation {relation}; keep one of {found[0].name}")
    return found[0]


def _cell(path: Path, number: int, line: str) -> Cell:
    # vecto's reader also splits at white space; that would make two words of a source with a blank, so it is refused.
    source, tab, answers = line.lower().partition("\t")
    cell = Cell(source.strip(), tuple(answer.strip() for answer in answers.split("/")))
    if not tab or not cell.source or "\t" in answers:
        raise SembenchError(f"{path}, line {number}: expected 'source<TAB>answer/answer', found '{line.strip()[:60]}'")
    if not any(cell.answers):
        raise SembenchError(f"{path}, line {number}: '{cell.source}' has no answer; add one or remove the line")
    return cell


def _pairs(relation: str, cell: Cell, table: dict[tuple[str, str, str], str]) -> Iterator[WordPair]:
    answers = (table.get((relation, cell.source, answer), answer) for answer in cell.answers)
    kept = [answer for answer in dict.fromkeys(answers) if answer and answer != cell.source]
    return (WordPair(relation, cell.source, answer, rank) for rank, answer in enumerate(kept, start=1))


def read_corrections(path: Path) -> list[Correction]:
    """Return the corrections in a TSV file with the columns relation, source, wrong, right, why.

    The authors of the paper corrected BATS or used another file: their example has cat-mew, which BATS lacks.

    Raises:
        SembenchError: missing file, wrong header, unknown relation, or a line with too few or too many cells.
    """
    rows = tsv_rows(path, CORRECTION_COLUMNS)
    for number, row in rows:
        if len(row) != len(CORRECTION_COLUMNS) or not (row[1] and row[2] and row[4]):
            raise SembenchError(f"{path}, line {number}: needs relation, source, wrong, right (or nothing) and why")
        if row[0] not in RELATION_IDS:
            raise SembenchError(f"{path}, line {number}: {unknown('relation', row[0], RELATION_IDS, 'BATS 3.0')}")
    return [Correction(*row) for _, row in rows]
