"""What compaction knows of the files of a table, and what one compaction did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

MIB = 1024 * 1024
OWN_NAME = re.compile(r"(?:data-|compact-)?[0-9a-f]{16}(?:-\d+){1,4}-[0-9a-f]{16}\.parquet")
"""As `parquet.ParquetWriter` names files: batch or compaction, attempt, number, and a random part."""
MARK = "lading.compaction"
"""Names the compaction in the commit itself: Delta's commitInfo, the summary of an Iceberg snapshot."""

COMPACTION = "compaction by Lading"
"""What removed a file, in the words of `Removal.by`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """What is compacted, and how much at once."""

    small_bytes: int = 32 * MIB
    """A file below this is small."""
    target_bytes: int = 128 * MIB
    min_files: int = 10
    """Fewer small files than this in a row are left alone."""
    min_age: timedelta = timedelta(minutes=10)
    """Younger files are left alone."""
    budget_bytes: int = 512 * MIB
    """So much is read in one round, of all tables together."""
    is_thorough: bool = False
    """Also a file that is larger than all that came after it is rewritten with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A data file of the current state of a table."""

    path: str
    """Relative to the table; as the table names it when it is elsewhere."""
    partition: str
    """For people: `dt=2026-01-01`. Empty for a table without partitions."""
    line: str
    """Files of one line have an order, and only those are put together: one partition, partitioning and, where the
    table tells, job."""
    order: tuple[int, ...]
    """The place in the line: by commit, then as files stand in it."""
    rows: int
    size_bytes: int
    written_at: datetime
    is_ours: bool
    """A commit of Lading added it, and its place in the line is known."""
    has_deletes: bool = False
    """Some of its rows were deleted, and are not to be read."""
    extra: str = field(default="", repr=False)
    """What the format itself wants to know when the file is replaced; nobody else looks into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFiles:
    """All files of the current state."""

    files: Sequence[LiveFile] = ()
    why_not: str = ""
    """Why none of them can be compacted, when that is so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedFile:
    """One file, as a note of a compaction has it."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionNote:
    """What one compaction put in the place of what: beside the table, written before the commit, as a bill is.

    The note is no proof that the compaction landed: its files in the table are.
    """

    compaction_id: str
    at: datetime
    partition: str = ""
    replaced: tuple[NotedFile, ...]
    """In the order of their rows."""
    added: tuple[NotedFile, ...]
    bytes_before: int = 0
    bytes_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """How one group of files fared."""

    partition: str
    files: int
    rows: int
    bytes_before: int
    files_after: int = 0
    bytes_after: int = 0
    outcome: str = "planned"
    """planned, compacted, given up, or unknown: the answer of the table was lost."""
    remark: str = ""
