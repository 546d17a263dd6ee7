"""Iceberg tables on a local disk and in S3, put through the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.types import BinaryType, PrimitiveType

from lading.ids import JobId
from lading.model.batch import StagedFile
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.storage.store import open_store
from lading.tables.iceberg.catalog import open_catalog, sqlite_catalog
from lading.tables.iceberg.schema import plain_arrow_schema
from lading.tables.iceberg.table import IcebergTable, create_iceberg_table, open_iceberg_table
from lading.tables.iceberg.writer import IcebergWriter
from lading.tables.maintenance import CarePolicy, CareReport
from tests.tables.rig import RACE_ROUNDS, FileStatistics, RigTable
from tests.tables.s3_server import S3Server


class IcebergRig:
    """Iceberg tables in one SQLite catalog."""

    keeps_files = True

    def __init__(self, name: str, home: Path, warehouse: str, options: S3Access, *, race_rounds: int) -> None:
        self.name = name
        self.race_rounds = race_rounds
        self.catalog = sqlite_catalog(home, warehouse=warehouse)
        self.options = options

    def create(self, name: str, spec: TableSpec) -> IcebergTable:
        return create_iceberg_table(self.catalog, f"lake.{name}", spec, options=self.options)

    def reopen(self, name: str) -> IcebergTable:
        return open_iceberg_table(self.catalog, f"lake.{name}", self.options)

    def append_unrelated(self, name: str, rows: pa.Table) -> None:
        self.stranger(name).append(rows)

    def others_maintain(self, name: str) -> None:
        table = self.stranger(name)
        rows = table.scan().to_arrow()
        if rows.num_rows:
            table.overwrite(rows)
        table = self.stranger(name)
        kept = table.metadata.current_snapshot_id
        others = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id != kept]
        table.maintenance.expire_snapshots().by_ids(others).commit()

    def remove_orphans(self, name: str) -> int:
        """As remove_orphan_files of Trino: everything goes whose name stands nowhere in the table's metadata."""
        table = self.stranger(name)
        known = {entry.metadata_file for entry in table.metadata.metadata_log} | {table.metadata_location}
        for snapshot in table.metadata.snapshots:
            known.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                known.add(manifest.manifest_path)
                known |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
        names = {path.rpartition("/")[2] for path in known}
        storage = open_store(table.location().removeprefix("file://"), self.options)
        orphans = [key for key in storage.keys("") if key.rpartition("/")[2] not in names]
        storage.delete(orphans)
        return len(orphans)

    def restore_older(self, name: str, versions_back: int) -> None:
        table = self.stranger(name)
        # A rollback adds no version to go back over, so the oldest snapshot is as far as it goes.
        line = list(ancestors_of(table.current_snapshot(), table.metadata))
        target = line[min(versions_back, len(line) - 1)]
        table.manage_snapshots().rollback_to_snapshot(target.snapshot_id).commit()

    def versions(self, name: str) -> list[int]:
        return sorted(snapshot.sequence_number or 0 for snapshot in self.stranger(name).metadata.snapshots)

    def change_schema(self, name: str) -> None:
        table = self.stranger(name)
        first = table.schema().fields[0].name
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.delete_column(first)
        with table.update_schema() as update:
            update.add_column(first, BinaryType())

    def stage(self, table: RigTable, rows: pa.Table, attempt: str) -> tuple[StagedFile, ...]:
        writer = IcebergWriter(cast("IcebergTable", table).writer_spec(), attempt)
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.close()

    def exists(self, table: RigTable, file: StagedFile) -> bool:
        location = cast("IcebergTable", table).location.removeprefix("file://")
        filesystem, root = open_store(location, self.options).arrow()
        return bool(filesystem.get_file_info(f"{root}/{file.path}").is_file)

    @contextmanager
    def lose_answer_once(self, table: RigTable) -> Iterator[None]:
        def strike(send: Callable[..., Any], *arguments: Any) -> Any:
            send(*arguments)
            msg = "the answer was lost"
            raise ConnectionResetError(msg)

        with self._struck(table, strike):
            yield

    @contextmanager
    def fail_once(self, table: RigTable) -> Iterator[None]:
        def strike(_send: Callable[..., Any], *_arguments: Any) -> Any:
            msg = "not allowed"
            raise ForbiddenError(msg)

        with self._struck(table, strike):
            yield

    def rows(self, table: RigTable) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", cast("IcebergTable", table).scan().to_pylist())

    def statistics(self, table: RigTable) -> Sequence[FileStatistics]:
        own = cast("IcebergTable", table)
        found = self.stranger(own.handle.identifier.rpartition(".")[2])
        files = [task.file for task in found.scan().plan_files()]
        return [_statistics(file, found.schema(), found.location()) for file in files]

    def look_after(self, table: RigTable, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        return cast("IcebergTable", table).look_after(job_id, policy, now)

    def stranger(self, name: str) -> Table:
        """The table as somebody else opens it."""
        return open_catalog(self.catalog, self.options).load_table(f"lake.{name}")

    @contextmanager
    def _struck(self, table: RigTable, strike: Callable[..., Any]) -> Iterator[None]:
        catalog: Any = cast("IcebergTable", table).handle.catalog
        send = catalog.commit_table

        def once(*arguments: Any) -> Any:
            del catalog.commit_table
            return strike(send, *arguments)

        catalog.commit_table = once
        try:
            yield
        finally:
            vars(catalog).pop("commit_table", None)


def _statistics(file: DataFile, schema: Schema, location: str) -> FileStatistics:
    names = {field.field_id: field.name for field in schema.fields}
    return FileStatistics(
        path=file.file_path.removeprefix(f"{location}/"),
        rows=file.record_count,
        lows=_values(file.lower_bounds, schema),
        highs=_values(file.upper_bounds, schema),
        nulls={names[field_id]: count for field_id, count in (file.null_value_counts or {}).items()},
    )


def _values(bounds: Mapping[int, bytes] | None, schema: Schema) -> dict[str, Any]:
    plain = plain_arrow_schema(schema)
    found: dict[str, Any] = {}
    for field_id, bound in (bounds or {}).items():
        field = schema.find_field(field_id)
        value = from_bytes(cast("PrimitiveType", field.field_type), bound)
        kind = plain.field(field.name).type
        found[field.name] = pa.scalar(value, kind).as_py() if pa.types.is_temporal(kind) else value
    return found


def iceberg_local(tmp_path: Path, _s3: S3Server | None) -> IcebergRig:
    return IcebergRig("iceberg_local", tmp_path / "home", "", S3Access(), race_rounds=RACE_ROUNDS or 15)


def iceberg_s3(tmp_path: Path, s3: S3Server | None) -> IcebergRig:
    assert s3 is not None
    warehouse = f"s3://{s3.make_bucket()}/lake"
    return IcebergRig("iceberg_s3", tmp_path / "home", warehouse, s3.options, race_rounds=RACE_ROUNDS or 4)


RIGS = [iceberg_local, iceberg_s3]
