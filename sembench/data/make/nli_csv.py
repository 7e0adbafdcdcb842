"""Triplets from the file that SimCSE's supervised models are trained on, ``nli_for_simcse.csv``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from sembench.core.errors import SembenchError
from sembench.core.frames import write_parquet
from sembench.core.schema import Strict
from sembench.data.maker import Maker, Say, only_file
from sembench.data.readers.nli_csv import MISSING, read_triplets
from sembench.data.triplets import COLUMNS, Triplet, anchor_facts, triplet_frame


class NliCsv(Maker):
    """A row a triplet, in the order of the file: anchor, entailed sentence, contradicting sentence."""

    class Config(Strict):
        """What becomes of cells that pandas takes for missing (``NA``, ``null``, nothing at all)."""

        missing: Literal["blank", "keep", "drop"] = Field(
            "blank", description="blank: one space, as SimCSE's code; keep: the text of the cell; drop: the whole row"
        )

    roles = ("csv",)
    files = ("triplets.parquet",)
    examples = "triplets.parquet"
    columns = COLUMNS

    @classmethod
    def make(cls, config: Config, inputs: Mapping[str, Path], target: Path, root: Path, say: Say) -> dict[str, Any]:
        """Read the csv file of the role ``csv`` and write its triplets.

        Returns:
            ``rows``, ``missing_cells``, ``dropped`` (rows), ``anchors`` (different ones), ``duplicate_anchors`` (share
            of the rows whose anchor is in an earlier row).

        Raises:
            SembenchError: the file is not of the form of ``nli_for_simcse.csv``; names file and line.
        """
        source = only_file(inputs["csv"], (".csv",))
        found = list(read_triplets(source))
        missing = sum(cell in MISSING for row in found for cell in row)
        kept = [row for row in found if config.missing != "drop" or MISSING.isdisjoint(row)]
        if not kept:
            raise SembenchError(f"{source} holds no triplet; fetch it again")
        if config.missing == "blank":
            kept = [Triplet(*(" " if cell in MISSING else cell for cell in row)) for row in kept]
        write_parquet(triplet_frame(kept), target / cls.examples)
        facts = {"rows": len(kept), "missing_cells": missing, "dropped": len(found) - len(kept), **anchor_facts(kept)}
        say(f"{facts['rows']} triplets, {facts['anchors']} different anchors, {missing} missing cells")
        return facts


PLUGIN = NliCsv
