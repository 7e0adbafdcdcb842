"""Captions of images, several an image, in the two forms in which those of Flickr30k are passed on.

* ``train.1.en`` to ``train.5.en``: parallel files, line n is about image n (Multi30k, task 2);
* ``train_caps.txt``: one caption a line, five neighbouring lines an image (``f30k_precomp`` of VSE++).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.data.readers.lines import numbered_lines

EACH = 5


def read_captions(folder: Path, split: str) -> Iterator[tuple[str, ...]]:
    """Yield the five captions of each image of a split, without surrounding white space.

    Raises:
        SembenchError: the folder has no file of the split, or the split in two forms; a caption is missing or a line is
            not UTF-8.
    """
    parallel = [found for place in range(1, EACH + 1) if (found := _found(folder, f"{split}.{place}.en"))]
    grouped = _found(folder, f"{split}_caps.txt")
    if bool(parallel) == bool(grouped):
        raise SembenchError(
            f"{folder} has {'two forms' if grouped else 'no file'} of the split '{split}'; correct 'splits', or fetch "
            "the set again"
        )
    if not grouped and len(parallel) != EACH:
        raise SembenchError(f"{folder} has {len(parallel)} of the {EACH} files {split}.1.en, ...; fetch the set again")
    return _grouped(grouped) if grouped else _parallel(parallel)


def _found(folder: Path, name: str) -> Path | None:
    return next(iter(sorted(folder.rglob(name))), None)


def _captions(path: Path) -> list[str]:
    found = []
    for number, line in numbered_lines(path):
        if not line.strip():
            raise SembenchError(f"{path}, line {number} has no caption; fetch the file again")
        found.append(line.strip())
    return found


def _grouped(path: Path) -> Iterator[tuple[str, ...]]:
    captions = _captions(path)
    if len(captions) % EACH:
        raise SembenchError(f"{path} has {len(captions)} lines, no multiple of {EACH}: it is cut; fetch it again")
    return zip(*[iter(captions)] * EACH, strict=True)


def _parallel(paths: list[Path]) -> Iterator[tuple[str, ...]]:
    columns = [_captions(path) for path in paths]
    if len({len(column) for column in columns}) != 1:
        sizes = ", ".join(f"{path.name} {len(column)}" for path, column in zip(paths, columns, strict=True))
        raise SembenchError(
            f"{paths[0].parent}: parallel files have different numbers of lines ({sizes}); fetch the set again"
        )
    return zip(*columns, strict=True)
