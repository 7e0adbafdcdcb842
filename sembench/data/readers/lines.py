"""Lines of text files, and text of one sentence a line such as the Wikipedia sample of SimCSE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sembench.core.errors import SembenchError


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without surrounding white space, skipping blank ones.

    Nothing else is filtered: the SimCSE file also holds page titles and headings, and the paper trains on them.

    Args:
        path: text file, one sentence per line; a byte order mark and CRLF line ends are accepted.

    Yields:
        One stripped line after the other, in constant memory.

    Raises:
        SembenchError: the file is missing, or a line is not UTF-8.
    """
    for _, text in numbered_lines(path):
        if line := text.strip():
            yield line


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number (from 1) and text of each line of a UTF-8 file, line end included, in constant memory.

    Only line feeds end a line: sentences may hold other Unicode separators, and lone carriage returns.

    Raises:
        SembenchError: the file is missing, or a line is not UTF-8.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; fetch it first, or correct the path")
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            # A byte order mark can only be before the first line; anywhere else it is a character of the text.
            codec = "utf-8-sig" if number == 1 else "utf-8"
            try:
                text = raw.decode(codec)
            except UnicodeDecodeError as error:
                problem = f"byte {error.object[error.start]:#04x}, {error.reason}"
                raise SembenchError(
                    f"{path}, line {number} is not UTF-8 ({problem}); convert the file to UTF-8 or fetch it again"
                ) from None
            yield number, text
