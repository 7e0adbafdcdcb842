"""Errors that a user can cause and put right."""

from __future__ import annotations

import difflib
import errno
import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class SembenchError(Exception):
    """A mistake outside the program: one sentence that names file, row or key and the remedy.

    It is one line whatever it quotes: characters that do not print are written as escapes.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class PassingError(SembenchError):
    """A failure of somebody else's server that another try may overcome, ``after`` so many seconds."""

    def __init__(self, text: str, after: float = 0.0) -> None:
        super().__init__(text)
        self.after = after


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest of the known names, else an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


def unknown(kind: str, word: str, known: Iterable[str], where: str = "the registry") -> SembenchError:
    """Return the error for a name that is not among the known ones, which are those of ``where``."""
    names = sorted(known)
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    hint = did_you_mean(word, names) or f"; known: {', '.join(names[:12]) or 'none'}{more}"
    return SembenchError(f"{kind} '{shortened(word)}' is not in {where}{hint}")


def shortened(value: object, most: int = 80) -> str:
    """Return a value for a sentence: whoever gave pages of text by mistake is not helped by pages of it."""
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}..."


def printable(text: str) -> str:
    """Return text without line breaks, control characters and halves of surrogate pairs: they become escapes."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Turn a user's error into one sentence on standard error and exit code 2.

    A full disk and a path that cannot be used are such errors as well, raised deep inside a library.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not (sentence := sentence_of(error)):
                raise
            print(f"error: {sentence}", file=sys.stderr)  # noqa: T201
            raise SystemExit(2) from None

    return wrapper


def sentence_of(error: Exception) -> str:
    """Return what to tell the user of an error that the user can put right; empty for any other."""
    if isinstance(error, SembenchError):
        return str(error)
    if _is_disk_full(error):
        return printable(disk_full(error))
    if isinstance(error, OSError) and error.filename and error.strerror:
        return printable(f"{error.filename}: {error.strerror.lower()}; check the path and who may use it")
    return ""


def _is_disk_full(error: BaseException | None) -> bool:
    """Libraries in other languages raise errors of their own: with the system's words, or on top of the system's."""
    if error is None:
        return False
    by_number = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    by_words = any(os.strerror(number) in str(error) for number in (errno.ENOSPC, errno.EDQUOT))
    return by_number or by_words or _is_disk_full(error.__cause__ or error.__context__)


def disk_full(error: Exception) -> str:
    """Return the sentence for a write that found no room."""
    name = getattr(error, "filename", None)
    where = f" while writing {name}" if name else ""
    return f"the disk is full{where}; free some space and run the same command again"
