"""Sentences from a text file of one sentence a line, such as ``wiki1m_for_simcse.txt``.

Nothing is filtered and no duplicate is dropped: the file also holds page titles and headings, and SimCSE trains on
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet
from sembench.core.lazy import pd
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say, only_file
from sembench.data.readers.lines import iter_lines


class Lines(Maker):
    """A row for each line that is not blank, without surrounding white space, in the order of the file."""

    class Config(Strict):
        """No parameters."""

    roles = ("text",)
    files = ("sentences.parquet",)
    examples = "sentences.parquet"
    columns = ("sentence",)

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the text file of the role ``text`` and write its sentences.

        Raises:
            SembenchError: there is no such file, a line is not UTF-8, or all lines are blank.
        """
        source = only_file(inputs["text"], (".txt",))
        found = list(iter_lines(source))
        if not found:
            raise SembenchError(f"{source} holds no sentence; fetch it again")
        write_parquet(pd.DataFrame({"sentence": found}), target / cls.examples)
        facts = {"rows": len(found), "words": sum(len(line.split()) for line in found), "unique": len(set(found))}
        say(f"{facts['rows']} sentences, {facts['unique']} different")
        return facts


PLUGIN = Lines
