"""A Paimon table as a target: the driver's side."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import RolledBackError, TableError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Outcome
from lading.model.s3_access import S3Access
from lading.model.table import ColumnChange
from lading.storage.store import ObjectStore
from lading.tables.base import DoneTag, Removal, Removals, Snapshot, TableVersion, WriterSpec
from lading.tables.bills import StoredBills
from lading.tables.compaction.model import LiveFile, LiveFiles
from lading.tables.folders import column_fields
from lading.tables.maintenance import CarePolicy, CareReport, told_astray
from lading.tables.paimon.alter import WIDENS, alter_schema
from lading.tables.paimon.commit import Committer
from lading.tables.paimon.heads import Heads
from lading.tables.paimon.history import versions_of
from lading.tables.paimon.kept import kept_files
from lading.tables.paimon.library import require_library
from lading.tables.paimon.maintenance import bills_kept, expire_own
from lading.tables.paimon.manifests import DataFile, Manifests
from lading.tables.paimon.resume import SchemaFolderCopies
from lading.tables.paimon.scan import check_readable, scan_rows, snapshot_of
from lading.tables.paimon.schema import Schemas, check_appendable
from lading.tables.paimon.snapshots import SnapshotLine
from lading.tables.paimon.tags import tag_snapshot
from lading.tables.parquet import FileNotes
from lading.tables.probe import check_put_if_absent

_REWRITE = "COMPACT"
_NO_COMPACTION = "Lading does not compact Paimon tables: use Paimon's own compaction (CALL sys.compact)"
_COMPACT_ELSEWHERE = "Compact it with Flink or Spark: CALL sys.compact."
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class PaimonTable:
    """A handle on a Paimon append table. Not shared between threads."""

    def __init__(self, storage: ObjectStore, options: S3Access) -> None:
        require_library()
        self.storage = storage
        self._options = options
        self._schemas = Schemas(storage)
        check_appendable(self._schemas.newest(), storage.uri)
        check_put_if_absent(storage, options)
        self._copies = SchemaFolderCopies(storage)
        self._bills = StoredBills(storage, self._copies)
        self._line = SnapshotLine(storage)
        self._heads = Heads(self._line, self._copies)
        self._committer = Committer(storage, self._line, self._heads, self._schemas, self._copies)

    @property
    def location(self) -> str:
        return self.storage.uri

    @property
    def bills(self) -> StoredBills:
        return self._bills

    def read_head(self, job_id: JobId) -> Head | None:
        self._heads.refresh()
        anchor = self._heads.anchor(job_id)
        if anchor is None:
            return None
        self._heads.check(job_id, anchor)
        return anchor.head

    def read_head_unchecked(self, job_id: JobId) -> Head | None:
        self._heads.refresh()
        anchor = self._heads.anchor(job_id)
        return anchor.head if anchor else None

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        return self._committer.commit(expected, staged, bill)

    def find(self, job_id: JobId, token: Token) -> bool:
        self._heads.refresh()
        anchor = self._heads.anchor(job_id)
        return anchor is not None and self._bills.has_landed(job_id, anchor.head, token)

    def version(self) -> int:
        return self._line.version

    def repair(self, job_id: JobId, seen: Head) -> str:
        return ""

    def is_watched(self) -> bool:
        return False

    def discard(self, staged: Sequence[StagedFile]) -> None:
        self.storage.delete([file.path for file in staged])

    def ends_with(self, job_id: JobId) -> Head | None:
        self._heads.refresh()
        return self._heads.end_of(job_id)

    def job_ids(self) -> set[JobId]:
        return self._copies.job_ids()

    def schema(self) -> pa.Schema:
        return self._schemas.newest().arrow

    def writer_spec(self) -> WriterSpec:
        schema = self._schemas.newest()
        extra = {
            "schema": schema.id,
            "columns": schema.columns,
            "default": schema.default_partition,
            "legacy": schema.is_legacy,
        }
        return WriterSpec(
            format="paimon",
            location=self.location,
            schema=schema.arrow,
            partition_by=tuple((column, "identity") for column in schema.partition_keys),
            partition_fields=column_fields(schema.partition_keys, schema.arrow),
            options=self._options,
            extra=json.dumps(extra),
        )

    def scan(self) -> pa.Table:
        return scan_rows(self.storage, self._data_files(), self._schemas.newest(), self._schemas)

    def files(self) -> Sequence[str]:
        return [file.path for file in self._data_files()]

    def snapshot(self) -> Snapshot:
        files = self._data_files()
        return snapshot_of(self.storage, files, self._schemas.newest(), self._schemas)

    def snapshot_name(self) -> str:
        self._heads.refresh()
        return f"{self._line.version}-{self._schemas.newest().id}"

    def history(self, limit: int) -> Sequence[TableVersion]:
        self._heads.refresh()
        return versions_of(self._line, limit)

    def snapshot_named(self, name: str) -> Snapshot | None:
        number, _, version = name.rpartition("-")
        found, schema = self._line.read(int(number)) if int(number) else None, self._schemas.get_schema(int(version))
        if found is None:
            return Snapshot(files=(), schema=schema.arrow) if not int(number) else None
        files = self._manifests().files(found)
        check_readable(found, files, self.location, self._options)
        return snapshot_of(self.storage, files, schema, self._schemas)

    def removals(self, paths: Collection[str]) -> Removals:
        if not paths:
            return Removals(is_complete=True)
        self._heads.refresh()
        manifests, lowest = self._manifests(), self._line.version + 1
        found: dict[str, Removal] = {}
        for snapshot in self._line.back(self._line.version, down_to=1):
            lowest = snapshot.id
            for path in manifests.removed(snapshot):
                if path in paths and path not in found:
                    by = f"{snapshot.kind} in snapshot {snapshot.id}"
                    found[path] = Removal(by=by, is_rewrite=snapshot.kind == _REWRITE)
        return Removals(found=found, is_complete=lowest <= 1)

    def kept_files(self, asked: Collection[str] | None = None) -> Collection[str]:
        self._heads.refresh()
        return kept_files(self.storage, self._line, self._manifests())

    def tag(self, done: DoneTag) -> None:
        tag_snapshot(self.storage, self._line, done)

    def end_job(self, job_id: JobId) -> None:
        if job_id in self._copies.job_ids():
            self._copies.end(job_id)

    def ended_jobs(self) -> set[JobId]:
        return self._copies.ended()

    def alter(self, changes: Sequence[ColumnChange]) -> Sequence[ColumnChange]:
        return alter_schema(self.storage, changes)

    def reserved_names(self) -> frozenset[str]:
        return frozenset()

    def widens(self) -> frozenset[str]:
        return WIDENS

    def look_after(self, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        if astray := self._astray():
            return CareReport(remark=told_astray(astray))
        head = self.read_head(job_id)
        round_ = expire_own(self.storage, self._line, self._manifests(), self._schemas.newest(), policy, now)
        pruned = 0
        if head is not None:
            kept = bills_kept(self._line, job_id, head, policy, now)
            pruned = self._bills.prune(job_id, head=head, keep_commits=kept.commits, older_than=kept.older_than)
            self._copies.prune(job_id, head)
        return CareReport(snapshots_expired=round_.expired, bills_deleted=pruned, remark=round_.remark)

    def live_files(self) -> LiveFiles:
        """For people: files and sizes. Their compaction is left to Paimon's own engines."""
        self._heads.refresh()
        files = self._manifests().files(self._line.newest)
        return LiveFiles(files=tuple(_live_file(file) for file in files), why_not=_NO_COMPACTION)

    def rewrite_stats(self, file: LiveFile, schema: pa.Schema) -> Callable[[pq.FileMetaData, FileNotes], str]:
        raise TableError(_NO_COMPACTION, left="Nothing was changed.", todo=_COMPACT_ELSEWHERE)

    def replace_files(
        self,
        old: Sequence[LiveFile],
        new: Sequence[StagedFile],
        compaction_id: str,
        at: datetime,
        check: Callable[[], None],
    ) -> Outcome:
        raise TableError(_NO_COMPACTION, left="Nothing was changed.", todo=_COMPACT_ELSEWHERE)

    def _astray(self) -> list[JobId]:
        """Jobs whose rows a rollback took away, and nobody has accepted that yet: their snapshots tell of it."""
        found = []
        for job_id in sorted(self._copies.job_ids() - self._copies.ended()):
            try:
                self.read_head(job_id)
            except RolledBackError:
                found.append(job_id)
        return found

    def _manifests(self) -> Manifests:
        return Manifests(self.storage, self._schemas.newest(), self._schemas)

    def _data_files(self) -> list[DataFile]:
        self._heads.refresh()
        files = self._manifests().files(self._line.newest)
        check_readable(self._line.newest, files, self.location, self._options)
        return files


def _live_file(file: DataFile) -> LiveFile:
    folder = file.path.rpartition("/")[0]
    return LiveFile(
        path=file.path,
        partition="/".join(part for part in folder.split("/") if "=" in part),
        line=folder,
        order=(),
        rows=file.rows,
        size_bytes=int(file.entry.file.file_size),
        written_at=_LONG_AGO,
        is_ours=False,
    )
