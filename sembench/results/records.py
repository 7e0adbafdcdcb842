"""Score records: one line per run, read-out, suite, task, subset, split, aggregation and metric.

Everything that reads or writes scores goes through this module, so the schema stands here once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path

RECORD_DTYPES: Mapping[str, str] = {
    "run": "str",
    "variant": "str",
    "seed": "int64",
    "readout": "str",
    "suite": "str",
    "task": "str",
    "subset": "str",  # empty over all subsets, else the subset's name with aggregation "subset"
    "split": "str",
    "aggregation": "str",  # all, mean, wmean or subset
    "metric": "str",  # spearman, pearson, alignment or uniformity
    "value": "float64",  # raw: 0.7685, not 76.85
    "n": "int64",  # pairs, or sentences for uniformity
    "sample_hash": "str",  # of the texts and gold scores, so that equal hashes mean equal data
    "protocol": "int64",
    "stage": "int64",  # version of the scoring code
    "device": "str",
    "precision": "str",
    "seconds": "float64",
    "created": "str",  # ISO 8601
}
# What makes a record one of a kind.
RECORD_KEY = ("run", "readout", "suite", "task", "subset", "split", "aggregation", "metric")


def records_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return score records as a frame with the columns and types of ``RECORD_DTYPES``.

    Raises:
        SembenchError: a column is missing, unknown or of another type, or a value is not a finite number.
    """
    lines = list(rows)
    for line in lines:
        if stray := set(line) ^ set(RECORD_DTYPES):
            kind = "unknown" if stray - set(RECORD_DTYPES) else "missing"
            raise SembenchError(f"{_named(line)}: {kind} column '{min(stray)}' in a score record")
    return _typed(pd.DataFrame(lines, columns=list(RECORD_DTYPES)), "score records")


def labelled(rows: Iterable[Mapping[str, Any]], run: str, labels: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return records with what scoring does not know: the run, its variant and seed, the time, and ``labels``.

    ``run`` is a run id, or the name of an encoder outside the registry, which has no variant but its name and no seed.
    """
    parts = run.rsplit(".", 2)
    is_run = len(parts) == 3 and parts[1].startswith("s") and parts[1][1:].isdigit()
    variant, seed = (parts[0], int(parts[1][1:])) if is_run else (run, 0)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return [{**row, "run": run, "variant": variant, "seed": seed, "created": created, **labels} for row in rows]


def _named(record: Mapping[Any, Any]) -> str:
    return f"run '{record.get('run', '?')}', task '{record.get('task', '?')}'"


def _typed(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    for column in RECORD_DTYPES:
        absent = frame[column].isna()
        if column == "value":
            absent |= ~np.isfinite(pd.to_numeric(frame[column], errors="coerce").astype("float64"))
        if absent.any():
            record = frame[absent].iloc[0].to_dict()
            raise SembenchError(f"{where}: {_named(record)}: '{column}' is {record[column]}; score that run again")
    try:
        return frame.astype(dict(RECORD_DTYPES))
    except (TypeError, ValueError) as error:
        raise SembenchError(f"{where}: a column has the wrong type ({error})") from None


def read_scores(paths: Iterable[Path]) -> pd.DataFrame:
    """Read score files into one frame; no file at all gives an empty frame with the right columns.

    Raises:
        SembenchError: a file is unreadable or lacks a column, or two lines score the same thing.
    """
    frames = {str(path): _read(path) for path in dict.fromkeys(paths)}
    if not frames:
        return records_frame([])
    together = pd.concat(frames)
    twice = together[together.duplicated(list(RECORD_KEY), keep=False)]
    if not twice.empty:
        files = sorted({str(label[0]) for label in twice.index})
        raise SembenchError(
            f"{_named(twice.iloc[0].to_dict())} is scored twice in {' and '.join(files)}; "
            "delete what is outdated and run again"
        )
    return together.reset_index(drop=True)


def read_frame(path: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Read a table of the workflow, parquet or csv.

    Raises:
        SembenchError: it cannot be read or lacks one of ``columns``.
    """
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise SembenchError(f"{path} cannot be read ({type(error).__name__}); delete it and run again") from None
    if lacking := [column for column in columns if column not in frame.columns]:
        raise SembenchError(f"{path} lacks the column '{lacking[0]}'; delete it and run again")
    return frame


def _read(path: Path) -> pd.DataFrame:
    frame = read_frame(path, RECORD_DTYPES)
    return _typed(frame[list(RECORD_DTYPES)], str(path))


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame atomically as parquet, creating the folder."""
    with atomic_path(path) as temporary:
        frame.to_parquet(temporary, index=False)
