"""An Iceberg table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot as Made

from lading.clock import Clock, SystemClock
from lading.errors import TableError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.catalog import CatalogAccess
from lading.model.outcome import Outcome
from lading.model.s3_access import S3Access
from lading.model.table import ColumnChange, TableSpec
from lading.storage.renewed import RenewedStore
from lading.storage.store import ObjectStore, require_allowed
from lading.tables.base import DoneTag, Removals, Snapshot, TableVersion, WriterSpec
from lading.tables.bills import StoredBills
from lading.tables.compaction.model import LiveFile, LiveFiles
from lading.tables.iceberg.alter import WIDENS, alter_schema
from lading.tables.iceberg.catalog import ensure_namespace, make_home, open_catalog
from lading.tables.iceberg.commit import commit_append
from lading.tables.iceberg.ended import astray_jobs, end_job, ended_jobs
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.external import open_external
from lading.tables.iceberg.guard import check_new_properties
from lading.tables.iceberg.handle import FORMAT_VERSION, WRITTEN_VERSIONS, Handle, version_of
from lading.tables.iceberg.heads import find_anchor, has_token, rolled_back
from lading.tables.iceberg.history import versions_of
from lading.tables.iceberg.kept import KeptFiles
from lading.tables.iceberg.live import live_files, rewrite_stats
from lading.tables.iceberg.maintenance import expire_snapshots, oldest_snapshot
from lading.tables.iceberg.moved import Place, bring_bills, location_of
from lading.tables.iceberg.place import open_place, relative_path
from lading.tables.iceberg.postgres import CatalogSpec
from lading.tables.iceberg.removed import find_removals
from lading.tables.iceberg.replace import Replacing
from lading.tables.iceberg.resume import PropertyCopies, job_ids
from lading.tables.iceberg.retention import GC_ENABLED
from lading.tables.iceberg.schema import (
    RESERVED,
    has_reused_names,
    iceberg_partition_spec,
    iceberg_schema,
    numbered_arrow_schema,
    plain_arrow_schema,
)
from lading.tables.iceberg.sweep import Sweeper
from lading.tables.iceberg.tags import tag_snapshot
from lading.tables.iceberg.writer import iceberg_writer_spec
from lading.tables.maintenance import CarePolicy, CareReport, told_astray
from lading.tables.parquet import FileNotes
from lading.tables.probe import check_put_if_absent

_DELETES_METADATA = "write.metadata.delete-after-commit.enabled"
_CREATION_DEFAULTS = {
    "format-version": str(FORMAT_VERSION),
    # Every commit writes a whole metadata file; without these they would pile up for ever.
    _DELETES_METADATA: "true",
    "write.metadata.previous-versions-max": "100",
}


class IcebergTable:
    """A LakeTable. Every question goes to the catalog; only `version` remembers the last answer."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        table = handle.load()
        self._location = location_of(table.metadata)
        self._version = version_of(table.metadata)
        self._storage = _storage(handle, self._location)
        check_put_if_absent(self._storage, handle.access)
        bring_bills(table.metadata, self._place, handle.access)
        self._bills = StoredBills(self._storage, PropertyCopies(lambda: self._load().metadata))
        self._sweeper = Sweeper(self._storage)
        self._kept = KeptFiles()

    @property
    def location(self) -> str:
        return self._location

    @property
    def bills(self) -> StoredBills:
        return self._bills

    @property
    def handle(self) -> Handle:
        """The catalog and the name in it."""
        return self._handle

    def read_head(self, job_id: JobId) -> Head | None:
        table = self._load()
        anchor = find_anchor(table.metadata, job_id)
        if anchor is None:
            return None
        if self._handle.is_astray(table, anchor):
            raise rolled_back(job_id, anchor, self._handle.identifier)
        return anchor.head

    def read_head_unchecked(self, job_id: JobId) -> Head | None:
        anchor = find_anchor(self._load().metadata, job_id)
        return anchor.head if anchor else None

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        return commit_append(self._handle, self._place, expected, staged, bill)

    def find(self, job_id: JobId, token: Token) -> bool:
        metadata = self._load().metadata
        anchor = find_anchor(metadata, job_id)
        if anchor is None:
            return False
        # Snapshots expire; the chain of bills from the head goes back further.
        return has_token(metadata, job_id, token) or self._bills.has_landed(job_id, anchor.head, token)

    def version(self) -> int | None:
        return self._version

    def repair(self, job_id: JobId, seen: Head) -> str:
        return ""

    def is_watched(self) -> bool:
        return False

    def discard(self, staged: Sequence[StagedFile]) -> None:
        self._storage.delete([file.path for file in staged])

    def ends_with(self, job_id: JobId) -> Head | None:
        return self._handle.end_of(self._load(), job_id)

    def job_ids(self) -> set[JobId]:
        return job_ids(self._load().metadata)

    def schema(self) -> pa.Schema:
        return plain_arrow_schema(self._load().metadata.schema())

    def writer_spec(self) -> WriterSpec:
        spec = iceberg_writer_spec(self._load(), self._handle.access)
        return replace(spec, keys=self._handle.keys)

    def scan(self) -> pa.Table:
        table = self._load()
        self.files()  # Scans open data files by their paths, without asking whether they may be opened.
        with translated(self._handle.what):
            rows = table.scan().to_arrow()
        return rows.cast(plain_arrow_schema(table.metadata.schema()))

    def files(self) -> Sequence[str]:
        table = self._load()
        with translated(self._handle.what):
            tasks = list(table.scan().plan_files())
        return [self._checked_path(task.file.file_path) for task in tasks]

    def _checked_path(self, path: str) -> str:
        options = self._handle.access
        require_allowed(path, options.within, has_own_keys=bool(options.access_key), roots=options.roots)
        return relative_path(self._location, path)

    def snapshot(self) -> Snapshot:
        table = self._load()
        return self._snapshot(table, None, table.metadata.schema())

    def incarnation(self) -> str:
        return str(self._load().metadata.table_uuid)

    def snapshot_name(self) -> str:
        metadata = self._load().metadata
        return f"{metadata.current_snapshot_id or 0}-{metadata.current_schema_id}"

    def history(self, limit: int) -> Sequence[TableVersion]:
        return versions_of(self._load().metadata, limit)

    def snapshot_named(self, name: str) -> Snapshot | None:
        table, (number, _, version) = self._load(), name.rpartition("-")
        schema = next((each for each in table.metadata.schemas if each.schema_id == int(version)), None)
        if schema is None or (int(number) and table.snapshot_by_id(int(number)) is None):
            return None
        if not int(number):
            return Snapshot(files=(), schema=numbered_arrow_schema(schema))
        return self._snapshot(table, int(number), schema)

    def _snapshot(self, table: Table, number: int | None, columns: Schema) -> Snapshot:
        with translated(self._handle.what):
            tasks = list(table.scan(snapshot_id=number).plan_files())
        if any(field.initial_default is not None for field in columns.fields):
            msg = f"The Iceberg {self._handle.what} has defaults of columns, which Lading does not apply in reading"
            raise TableError(msg, left="Nothing was changed.", todo="Read it with another engine.")
        if any(task.delete_files for task in tasks):
            msg = f"The Iceberg {self._handle.what} has delete files, which Lading does not apply when it reads"
            todo = "Read it with another engine, or rewrite its data files (rewrite_data_files)."
            raise TableError(msg, left="Nothing was changed.", todo=todo)
        files = tuple(self._checked_path(task.file.file_path) for task in tasks)
        schema = numbered_arrow_schema(columns)
        size = sum(task.file.file_size_in_bytes for task in tasks)
        return Snapshot(files=files, schema=schema, is_plain=not has_reused_names(table.metadata), size_bytes=size)

    def removals(self, paths: Collection[str]) -> Removals:
        table = self._load()
        with translated(self._handle.what):
            return find_removals(table, self._location, paths)

    def kept_files(self, asked: Collection[str] | None = None) -> Collection[str]:
        table = self._load()
        with translated(self._handle.what):
            return self._kept.find(table, self._location, self._storage, asked)

    def tag(self, done: DoneTag) -> None:
        tag_snapshot(self._handle, done)

    def end_job(self, job_id: JobId) -> None:
        end_job(self._handle, job_id)

    def ended_jobs(self) -> set[JobId]:
        return ended_jobs(self._handle.load().metadata)

    def alter(self, changes: Sequence[ColumnChange]) -> Sequence[ColumnChange]:
        return alter_schema(self._handle, changes)

    def widens(self) -> frozenset[str]:
        return WIDENS

    def reserved_names(self) -> frozenset[str]:
        return RESERVED

    def look_after(self, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        """Expire Lading's own old snapshots, delete the manifests nobody names any more, and prune bills.

        Of a table of another catalog, whose owner looks after it, only bills: they are Lading's own files everywhere.
        """
        # What is pruned is judged by this state: one that is loaded later may have been rolled back in between.
        table = self._load()
        if astray := astray_jobs(self._handle, table):
            return CareReport(remark=told_astray(astray))
        head = self.read_head(job_id)
        if self._handle.catalog_name:
            remark = f"the catalog {self._handle.catalog_name} is others': use its own expiry"
            pruned = self._prune(job_id, head, table.metadata.snapshots, policy, now)
            return CareReport(bills_deleted=pruned, remark=remark)
        round_ = expire_snapshots(self._handle, policy, now)
        if round_.gone:
            self._sweeper.sweep(round_.table, round_.gone)
        gone = {each.snapshot_id for each in round_.gone}
        there = [each for each in table.metadata.snapshots if each.snapshot_id not in gone]
        pruned = self._prune(job_id, head, there, policy, now)
        return CareReport(snapshots_expired=len(round_.gone), bills_deleted=pruned, remark=round_.remark)

    def _prune(self, job_id: JobId, head: Head | None, there: Sequence[Made], policy: CarePolicy, now: datetime) -> int:
        """Bills of snapshots that the table may be rolled back to stay. Others may have made those by another clock."""
        if head is None:
            return 0
        older = min(now - policy.keep_age, oldest_snapshot(there, now) - policy.grace)
        return self._bills.prune(job_id, head=head, keep_commits=policy.keep_commits, older_than=older)

    def live_files(self) -> LiveFiles:
        table = self._load()
        with translated(self._handle.what):
            return live_files(self._handle, table, self._location)

    def rewrite_stats(self, file: LiveFile, schema: pa.Schema) -> Callable[[pq.FileMetaData, FileNotes], str]:
        return rewrite_stats(self._load().metadata, self._location, schema)

    def replace_files(
        self,
        old: Sequence[LiveFile],
        new: Sequence[StagedFile],
        compaction_id: str,
        at: datetime,
        check: Callable[[], None],
    ) -> Outcome:
        replacing = Replacing(
            handle=self._handle, place=self._place, old=old, new=new, compaction_id=compaction_id, check=check
        )
        return replacing.commit()

    def close(self) -> None:
        """Let go of the catalog's connections."""
        self._handle.catalog.close()

    @property
    def _place(self) -> Place:
        return Place(location=self._location, storage=self._storage)

    def _load(self) -> Table:
        table = self._handle.load()
        self._version = version_of(table.metadata)
        return table


def _storage(handle: Handle, location: str) -> ObjectStore:
    """The place of a table. Where keys end, each use of it asks for those that are good."""
    if (keys := handle.keys) is not None:
        return RenewedStore(partial(open_place, location), keys)
    return open_place(location, handle.options)


def open_external_table(access: CatalogAccess, identifier: str, *, clock: Clock | None = None) -> IcebergTable:
    """Open a table of a catalog that others keep."""
    opened = open_external(access)
    handle = Handle(
        catalog=opened,
        identifier=identifier,
        options=access.storage,
        clock=clock or SystemClock(),
        catalog_name=access.name,
    )
    return IcebergTable(handle)


def create_external_table(access: CatalogAccess, identifier: str, spec: TableSpec, location: str | None) -> None:
    """Make a table in a catalog that others keep. Its settings are those of the statement alone."""
    check_new_properties(spec.properties)
    schema = iceberg_schema(spec)
    properties = {"format-version": str(FORMAT_VERSION), **spec.properties}
    with closing(open_external(access)) as opened, translated(f"table {access.name}.{identifier}"):
        # Dies in here: the catalog has the table, or has not; a metadata file may be left that nobody names.
        opened.create_table(
            identifier,
            schema,
            location=location,
            partition_spec=iceberg_partition_spec(spec, schema),
            properties=properties,
        )


def open_iceberg_table(
    catalog: CatalogSpec,
    identifier: str,
    options: S3Access = S3Access(),
    *,
    clock: Clock | None = None,
) -> IcebergTable:
    """Open a table that is there."""
    opened = open_catalog(catalog, options)
    return IcebergTable(_handle(opened, identifier, options, clock))


def create_iceberg_table(
    catalog: CatalogSpec,
    identifier: str,
    spec: TableSpec,
    *,
    location: str | None = None,
    options: S3Access = S3Access(),
    clock: Clock | None = None,
) -> IcebergTable:
    """Make a table, and its namespace when that is missing, and open it."""
    check_new_properties(spec.properties)
    properties = {**_CREATION_DEFAULTS, **spec.properties}
    if properties.get(GC_ENABLED, "").lower() == "false":
        # Old metadata files may be another table's, too; Iceberg deletes them by this setting alone.
        properties = {**properties, _DELETES_METADATA: spec.properties.get(_DELETES_METADATA, "false")}
    if properties["format-version"] not in map(str, WRITTEN_VERSIONS):
        msg = f"Lading cannot write Iceberg format version {properties['format-version']}"
        raise TableError(msg, left="Nothing was made.", todo=f"Leave it out, or ask for {FORMAT_VERSION}.")
    schema = iceberg_schema(spec)
    partitions = iceberg_partition_spec(spec, schema)
    make_home(catalog)
    opened = open_catalog(catalog, options)
    handle = _handle(opened, identifier, options, clock)
    if location is not None:
        check_put_if_absent(open_place(location, options), options)
    with translated(handle.what):
        ensure_namespace(opened, identifier)
        # Dies in here: a metadata file may be left that the catalog does not name; making the table again is fine.
        opened.create_table(identifier, schema, location=location, partition_spec=partitions, properties=properties)
    return IcebergTable(handle)


def _handle(catalog: Catalog, identifier: str, options: S3Access, clock: Clock | None) -> Handle:
    return Handle(catalog=catalog, identifier=identifier, options=options, clock=clock or SystemClock())
