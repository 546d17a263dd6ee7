"""A Delta table as a target: the driver's side."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import deltalake
import pyarrow as pa

from lading.errors import LadingError, RolledBackError, StorageError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.model.s3_access import S3Access
from lading.model.table import ColumnChange
from lading.storage.store import ObjectStore
from lading.tables.base import DoneTag, Removals, Snapshot, WriterSpec
from lading.tables.bills import StoredBills
from lading.tables.delta.actions import entry_key, render_entry
from lading.tables.delta.alter import WIDENS, alter_schema
from lading.tables.delta.features import check_appendable
from lading.tables.delta.heads import check_accepted, check_not_restored, end_of, head_of
from lading.tables.delta.kept import kept_files
from lading.tables.delta.library import load_table
from lading.tables.delta.log import LogTail
from lading.tables.delta.maintenance import look_after_log
from lading.tables.delta.removed import find_removals
from lading.tables.delta.resume import LogFolderCopies
from lading.tables.delta.scan import list_files, scan_rows, snapshot_of
from lading.tables.delta.schema_check import check_fit
from lading.tables.delta.tags import set_property
from lading.tables.delta.writer import column_defaults, writer_extra
from lading.tables.folders import column_fields
from lading.tables.maintenance import CarePolicy, CareReport, told_astray
from lading.tables.probe import check_put_if_absent
from lading.tables.staged_files import check_present

MAX_REBASES = 100
"""How often a commit steps behind unrelated commits that were faster."""


class DeltaLakeTable:
    """A handle on a Delta table. Not shared between threads."""

    def __init__(self, storage: ObjectStore, options: S3Access) -> None:
        self.storage = storage
        self._options = options
        self._copies = LogFolderCopies(storage)
        self._bills = StoredBills(storage, self._copies)
        self._tail = LogTail(storage, options)
        check_appendable(self._tail.protocol, self._tail.metadata, where=storage.uri)
        check_put_if_absent(storage, options)

    @property
    def location(self) -> str:
        return self.storage.uri

    @property
    def bills(self) -> StoredBills:
        return self._bills

    def read_head(self, job_id: JobId) -> Head | None:
        head = self.read_head_unchecked(job_id)
        if head is not None:
            check_not_restored(self._tail, job_id, head)
        return head

    def read_head_unchecked(self, job_id: JobId) -> Head | None:
        self._tail.refresh()
        head = head_of(self._tail, job_id)
        self._tail.forget_loaded()
        return head

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        """Put one log entry that adds the files and moves the head.

        The entry of a version can be put once. The second writer reads what was put there and looks at the head
        again: unrelated commits are stepped behind, a head that moved ends the attempt.
        """
        self._tail.refresh()
        if (settled := self._settled(expected, bill)) is not None:
            return settled
        check_present(self.storage, staged)
        for _ in range(MAX_REBASES):
            self._check_not_behind(expected, bill)
            check_appendable(self._tail.protocol, self._tail.metadata, where=self.storage.uri)
            check_fit(self._tail.metadata, staged)
            content = render_entry(bill, staged, self._tail.metadata.partition_columns)
            try:
                # Dies before the put: the log is as it was. Dies after it: files and head are in the table, both.
                won = self.storage.put_if_absent(entry_key(self._tail.version + 1), content)
            except StorageError as error:
                return _failed(error)
            outcome = self._confirmed(expected, bill, content) if won else self._overtaken(expected, bill)
            if outcome is not None:
                return outcome
        return NotLanded(why=f"other writers were faster {MAX_REBASES} times")

    def find(self, job_id: JobId, token: Token) -> bool:
        self._tail.refresh()
        head = head_of(self._tail, job_id)
        return head is not None and self._bills.has_landed(job_id, head, token)

    def version(self) -> int:
        return self._tail.version

    def discard(self, staged: Sequence[StagedFile]) -> None:
        self.storage.delete([file.path for file in staged])

    def ends_with(self, job_id: JobId) -> Head | None:
        self._tail.refresh()
        return end_of(self._tail, job_id)

    def job_ids(self) -> set[JobId]:
        return self._copies.job_ids()

    def schema(self) -> pa.Schema:
        return pa.schema(deltalake.Schema.from_json(self._tail.metadata.schema_string).to_arrow())

    def writer_spec(self) -> WriterSpec:
        metadata = self._tail.metadata
        return WriterSpec(
            format="delta",
            location=self.location,
            schema=self.schema(),
            partition_by=tuple((column, "identity") for column in metadata.partition_columns),
            partition_fields=column_fields(metadata.partition_columns, self.schema()),
            options=self._options,
            extra=writer_extra(metadata),
            defaults=column_defaults(metadata),
        )

    def scan(self) -> pa.Table:
        return scan_rows(self.storage, self._options)

    def files(self) -> Sequence[str]:
        return list_files(self.storage, self._options)

    def snapshot(self) -> Snapshot:
        return snapshot_of(load_table(self.storage, self._options), self.storage)

    def snapshot_name(self) -> str:
        self._tail.refresh()
        return str(self._tail.version)

    def snapshot_named(self, name: str) -> Snapshot | None:
        self._tail.refresh()
        if int(name) > self._tail.version:
            return None
        try:
            table = load_table(self.storage, self._options, version=int(name))
        except StorageError:
            # Its log was cleaned up. A storage that does not answer raises here, too: the newest version tells.
            load_table(self.storage, self._options)
            return None
        return snapshot_of(table, self.storage)

    def removals(self, paths: Collection[str]) -> Removals:
        self._tail.refresh()
        return find_removals(self.storage, self._tail.version, paths)

    def kept_files(self) -> Collection[str]:
        return kept_files(self.storage)

    def tag(self, done: DoneTag) -> None:
        set_property(self.storage, self._options, done)

    def end_job(self, job_id: JobId) -> None:
        if job_id in self._copies.job_ids():
            self._copies.end(job_id)

    def ended_jobs(self) -> set[JobId]:
        return self._copies.ended()

    def alter(self, changes: Sequence[ColumnChange]) -> Sequence[ColumnChange]:
        made = alter_schema(self.storage, self._options, changes)
        self._tail.refresh()
        return made

    def widens(self) -> frozenset[str]:
        return WIDENS

    def look_after(self, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        astray = self._astray()
        log = look_after_log(self.storage, self._options, policy, now, keeps_all=bool(astray))
        if astray:
            return CareReport(checkpoint_made=True, remark=told_astray(astray))
        head = self.read_head(job_id)
        gone = 0
        if head is not None:
            if (oldest := log.history_from) is not None:
                older = min(oldest, now - policy.keep_age)
                gone = self._bills.prune(job_id, head=head, keep_commits=policy.keep_commits, older_than=older)
            self._copies.prune(job_id, head)
        return CareReport(bills_deleted=gone, checkpoint_made=True, remark=log.remark)

    def _astray(self) -> list[JobId]:
        """Jobs whose rows a RESTORE took away, and nobody has accepted that yet: the log is the only trace of it."""
        found = []
        for job_id in sorted(self._copies.job_ids() - self._copies.ended()):
            try:
                self.read_head(job_id)
            except RolledBackError:
                found.append(job_id)
        return found

    def _settled(self, expected: Head | None, bill: Bill) -> Outcome | None:
        head = head_of(self._tail, bill.job_id)
        if head == bill.head:
            return Landed(version=self._tail.version)
        if head != expected:
            return NotLanded(why=f"the head is {_named(head)}, not {_named(expected)}")
        return None

    def _check_not_behind(self, head: Head | None, bill: Bill) -> None:
        if head is None:
            return
        if bill.accepts_rollback:
            check_accepted(self._tail, bill, head)
        else:
            check_not_restored(self._tail, bill.job_id, head)

    def _overtaken(self, expected: Head | None, bill: Bill) -> Outcome | None:
        """Somebody's entry is there. None: it is unrelated, and the commit may be put behind it."""
        try:
            self._tail.refresh()
        except StorageError as error:
            # The entry may be an earlier attempt of this same commit whose answer was lost.
            return Unknown(why=error.what)
        return self._settled(expected, bill)

    def _confirmed(self, expected: Head | None, bill: Bill, content: bytes) -> Outcome:
        """Make sure that the entry counts.

        A process that was paused between its look at the log and the put may come after a checkpoint and a log
        cleanup: then its entry stands below the checkpoint and no reader ever sees it.
        """
        try:
            if self._tail.checkpoint_version() <= self._tail.version:
                self._tail.advance(content)
                return Landed(version=self._tail.version)
            self._tail.refresh()
            head = head_of(self._tail, bill.job_id)
        except LadingError as error:
            return Unknown(why=error.what)
        if head == bill.head:
            return Landed(version=self._tail.version)
        if head == expected:
            return NotLanded(why="the log had gone on past a checkpoint, and the entry was put below it")
        return Unknown(why=f"the entry was put, but the head is {_named(head)}")


def _failed(error: StorageError) -> Outcome:
    if error.facts.get("unknown"):
        return Unknown(why=error.what)
    return NotLanded(why=error.what)


def _named(head: Head | None) -> str:
    return f"seq {head.seq}" if head else "none"
