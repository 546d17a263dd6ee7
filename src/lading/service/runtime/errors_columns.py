"""The columns of an errors table, and a batch of bad rows with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lading.errors import TableError
from lading.model.table import Column
from lading.service.security.redaction import redact
from lading.tables.types import spark_type

ERRORS_COLUMNS = (
    Column(name="job", type="string"),
    Column(name="job_id", type="string"),
    Column(name="seq", type="bigint"),
    Column(name="committed_at", type="timestamp"),
    Column(name="file", type="string"),
    Column(name="row_number", type="bigint"),
    Column(name="reason", type="string"),
    Column(name="raw", type="string"),
)
"""What CREATE JOB makes, and what a table that is there must have. Others stay NULL."""
_NAMES = frozenset(column.name for column in ERRORS_COLUMNS)
_MOST = 2**63
_ROWS, _TEXT = 5000, 8 * 1024 * 1024
"""So many rows, and letters of them, are in memory at once."""


@dataclass(frozen=True, slots=True)
class ErrorsRow:
    """One bad row, as SHOW LOAD ERRORS shows it."""

    seq: int
    committed_at: datetime | None
    """None: the bill of its commit is gone."""
    file: str
    """Or partition."""
    row_number: int
    """Or offset."""
    reason: str
    raw: str


def check_errors_columns(name: str, schema: pa.Schema) -> None:
    """Refuse a table that cannot take the bad rows of a job. Raises TableError."""
    there = {field.name.lower(): field for field in schema}
    flaws = []
    for column in ERRORS_COLUMNS:
        field = there.pop(column.name, None)
        if field is None or field.name != column.name:
            flaws.append(f"it has no column {column.name} {column.type.upper()}")
        elif spark_type(field.type) != column.type:
            flaws.append(f"its column {column.name} is {spark_type(field.type)}, not {column.type}")
    flaws += [
        f"its column {field.name} must not be NULL, and nothing fills it"
        for field in there.values()
        if not field.nullable
    ]
    if flaws:
        wanted = ", ".join(f"{column.name} {column.type.upper()}" for column in ERRORS_COLUMNS)
        msg = f"Table {name} cannot take the bad rows of a job: {'; '.join(flaws)}"
        todo = f"Name a table that is not there, which is made then, or one with these columns: {wanted}."
        raise TableError(msg, left="Nothing was written into it.", todo=todo)


def errors_row(seq: int, committed_at: datetime | None, told: Mapping[str, object]) -> ErrorsRow:
    """A row of a quarantine file."""
    file, reason, raw = (_text(told.get(key, "")) for key in ("file", "reason", "raw"))
    try:
        row = int(str(told.get("row", 0)))
    except ValueError:
        row = 0
    row = row if abs(row) < _MOST else 0
    return ErrorsRow(seq, committed_at, file, row, reason, raw)


def _text(value: object) -> str:
    return redact(str(value)).encode("utf-8", "backslashreplace").decode()


def batches_of(rows: Iterable[ErrorsRow], job: str, job_id: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows in batches with the columns of the table, a few in memory at once."""
    waiting, size = list[ErrorsRow](), 0
    for row in rows:
        waiting.append(row)
        size += len(row.raw)
        if len(waiting) >= _ROWS or size >= _TEXT:
            yield _batch(waiting, {"job": job, "job_id": job_id}, schema)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, {"job": job, "job_id": job_id}, schema)


def _batch(rows: Sequence[ErrorsRow], same: Mapping[str, str], schema: pa.Schema) -> pa.RecordBatch:
    def values(field: pa.Field) -> pa.Array:
        if field.name in same:
            return pa.array([same[field.name]] * len(rows), type=field.type)
        if field.name not in _NAMES:
            return pa.nulls(len(rows), field.type)
        return pa.array([getattr(row, field.name) for row in rows], type=field.type)

    return pa.RecordBatch.from_arrays([values(field) for field in schema], schema=schema)
