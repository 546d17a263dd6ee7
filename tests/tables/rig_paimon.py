"""Paimon tables on a local disk and in S3, put through the contract. The stranger is pypaimon with its own catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from lading.ids import JobId
from lading.model.batch import StagedFile
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore, open_store
from lading.tables.maintenance import CarePolicy, CareReport
from lading.tables.paimon.create import create_paimon_table
from lading.tables.paimon.kind import KIND
from lading.tables.paimon.manifests import Manifests
from lading.tables.paimon.schema import Schemas
from lading.tables.paimon.snapshots import SNAPSHOT, SnapshotLine
from lading.tables.paimon.table import PaimonTable
from lading.tables.paimon.writer import PaimonWriter
from tests.tables.faulty_storage import FaultyStorage
from tests.tables.optional import skip_without
from tests.tables.rig import RACE_ROUNDS, FileStatistics, RigTable
from tests.tables.s3_server import S3Server

KNOWN = ("schema/", "snapshot/", "tag/", "consumer/", "branch/")
"""Folders in which no engine deletes what it does not know; in `snapshot` there is nothing of Lading's."""


class PaimonRig:
    """Paimon tables of the database `lake` of one warehouse."""

    keeps_files = True

    def __init__(self, name: str, warehouse: str, options: S3Access, *, race_rounds: int) -> None:
        self.name = name
        self.race_rounds = race_rounds
        self._warehouse = warehouse
        self._options = options

    def create(self, name: str, spec: TableSpec) -> RigTable:
        create_paimon_table(self.place(name), spec, self._options)
        return self.reopen(name)

    def reopen(self, name: str) -> RigTable:
        return PaimonTable(FaultyStorage(self.storage(name)), self._options)

    def append_unrelated(self, name: str, rows: pa.Table) -> None:
        append(self.stranger(name), rows)

    def others_maintain(self, name: str) -> None:
        """A rewrite of all files, and then every snapshot but the newest expires with all files that only it had."""
        table = self.stranger(name)
        rows = read(table)
        if rows.num_rows:
            builder = table.new_batch_write_builder().overwrite()
            commit(builder, rows)
        self.expire_all_but_newest(name)

    def expire_all_but_newest(self, name: str) -> None:
        """As Paimon's expire_snapshots with retain_max = 1; pypaimon has none."""
        storage = self.storage(name)
        line, schemas = SnapshotLine(storage), Schemas(storage)
        manifests = Manifests(storage, schemas.newest(), schemas)
        assert line.newest is not None
        kept = {*manifests.names(line.newest), *(file.path for file in manifests.files(line.newest))}
        old = [number for number in self.versions(name) if number != line.version]
        files = {key for key in storage.keys("") if key.startswith("manifest/") or "bucket-0/" in key}
        storage.delete([*(f"{SNAPSHOT}{number}" for number in old), *(files - kept)])

    def remove_orphans(self, name: str) -> int:
        storage = self.storage(name)
        line, schemas = SnapshotLine(storage), Schemas(storage)
        manifests = Manifests(storage, schemas.newest(), schemas)
        known: set[str] = set()
        for snapshot in line.back(line.version, down_to=1):
            known |= {*manifests.names(snapshot), *(file.path for file in manifests.files(snapshot))}
        orphans = [key for key in storage.keys("") if not key.startswith(KNOWN) and key not in known]
        storage.delete(orphans)
        return len(orphans)

    def restore_older(self, name: str, versions_back: int) -> None:
        # A rollback adds no version to go back over, so the oldest snapshot is as far as it goes.
        numbers = self.versions(name)
        self.stranger(name).rollback_to(max(numbers[-1] - versions_back, numbers[0]))

    def versions(self, name: str) -> list[int]:
        names = [key.removeprefix(SNAPSHOT) for key in self.storage(name).keys(SNAPSHOT)]
        return sorted(int(number) for number in names if number.isdigit())

    def change_schema(self, name: str) -> None:
        from pypaimon.schema.data_types import AtomicType
        from pypaimon.schema.schema_change import SchemaChange

        first = self.stranger(name).fields[0].name
        self.catalog().alter_table(
            f"lake.{name}", [SchemaChange.drop_column(first), SchemaChange.add_column(first, AtomicType("BYTES"))]
        )

    def stage(self, table: RigTable, rows: pa.Table, attempt: str) -> tuple[StagedFile, ...]:
        writer = PaimonWriter(cast("PaimonTable", table).writer_spec(), attempt)
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.close()

    def exists(self, table: RigTable, file: StagedFile) -> bool:
        filesystem, root = cast("PaimonTable", table).storage.arrow()
        return bool(filesystem.get_file_info(f"{root}/{file.path}").is_file)

    @contextmanager
    def lose_answer_once(self, table: RigTable) -> Iterator[None]:
        self._strike(table, "lose")
        yield

    @contextmanager
    def fail_once(self, table: RigTable) -> Iterator[None]:
        self._strike(table, "fail")
        yield

    def rows(self, table: RigTable) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", cast("PaimonTable", table).scan().to_pylist())

    def statistics(self, table: RigTable) -> Sequence[FileStatistics]:
        own = cast("PaimonTable", table)
        schemas, line = Schemas(own.storage), SnapshotLine(own.storage)
        files = Manifests(own.storage, schemas.newest(), schemas).files(line.newest)
        return [_statistics(file.entry.file, file.path) for file in files]

    def look_after(self, table: RigTable, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        return cast("PaimonTable", table).look_after(job_id, policy, now)

    def stranger(self, name: str) -> Any:
        """The table as somebody else opens it."""
        return self.catalog().get_table(f"lake.{name}")

    def catalog(self) -> Any:
        """The filesystem catalog of the warehouse."""
        from pypaimon import CatalogFactory

        how = self._options
        given = {
            "fs.s3.endpoint": how.endpoint,
            "fs.s3.accessKeyId": how.access_key,
            "fs.s3.accessKeySecret": how.secret_key,
            "fs.s3.region": how.region,
        }
        options = {key: value for key, value in given.items() if value}
        return CatalogFactory.create({"warehouse": self._warehouse, **options})

    def place(self, name: str) -> str:
        return f"{self._warehouse}/lake.db/{name}"

    def storage(self, name: str) -> ObjectStore:
        return open_store(self.place(name), self._options)

    def _strike(self, table: RigTable, fault: str) -> None:
        storage = cast("FaultyStorage", cast("PaimonTable", table).storage)
        storage.under, storage.fault = SNAPSHOT, fault


def read(table: Any) -> pa.Table:
    """All rows, as pypaimon reads them."""
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def append(table: Any, rows: pa.Table) -> None:
    """Append rows, as pypaimon does it."""
    commit(table.new_batch_write_builder(), rows)


def commit(builder: Any, rows: pa.Table) -> None:
    """Write and commit rows with pypaimon."""
    writer, committer = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    committer.commit(writer.prepare_commit())
    writer.close()
    committer.close()


def _statistics(meta: Any, path: str) -> FileStatistics:
    names = meta.value_stats_cols
    lows = {name: meta.value_stats.min_values.get_field(at) for at, name in enumerate(names)}
    highs = {name: meta.value_stats.max_values.get_field(at) for at, name in enumerate(names)}
    return FileStatistics(
        path=path,
        rows=meta.row_count,
        lows={name: value for name, value in lows.items() if value is not None},
        highs={name: value for name, value in highs.items() if value is not None},
        nulls=dict(zip(names, meta.value_stats.null_counts, strict=True)),
    )


def paimon_local(tmp_path: Path, _s3: S3Server | None) -> PaimonRig:
    skip_without(KIND)
    return PaimonRig("paimon_local", str(tmp_path / "wh"), S3Access(), race_rounds=RACE_ROUNDS or 10)


def paimon_s3(_tmp_path: Path, s3: S3Server | None) -> PaimonRig:
    assert s3 is not None
    skip_without(KIND)
    return PaimonRig("paimon_s3", f"s3://{s3.make_bucket()}/wh", s3.options, race_rounds=RACE_ROUNDS or 4)


RIGS = [paimon_local, paimon_s3]
