"""The number by which a data file knows a column, whatever it is called since."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"
"""Where Arrow keeps it."""


def field_id(field: pa.Field) -> int | None:
    """The number of a column; None when it has none."""
    raw = (field.metadata or {}).get(FIELD_ID)
    return int(raw) if raw is not None else None
