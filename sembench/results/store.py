"""Score files: for each run, read-out, suite and task one small table of records and one of predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sembench.core.artifact import Artifact, alone, opened, seal
from sembench.core.errors import SembenchError
from sembench.core.files import atomic_path
from sembench.results.records import RECORD_DTYPES, RECORD_KEY, Record, named, records_frame, typed

PREDICTIONS = ".predictions.parquet"
_SCHEMA = pa.schema(
    [(name, {"str": pa.string(), "int64": pa.int64(), "float64": pa.float64()}[d]) for name, d in RECORD_DTYPES.items()]
)
# Thousands of small tables of records are read for one page: the plainest form opens three times as fast.
_PLAIN = {"use_dictionary": False, "write_statistics": False, "compression": "none", "store_schema": False}


def score_files(artifact: Artifact) -> tuple[Path, Path]:
    """Return the paths of records and of predictions, relative to the project's folder."""
    [predictions] = [name for name in artifact.files if name.endswith(PREDICTIONS)]
    [records] = [name for name in artifact.files if name != predictions]
    return artifact.folder / records, artifact.folder / predictions


def write_scores(
    root: Path,
    artifact: Artifact,
    records: Iterable[Record],
    predictions: pd.DataFrame,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write records and predictions of one artefact, then its record, unless they are there.

    Two commands may score a run at once: what one of them sealed is kept, so that no other finds it changed.

    Args:
        root: the project's folder.
        artifact: of kind scores.
        records: of its run, read-out, suite and task.
        predictions: a row for each item; without rows where the protocol has none.
        facts: kept in the artefact's record.

    Raises:
        SembenchError: a record is not typed as ``Record`` says.
    """
    frame = records_frame(records)
    table = pa.Table.from_pandas(frame, schema=_SCHEMA, preserve_index=False)
    items = pa.Table.from_pandas(predictions, preserve_index=False)
    with alone(root, artifact) as is_open:
        if not is_open:
            return
        for path, content, options in zip(score_files(artifact), (table, items), (_PLAIN, {}), strict=True):
            with atomic_path(root / path) as temporary:
                # Without pandas' notes, so that equal scores are equal bytes whatever wrote them.
                pq.write_table(content.replace_schema_metadata(None), temporary, **options)
        seal(root, artifact, facts)


def read_scores(root: Path, artifacts: Iterable[Artifact]) -> pd.DataFrame:
    """Read the records of artefacts into one frame; none at all gives an empty frame with the right columns.

    Raises:
        SembenchError: an artefact is not made, damaged or made from what has changed, a file lacks a column, or two
            lines score the same thing.
    """
    wanted = list({artifact.record: artifact for artifact in artifacts}.values())
    tables = [_read(root, artifact) for artifact in wanted]
    if not tables:
        return records_frame([])
    frame = typed(pa.concat_tables(tables).to_pandas(), "score records")
    twice = frame.duplicated(list(RECORD_KEY), keep=False)
    if twice.any():
        files = [score_files(each)[0] for each, table in zip(wanted, tables, strict=True) for _ in range(len(table))]
        found = sorted({str(path) for path, is_twice in zip(files, twice, strict=True) if is_twice})
        raise SembenchError(
            f"{named(frame[twice].iloc[0].to_dict())} is scored twice in {' and '.join(found)}; "
            "delete what is outdated and run again"
        )
    return frame


def _read(root: Path, artifact: Artifact) -> pa.Table:
    opened(root, artifact)
    path = score_files(artifact)[0]
    table = _table(root, path)
    if table.schema.equals(_SCHEMA):
        return table
    lacking = [name for name in RECORD_DTYPES if name not in table.column_names]
    what = f"lacks the column '{lacking[0]}'" if lacking else "has other columns than a score file"
    raise SembenchError(f"{path} {what}; delete it and run again")


def _table(root: Path, path: Path) -> pa.Table:
    try:
        # One thread: starting others takes longer than reading so little.
        return pq.ParquetFile(root / path).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise SembenchError(f"{path} cannot be read ({type(error).__name__}); delete it and run again") from None


def read_predictions(root: Path, artifact: Artifact) -> pd.DataFrame:
    """Read the predictions of an artefact, a row for each item.

    Raises:
        SembenchError: the artefact is not made, damaged, or made from what has changed.
    """
    opened(root, artifact)
    frame: pd.DataFrame = _table(root, score_files(artifact)[1]).to_pandas()
    return frame
