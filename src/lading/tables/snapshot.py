"""The files of one state of a table, and how their columns become those of the table. For whoever reads it in parts."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything is in the files, but for constants."""

    files: tuple[str, ...]
    """Relative to the table."""
    schema: pa.Schema
    """Of the table. Where its fields have a FIELD_ID, columns of files go by that and not by their names."""
    constants: pa.Table | None = None
    """Columns that the files leave out: one row for each file, in their order."""
    is_plain: bool = True
    """Spark reads it right by itself: the names of folders say the same as the constants, and no column has the name
    that another one had (its quick reader takes the old one for it, whatever their numbers)."""
