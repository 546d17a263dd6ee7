"""What every table offers beyond commits, so that the rest of the system need not know the format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lading.commit.protocols import Table
from lading.ids import JobId
from lading.model.batch import StagedFile
from lading.model.bill import Head
from lading.model.notices import PartitionField
from lading.model.outcome import Outcome
from lading.model.s3_access import S3Access
from lading.model.table import ColumnChange
from lading.storage.renewed import KeySource
from lading.tables.bills import StoredBills
from lading.tables.compaction.model import LiveFile, LiveFiles
from lading.tables.maintenance import CarePolicy, CareReport

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lading.tables.parquet import FileNotes

TAG_PREFIX = "lading-"
_LONGEST_TAG = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A commit that took a file out."""

    by: str
    """For people: "DELETE in version 7"."""
    is_rewrite: bool
    """The same rows were written into other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """What is known of files that are gone."""

    found: Mapping[str, Removal] = field(default_factory=dict)
    """By path, relative to the table."""
    is_complete: bool
    """Whether the history goes back far enough: then a file that is not among them was taken out by nobody."""
    complete_since: int | None = None
    """Also without its beginning: all that was taken out after this version of the table is among them."""
    hidden_rows: int = 0
    """Rows of the table that others took out and whose files are still there: by delete files or deletion vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of one state of a table, for readers of parts of it. Everything is in them, but for constants."""

    files: tuple[str, ...]
    """Relative to the table."""
    schema: pa.Schema
    """Of the table. Where its fields have a FIELD_ID, columns of files go by that and not by their names."""
    constants: pa.Table | None = None
    """Columns that the files leave out: one row for each file, in their order."""
    is_plain: bool = True
    """Spark reads it right by itself: the names of folders say the same as the constants, and no column has the name
    that another one had (its quick reader takes the old one for it, whatever their numbers)."""
    size_bytes: int = 0
    """What the files have together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """One state of a table, and the commit of a job that made it."""

    name: str
    """As its readers name it: a version of Delta, a snapshot of other formats."""
    at: datetime | None
    """When its writer says that it was made."""
    what: str
    """What its writer calls it: WRITE, append, COMPACT."""
    job_id: JobId | None = None
    head: Head | None = None
    """Both None where it was not a commit of a job: compaction, a change of columns, another writer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneTag:
    """A partition is complete, said in the table itself, for readers that know its format."""

    job_id: JobId
    job_name: str
    partition: str
    """`dt=2026-01-01/hh=03`; empty for a table without partitions."""
    seq: int
    """The commit after which it is complete."""
    at: datetime
    keep: timedelta
    """For so long the tag is kept at least."""

    @property
    def name(self) -> str:
        """`lading-<job>-<partition>`. The names of partitions have no comma in them."""
        place = self.partition.replace("/", ",") or "table"
        name = f"{TAG_PREFIX}{self.job_name}-{place}"
        if len(name) <= _LONGEST_TAG:
            return name
        return f"{TAG_PREFIX}{self.job_name[:64]}-{hashlib.sha256(name.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSpec:
    """Everything a task needs to write files for a table. Small, and can be pickled."""

    format: str
    location: str
    schema: pa.Schema
    partition_by: tuple[tuple[str, str], ...] = ()
    """(column, transform) in order."""
    partition_fields: tuple[PartitionField, ...] = ()
    """The same as staged files write their partition values."""
    options: S3Access = S3Access()
    extra: str = ""
    """What the format's own writer needs besides; nobody else looks into it."""
    target_bytes: int = 128 * 1024 * 1024
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Column → default in Spark SQL, for columns that have one in the table."""
    keys: KeySource | None = field(default=None, compare=False, repr=False)
    """Where the keys of `options` end: gives good ones, in every process."""


class Writer(Protocol):
    """The executors' side: Arrow batches in, staged files out."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        ...

    def close(self) -> tuple[StagedFile, ...]:
        """Finish all files and say what they hold."""
        ...

    def abort(self) -> None:
        """Delete what was written: the attempt failed."""
        ...


