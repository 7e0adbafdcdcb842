"""Where everything lies, relative to the project's folder. Whatever is costly has its key in its path."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path("results")
DATA = RESULTS / "data"
SETS, MADE, BACKBONES = DATA / "sets", DATA / "made", DATA / "backbones"
# What jobs that share the work on a data set found of it; its folder is named as that of the set.
SHARDS, SHARD_ROWS = DATA / "shards", "rows.parquet"
# Files of a transformer's model folder. All of them are always written, so that every one can be declared:
# heads.safetensors holds no tensor where there is no head.
ENTRY = "encoder.json"
TRANSFORMER_FILES = (
    ENTRY,
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "heads.safetensors",
)
# A trained run's folder says besides how it was trained.
HISTORY = "run.json"
RUN_FILES = (*TRANSFORMER_FILES, HISTORY)


def keyed(folder: Path, name: str, key: str) -> Path:
    """Return the folder of an artefact: its name for people, its key for content."""
    return folder / f"{name}.{key}"


class ScaleLayout:
    """Paths of one scale's results."""

    def __init__(self, scale: str) -> None:
        self.base = RESULTS / scale

    @property
    def runs(self) -> Path:
        """Model folders of trained runs."""
        return self.base / "runs"

    def scores(self, run: str, readout: str) -> Path:
        """Return the folder with the scores of a run under a read-out, a few files a task."""
        return self.base / "scores" / run / readout

    def scoring(self, run: str, batch: str) -> Path:
        """Return the file that a scoring job writes when all scores of a batch are there; it is temporary."""
        return self.base / "scores" / run / f".{batch}.done"

    def fits(self, run: str) -> Path:
        """Return the folder of the transforms fitted on a run's vectors."""
        return self.base / "fits" / run

    def view(self, folder: str, key: str, suffix: str) -> Path:
        """Return a rendered table or figure; ``folder`` is ``tables`` or ``figures``."""
        return self.base / folder / f"{key}.{suffix}"

    def published(self, folder: str, name: str) -> Path:
        """Return where people find a file of a data set made here."""
        return self.base / folder / name

    @property
    def collected(self) -> Path:
        """All score records of the scale."""
        return self.base / "collected" / "scores.parquet"

    @property
    def report(self) -> Path:
        """The HTML page."""
        return self.base / "report" / "index.html"
