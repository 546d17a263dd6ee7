"""A Delta table as a target: the driver's side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import LadingError, RolledBackError, StorageError, TableError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.model.s3_access import S3Access
from lading.model.table import ColumnChange
from lading.storage.store import ObjectStore
from lading.tables.base import DoneTag, Removals, Snapshot, TableVersion, WriterSpec
from lading.tables.bills import StoredBills
from lading.tables.compaction.model import LiveFile, LiveFiles
from lading.tables.delta.actions import Metadata, entry_key
from lading.tables.delta.alter import WIDENS, alter_schema
from lading.tables.delta.columns import columns_of
from lading.tables.delta.domains import clustering_columns
from lading.tables.delta.entry import TXN_RETENTION, render_entry
from lading.tables.delta.features import check_appendable
from lading.tables.delta.heads import check_accepted, check_not_expired, check_not_restored, end_of, head_of
from lading.tables.delta.history import versions_of
from lading.tables.delta.kept import kept_files
from lading.tables.delta.library import load_table
from lading.tables.delta.live import live_adds
from lading.tables.delta.log import LogTail
from lading.tables.delta.maintenance import LogRules, look_after_log
from lading.tables.delta.overwritten import LostCommit, Watch, again_app, find_lost, render_again, told_of_repair
from lading.tables.delta.removed import find_removals
from lading.tables.delta.replace import Replacing, rewrite_stats, why_not
from lading.tables.delta.resume import LogFolderCopies
from lading.tables.delta.scan import count_hidden, list_files, scan_rows, snapshot_of
from lading.tables.delta.schema_check import check_fit, check_names
from lading.tables.delta.tags import set_property
from lading.tables.delta.writer import column_defaults, writer_extra
from lading.tables.folders import column_fields
from lading.tables.maintenance import CarePolicy, CareReport, told_astray
from lading.tables.parquet import FileNotes
from lading.tables.probe import check_put_if_absent
from lading.tables.staged_files import check_present

MAX_REBASES = 100
"""How often a commit steps behind unrelated commits that were faster."""
_Checks = Sequence[Callable[[Metadata, Sequence[StagedFile]], None]]


class DeltaLakeTable:
    """A handle on a Delta table. Not shared between threads."""

    def __init__(self, storage: ObjectStore, options: S3Access, *, is_adopted: bool = False) -> None:
        """An adopted table is not written to before a job is made for it, and others look after its log."""
        self.storage = storage
        self._options = options
        self._is_adopted = is_adopted
        self._copies = LogFolderCopies(storage)
        self._bills = StoredBills(storage, self._copies)
        self._tail = LogTail(storage, options)
        self._watch = Watch(storage)
        if not is_adopted:
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
        elif TXN_RETENTION in self._tail.metadata.configuration:
            check_not_expired(self._bills.heads(job_id), job_id, self._tail.metadata.configuration[TXN_RETENTION])
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
        return self._commit(expected, staged, bill, checks=(check_fit, check_names))

    def _commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill, checks: _Checks) -> Outcome:
        self._tail.refresh()
        if (settled := self._settled(expected, bill)) is not None:
            return settled
        check_present(self.storage, staged)
        for _ in range(MAX_REBASES):
            self._check_not_behind(expected, bill)
            check_appendable(self._tail.protocol, self._tail.metadata, where=self.storage.uri)
            for check in checks:
                check(self._tail.metadata, staged)
            content = render_entry(bill, staged, self._tail.ground())
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

    def repair(self, job_id: JobId, seen: Head) -> str:
        if self._watch.is_broken():
            self._tail.reload()
        elif self._watch.is_new:
            self._tail.refresh()
        else:
            return ""
        # Raises up to the last step: the next call looks again.
        back, gone = [], []
        for lost in find_lost(self._tail, self.storage, self._bills, job_id, seen):
            is_newest = head_of(self._tail, job_id) == lost.bill.replaces
            if not lost.files and not is_newest:
                continue  # All its rows are where others put them.
            told = f"seq {lost.bill.seq} ({sum(file.rows for file in lost.files)} rows)"
            try:
                is_back = self._put_back(lost)
            except TableError as error:  # Its files are gone, or do not fit any more.
                is_back = False
                if not is_newest:
                    gone.append(f"{told}: {error.what}")
                    continue
            if not is_back:
                break  # The head tells that it is lost.
            back.append(told)
        self._watch.repaired()
        return told_of_repair(back, gone)

    def is_watched(self) -> bool:
        # On a disk the moment between a look and a rename is too short to wake idle jobs for it.
        return self.storage.uri.startswith("s3://") and self._watch.is_open()

    def _put_back(self, lost: LostCommit) -> bool:
        """Commit a lost bill again. False: it can never be part of the table any more."""
        bill = lost.bill
        if head_of(self._tail, bill.job_id) == bill.replaces:
            # Its columns keep their rows, whatever they were called since: it had landed.
            return isinstance(self._commit(bill.replaces, lost.files, bill, checks=(check_fit,)), Landed)
        check_present(self.storage, lost.files)
        for _ in range(MAX_REBASES):
            self._tail.refresh()
            if self._tail.txn(again_app(bill.job_id, bill.token)) is not None:
                break
            check_appendable(self._tail.protocol, self._tail.metadata, where=self.storage.uri)
            check_fit(self._tail.metadata, lost.files)
            content = render_again(lost, self._tail.ground())
            # Dies before the put: the next start looks again. Dies after it: the entry says that it was done.
            if self.storage.put_if_absent(entry_key(self._tail.version + 1), content):
                self._tail.advance(content)
                self._watch.put(self._tail.version, content)
                break
        return True

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
        """Raises TableError when the table asks for more of an appender than Lading does."""
        metadata, schema = self._tail.metadata, self.schema()
        check_appendable(self._tail.protocol, metadata, where=self.storage.uri)
        check_put_if_absent(self.storage, self._options)
        written = {column.name for column in columns_of(metadata) if column.is_written}
        return WriterSpec(
            format="delta",
            location=self.location,
            schema=pa.schema([field.with_metadata(None) for field in schema if field.name in written]),
            partition_by=tuple((column, "identity") for column in metadata.partition_columns),
            partition_fields=column_fields(metadata.partition_columns, schema),
            options=self._options,
            extra=writer_extra(metadata, self._clustered_by()),
            defaults=column_defaults(metadata),
        )

    def _clustered_by(self) -> list[str]:
        """Columns that must have statistics, as files call them. One inside another gets none: it is not written."""
        return [path[0] for path in clustering_columns(self._tail.domains) if len(path) == 1]

    def scan(self) -> pa.Table:
        return scan_rows(self.storage, self._options)

    def files(self) -> Sequence[str]:
        return list_files(self.storage, self._options)

    def snapshot(self) -> Snapshot:
        return snapshot_of(load_table(self.storage, self._options), self.storage)

    def snapshot_name(self) -> str:
        self._tail.refresh()
        return str(self._tail.version)

    def history(self, limit: int) -> Sequence[TableVersion]:
        self._tail.refresh()
        return versions_of(self._tail, limit)

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
        found = find_removals(self.storage, self._tail.version, paths)
        return replace(found, hidden_rows=count_hidden(self.storage, self._options))

    def kept_files(self, asked: Collection[str] | None = None) -> Collection[str]:
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

    def reserved_names(self) -> frozenset[str]:
        return frozenset()

    def widens(self) -> frozenset[str]:
        return WIDENS

    def look_after(self, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        astray = self._astray()
        rules = LogRules(keeps_all=bool(astray), is_adopted=self._is_adopted)
        log = look_after_log(self.storage, self._options, policy, now, rules)
        if astray:
            return CareReport(checkpoint_made=log.checkpoint_made, remark=told_astray(astray))
        head = self.read_head(job_id)
        gone = 0
        if head is not None:
            if (oldest := log.history_from) is not None:
                older = min(oldest, now - policy.keep_age)
                gone = self._bills.prune(job_id, head=head, keep_commits=policy.keep_commits, older_than=older)
            self._copies.prune(job_id, head)
        return CareReport(bills_deleted=gone, checkpoint_made=log.checkpoint_made, remark=log.remark)

    def live_files(self) -> LiveFiles:
        self._tail.refresh()
        refused = why_not(self._tail.protocol, self._tail.metadata)
        if not refused and (astray := self._astray()):
            refused = told_astray(astray)
        adds = live_adds(self.storage, self._tail)
        return LiveFiles(files=tuple(add.live_file() for add in adds.values()), why_not=refused)

    def rewrite_stats(self, file: LiveFile, schema: pa.Schema) -> Callable[[pq.FileMetaData, FileNotes], str]:
        return rewrite_stats(file.extra, schema)

    def replace_files(
        self,
        old: Sequence[LiveFile],
        new: Sequence[StagedFile],
        compaction_id: str,
        at: datetime,
        check: Callable[[], None],
    ) -> Outcome:
        replacing = Replacing(
            storage=self.storage,
            tail=self._tail,
            old=old,
            new=new,
            compaction_id=compaction_id,
            at=at,
            check=check,
        )
        return replacing.commit()

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
                self._watch.put(self._tail.version, content)
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
