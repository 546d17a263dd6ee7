"""In which form a bad row is kept, so that it can be loaded later: what is needed to read it as it was read.

A row whose values were read is kept as an object of them. It can be taken up while records are taken apart as they were
then, and for columns whose values such an object has exactly. A record that could not be taken apart is kept as it is,
and can be taken up however records are taken apart later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

READS, COLUMNS, RECORD_KEPT = "reads", "columns", "record"
"""What a line of quarantine says of it: how records were taken apart; the columns that were read, and their types; or
that the record is kept whole."""


_LOST = object()
"""In the place of a value that cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForm:
    """How a job reads the rows that it may put into quarantine."""

    reads: str
    """Stands for everything that says how a record is taken apart."""
    columns: tuple[tuple[str, str], ...]
    """Columns that are read, and their types."""
    keeps_records: bool = False
    """A record that cannot be taken apart is one row, and is kept whole."""

    @property
    def of_values(self) -> Mapping[str, Any]:
        """What is said of a row whose values were read."""
        return {READS: self.reads, COLUMNS: dict(self.columns)}

    def of_record(self, raw: bytes) -> Mapping[str, Any] | None:
        """What is said of a record that could not be taken apart. None: it is not kept whole."""
        if not self.keeps_records or not raw:
            return None
        try:
            raw.decode()
        except UnicodeDecodeError:
            return None
        return {READS: self.reads, RECORD_KEPT: True}


def kept_values(line: Mapping[str, Any], form: RowForm, wanted: pa.Schema) -> list[Any] | None:
    """The values of a row, by the columns of a schema. None: what is kept does not say what they were."""
    columns = line.get(COLUMNS)
    if line.get(READS) != form.reads or not isinstance(columns, dict):
        return None
    try:
        found = json.loads(str(line.get("raw", "")), parse_float=Decimal)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    values = [_value(field, columns.get(field.name), found.get(field.name)) for field in wanted]
    return None if any(value is _LOST for value in values) else values


def _value(field: pa.Field, was: object, value: Any) -> Any:
    """A value that is there, or NULL, as the column has it."""
    kind = field.type
    if was != str(kind) or not is_exact(kind):
        return _LOST
    if value is None:
        return None
    if types.is_date32(kind) and isinstance(value, str):
        return _day(value)
    if types.is_decimal(kind) and type(value) in (int, Decimal):
        return Decimal(value)
    is_plain = (
        (types.is_string(kind) and isinstance(value, str))
        or (types.is_integer(kind) and type(value) is int)
        or (types.is_boolean(kind) and isinstance(value, bool))
    )
    return value if is_plain else _LOST


def is_exact(kind: pa.DataType) -> bool:
    """Whether values of a type can be told from the object that is kept of a row."""
    exact = (types.is_string, types.is_integer, types.is_boolean, types.is_decimal, types.is_date32)
    return any(is_kind(kind) for is_kind in exact)


def _day(text: str) -> Any:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return _LOST
