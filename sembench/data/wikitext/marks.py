"""Private-use characters that the steps from wikitext to sentences leave for each other, and lists of words."""

from __future__ import annotations

DAMAGE = "\ue000"
"""Stands where words were lost; the sentence around it is dropped."""

GAP = "\ue001"
"""Stands where a note was removed, so that "end.<ref/>Next" does not grow together."""

FRACTION = "\ue002"
"""Stands before a fraction: it becomes a space behind a digit, as in "3 1/2", and nothing elsewhere."""

GLUE = "\ue003"
"""Stands behind a mark that does not end a sentence, such as the one of a title; splitting removes it."""

SOUND = "\ue004"
"""Stands for how a word is pronounced: nothing is lost without it, unless the sentence says that it is."""

COMMENT = "\ue005"
"""Stands where a comment was removed: one that is alone in its line takes the line along."""

BREAK = "\n\n"
"""Ends a paragraph."""


def words(text: str, separator: str | None = None) -> frozenset[str]:
    """Return the parts of a text as a set, split by white space or by ``separator``."""
    return frozenset(text.split(separator))
