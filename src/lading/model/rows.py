"""What a reader puts beside each row and says at the end of each split: agreed between sources and the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FILE, ROW, RAW, ERROR = "__file", "__row", "__raw", "__error"
"""The hidden columns: where a row is from; and the bytes and the reason, for what could not be read."""

OF_FILE, OF_ROW, LOADED_AT, OF_BATCH = "_file", "_row", "_loaded_at", "_batch"
"""What a load of files can tell of a row beside its content: the whole name of its file, which record of that it is,
when the batch was planned, and the seq of its commit. The last two are the same for all rows of a commit."""

REST = "__rest"
"""A column that some sources give: the fields of a row that the job does not know, as a JSON object; null: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEnd:
    """The last thing that a reader yields of a split."""

    end: str
    """Next to read after the rows that were yielded; never after those that were only fetched."""
    finished: bool = False
    """The source itself said that no more rows will ever come."""
    rows: int = 0
    """Every row that was yielded, good or bad."""
    skipped: int = 0
    """Records that hold no row (tombstones, empty records): counted as unselected."""
    source_files: int = 0
    source_bytes: int = 0
    """Bytes of the files, as they are stored."""
    received_bytes: int = 0
    """Bytes of text after decompression; stored bytes for parquet and orc."""
    lag_ms: int | None = None
    marks: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    """Columns that the table lacks, or has in too narrow a type, for what was read: their Spark types. Empty: a column
    of this name cannot be added."""
