"""Score records: one line per run, read-out, suite, task, subset, split, aggregation and metric.

Everything that reads or writes scores goes through this module and ``store``, so the schema is given here once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, get_type_hints

import numpy as np
import pandas as pd

from sembench.core.errors import SembenchError


class Measured(TypedDict):
    """What scoring knows of one number."""

    readout: str
    suite: str
    task: str
    split: str
    subset: str  # empty over all subsets, else the subset's name with aggregation "subset"
    aggregation: str  # all, mean, wmean or subset
    metric: str  # key of registry/metrics.yaml
    value: float  # raw: 0.7685, not 76.85
    n: int  # items, or sentences for uniformity
    sample_hash: str  # of the texts and gold labels: equal hashes mean equal data
    protocol: int  # version of the protocol
    seconds: float  # of the encoding, which all scores of a job share


class Record(Measured):
    """A number with the run that it is a score of."""

    run: str
    variant: str
    seed: int
    device: str
    precision: str
    created: str  # ISO 8601


COLUMNS = (
    "run",
    "variant",
    "seed",
    "readout",
    "suite",
    "task",
    "split",
    "subset",
    "aggregation",
    "metric",
    "value",
    "n",
    "sample_hash",
    "protocol",
    "device",
    "precision",
    "seconds",
    "created",
)
_DTYPES = {str: "str", int: "int64", float: "float64"}
RECORD_DTYPES: Mapping[str, str] = {name: _DTYPES[get_type_hints(Record)[name]] for name in COLUMNS}
# What makes a record one of a kind.
RECORD_KEY = ("run", "readout", "suite", "task", "split", "subset", "aggregation", "metric")


def labelled(rows: Iterable[Measured], run: str, variant: str, seed: int, device: str, precision: str) -> list[Record]:
    """Return records with what scoring does not know, and the time.

    Args:
        rows: what was measured.
        run: run id, or the name of an encoder outside the registry, which is its own variant with seed 0.
        variant: of the run.
        seed: of the run.
        device: cpu or cuda.
        precision: fp32, bf16 or fp16.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return [
        Record(**row, run=run, variant=variant, seed=seed, device=device, precision=precision, created=created)
        for row in rows
    ]


def records_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return score records as a frame with the columns and types of ``RECORD_DTYPES``.

    Raises:
        SembenchError: a column is missing, unknown or of another type, or a value is not a finite number.
    """
    lines = list(rows)
    for line in lines:
        if stray := set(line) ^ set(RECORD_DTYPES):
            kind = "unknown" if stray - set(RECORD_DTYPES) else "missing"
            raise SembenchError(f"{named(line)}: {kind} column '{min(stray)}' in a score record")
    return typed(pd.DataFrame(lines, columns=list(RECORD_DTYPES)), "score records")


def named(record: Mapping[Any, Any]) -> str:
    """Return how a record is called in messages."""
    return f"run '{record.get('run', '?')}', task '{record.get('task', '?')}'"


def typed(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a frame of records with the types of ``RECORD_DTYPES``.

    Raises:
        SembenchError: a cell is empty or of another type, or a value is not finite.
    """
    for column in RECORD_DTYPES:
        absent = frame[column].isna()
        if column == "value":
            absent |= ~np.isfinite(pd.to_numeric(frame[column], errors="coerce").astype("float64"))
        if absent.any():
            record = frame[absent].iloc[0].to_dict()
            raise SembenchError(f"{where}: {named(record)}: '{column}' is {record[column]}; score that run again")
    try:
        return frame.astype(dict(RECORD_DTYPES))
    except (TypeError, ValueError) as error:
        raise SembenchError(f"{where}: a column has the wrong type ({error})") from None
