"""Where everything lies below the project's folder. All paths are relative to it."""

from __future__ import annotations

from pathlib import Path

DATA = Path("results/data")
# What a trained run consists of, and what an untouched backbone consists of; both are ordinary model folders.
MODEL_FILES = ("encoder.json", "config.json", "model.safetensors", "tokenizer.json")
STATIC_FILES = ("encoder.json", "vectors.safetensors", "vocab.txt")
PACKAGE_FILES = ("encoder.json",)


def dataset_folder(key: str) -> Path:
    """Return the folder of a fetched data set."""
    return DATA / "sets" / key


def dataset_file(key: str, name: str) -> Path:
    """Return the path of a fetched file."""
    return dataset_folder(key) / name


def manifest(key: str) -> Path:
    """Return the path of the record of what was fetched, from where, with which checksums."""
    return dataset_folder(key) / "manifest.json"


def corpus(key: str) -> Path:
    """Return the path of a training corpus, one sentence a line."""
    return DATA / "corpora" / f"{key}.txt"


def wordnet_root(key: str) -> Path:
    """Return the folder that nltk's reader takes, made of a data set: the database lies in its ``corpora/wordnet``."""
    return DATA / "inventories" / key


def babelnet_cache() -> Path:
    """Return the folder with every answer of BabelNet."""
    return DATA / "babelnet"


def backbone(key: str) -> Path:
    """Return the model folder of an untouched backbone."""
    return DATA / "backbones" / key


class ScaleLayout:
    """Paths of one scale's results."""

    def __init__(self, scale: str) -> None:
        self.base = Path("results") / scale

    def run(self, run_id: str) -> Path:
        """Return the model folder of a trained run."""
        return self.base / "runs" / run_id

    def scores(self, run_id: str, suite: str, pin: str) -> Path:
        """Return the score records of a run under a suite (and those encoded with it); ``pin`` is the job's digest."""
        return self.base / "scores" / run_id / f"{suite}.{pin}.parquet"

    def predictions(self, run_id: str, suite: str, pin: str) -> Path:
        """Return the per-item predictions of a run under a suite."""
        return self.base / "predictions" / run_id / f"{suite}.{pin}.parquet"

    def table(self, key: str, suffix: str) -> Path:
        """Return a rendered table; ``suffix`` is csv, md, tex or html."""
        return self.base / "tables" / f"{key}.{suffix}"

    def figure(self, key: str, suffix: str) -> Path:
        """Return a rendered figure or its data; ``suffix`` is svg, pdf, png or csv."""
        return self.base / "figures" / f"{key}.{suffix}"

    def analogy(self, name: str) -> Path:
        """Return a file of the analogy data sets, such as ``dsbats_sn.parquet``."""
        return self.base / "analogy" / name

    def study(self, figure: str) -> Path:
        """Return the curves of free vectors that a figure shows."""
        return self.base / "figures" / f"{figure}.study.csv"

    @property
    def collected(self) -> Path:
        """All score records of the scale."""
        return self.base / "collected" / "scores.parquet"

    @property
    def report(self) -> Path:
        """The HTML page."""
        return self.base / "report" / "index.html"