class LakeTable(Table, Protocol):
    """A table on storage."""

    @property
    def location(self) -> str:
        """URI of the table."""
        ...

    @property
    def bills(self) -> StoredBills:
        """The bills beside the table."""
        ...

    def ends_with(self, job_id: JobId) -> Head | None:
        """The newest commit of a job whose rows the table has: its head, unless the table was rolled back. None: none.

        Raises HeadLostError when the history of the table is not kept long enough to tell.
        """
        ...

    def job_ids(self) -> set[JobId]:
        """The jobs whose commits this table knows of by itself, also when all bills are gone."""
        ...

    def schema(self) -> pa.Schema:
        """Columns as Arrow types."""
        ...

    def writer_spec(self) -> WriterSpec:
        """What tasks need to write for this table."""
        ...

    def scan(self) -> pa.Table:
        """All rows of the current snapshot. For checking, not for large tables."""
        ...

    def files(self) -> Sequence[str]:
        """Paths of the data files of the current snapshot, relative to the table."""
        ...

    def snapshot(self) -> Snapshot:
        """The files of the current state. Raises TableError when they alone do not say which rows there are."""
        ...

    def snapshot_name(self) -> str:
        """What the current state is called: another one for other rows, or other columns. Asks the table itself."""
        ...

    def snapshot_named(self, name: str) -> Snapshot | None:
        """The files of a state by its name; None when the table does not keep it any more. Raises as `snapshot`."""
        ...

    def history(self, limit: int) -> Sequence[TableVersion]:
        """The newest versions that lead to the current state, newest first, as far back as the table keeps them."""
        ...

    def removals(self, paths: Collection[str]) -> Removals:
        """Who took these files out of the table, as far as its history tells. For checking: it may read much.

        Without paths only the rows that others hide are counted.
        """
        ...

    def kept_files(self, asked: Collection[str] | None = None) -> Collection[str]:
        """Paths of the data files that are none of Lading's business to delete, relative to the table.

        Those of every state that the table can be read at or put back to, and those that were taken out and wait for
        the clean-up of their format. Raises TableError when that cannot be told. For clean-up: it reads much.

        `asked`: it is enough to tell which of these are among them.
        """
        ...

    def tag(self, done: DoneTag) -> None:
        """Say that a partition is complete. The same again changes nothing; no head, position or row is touched.

        Tags of Lading that are older than they are to be kept go at the same time, so that they do not pile up.
        """
        ...

    def end_job(self, job_id: JobId) -> None:
        """Say in the table that a job was dropped: from now on its head holds nothing up. Its history stays."""
        ...

    def ended_jobs(self) -> Collection[JobId]:
        """The jobs that were dropped, as far as the table was told. Nobody starts them again."""
        ...

    def alter(self, changes: Sequence[ColumnChange]) -> Sequence[ColumnChange]:
        """Change columns in a commit of its own, which moves no head and has no rows. Those changes that were made.

        A column that is there already stays as it is. All of them or none. Raises ConfigError for what the format, or
        this table, cannot do.
        """
        ...

    def widens(self) -> frozenset[str]:
        """The kinds of widening that `alter` can do: see `tables.altering`."""
        ...

    def reserved_names(self) -> frozenset[str]:
        """Names that no new column can have, in small letters: other engines would not read the table."""
        ...

    def look_after(self, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        """Remove what Lading made and nobody needs any more. Never a head, never other writers' snapshots."""
        ...

    def live_files(self) -> LiveFiles:
        """The data files of the current state, with what compaction must know of them. Asks the table itself."""
        ...

    def rewrite_stats(self, file: LiveFile, schema: pa.Schema) -> Callable[[pq.FileMetaData, FileNotes], str]:
        """What tells the statistics of a file with these columns that takes the place of this one."""
        ...

    def replace_files(
        self,
        old: Sequence[LiveFile],
        new: Sequence[StagedFile],
        compaction_id: str,
        at: datetime,
        check: Callable[[], None],
    ) -> Outcome:
        """One commit that takes the old files out and puts the new ones, with the same rows, in their place.

        Law: no row, head or position changes; the commit lands only while every old file is in the table and none of
        its rows is deleted. Every attempt calls `check` right before it is sent, and is not sent when that raises.
        Raises only when no commit was sent, or none of those that were has landed.
        """
        ...


@runtime_checkable
class NamedElsewhere(Protocol):
    """A table that a catalog of others names: nobody here knows when it was made."""

    def incarnation(self) -> str:
        """Tells this table from another one that had its name before."""
        ...
