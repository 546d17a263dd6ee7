"""Delta tables on a local disk and in S3, put through the contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import deltalake
import pyarrow as pa

from lading.ids import JobId
from lading.model.batch import StagedFile
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.storage.libraries import delta_options
from lading.storage.store import open_store
from lading.tables.delta.actions import LOG
from lading.tables.delta.create import create_delta_table
from lading.tables.delta.library import library_uri
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.delta.writer import DeltaWriter
from lading.tables.maintenance import CarePolicy, CareReport
from tests.tables.faulty_storage import FaultyStorage
from tests.tables.rig import RACE_ROUNDS, FileStatistics, RigTable
from tests.tables.s3_server import S3Server


class DeltaRig:
    """Delta tables under one root."""

    keeps_files = True

    def __init__(self, name: str, root: str, options: S3Access, *, race_rounds: int) -> None:
        self.name = name
        self.race_rounds = race_rounds
        self._root = root
        self._options = options

    def create(self, name: str, spec: TableSpec) -> RigTable:
        create_delta_table(f"{self._root}/{name}", spec, self._options)
        return self.reopen(name)

    def reopen(self, name: str) -> RigTable:
        storage = FaultyStorage(open_store(f"{self._root}/{name}", self._options))
        return DeltaLakeTable(storage, self._options)

    def append_unrelated(self, name: str, rows: pa.Table) -> None:
        deltalake.write_deltalake(self.stranger(name), rows, mode="append")

    def others_maintain(self, name: str) -> None:
        table = self.stranger(name)
        table.alter.set_table_properties(
            {
                "delta.logRetentionDuration": "interval 0 seconds",
                "delta.deletedFileRetentionDuration": "interval 0 days",
            }
        )
        table.optimize.compact()
        table.create_checkpoint()
        table = self.stranger(name)
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        table = self.stranger(name)
        table.create_checkpoint()
        table.cleanup_metadata()

    def remove_orphans(self, name: str) -> int:
        """As Trino's vacuum: everything goes but the log folder and the files that the log names."""
        storage = open_store(f"{self._root}/{name}", self._options)
        known = {unquote(path) for path in pa.table(self.stranger(name).get_add_actions()).column("path").to_pylist()}
        orphans = [key for key in storage.keys("") if not key.startswith(f"{LOG}/") and key not in known]
        storage.delete(orphans)
        return len(orphans)

    def restore_older(self, name: str, versions_back: int) -> None:
        table = self.stranger(name)
        table.restore(table.version() - versions_back)

    def versions(self, name: str) -> list[int]:
        keys = open_store(f"{self._root}/{name}", self._options).keys(f"{LOG}/")
        names = [Path(key).stem for key in keys if key.endswith(".json")]
        return sorted(int(stem) for stem in names if stem.isdigit())

    def change_schema(self, name: str) -> None:
        table = self.stranger(name)
        first, *others = pa.schema(table.schema().to_arrow())
        changed = pa.schema([pa.field(first.name, pa.binary()), *others])
        deltalake.write_deltalake(table, changed.empty_table(), mode="overwrite", schema_mode="overwrite")

    def stage(self, table: RigTable, rows: pa.Table, attempt: str) -> tuple[StagedFile, ...]:
        writer = DeltaWriter(cast("DeltaLakeTable", table).writer_spec(), attempt)
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.close()

    def exists(self, table: RigTable, file: StagedFile) -> bool:
        filesystem, root = cast("DeltaLakeTable", table).storage.arrow()
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
        return cast("list[dict[str, Any]]", cast("DeltaLakeTable", table).scan().to_pylist())

    def statistics(self, table: RigTable) -> Sequence[FileStatistics]:
        location = cast("DeltaLakeTable", table).location
        actions = pa.table(self.stranger(location.rpartition("/")[2]).get_add_actions(flatten=True)).to_pylist()
        return [
            FileStatistics(
                path=unquote(action["path"]),
                rows=action["num_records"],
                lows=_under("min.", action),
                highs=_under("max.", action),
                nulls=_under("null_count.", action),
            )
            for action in actions
        ]

    def look_after(self, table: RigTable, job_id: JobId, policy: CarePolicy, now: datetime) -> CareReport:
        return cast("DeltaLakeTable", table).look_after(job_id, policy, now)

    def stranger(self, name: str) -> deltalake.DeltaTable:
        """The table as somebody else opens it."""
        uri = library_uri(open_store(f"{self._root}/{name}", self._options))
        # Some calls, which Lading does not make, hold Python's lock while they wait: the proxy could not answer.
        options = {name: value for name, value in delta_options(self._options).items() if name != "proxy_url"}
        return deltalake.DeltaTable(uri, storage_options=options)

    def _strike(self, table: RigTable, fault: str) -> None:
        storage = cast("FaultyStorage", cast("DeltaLakeTable", table).storage)
        storage.under, storage.fault = f"{LOG}/", fault


def _under(prefix: str, action: dict[str, Any]) -> dict[str, Any]:
    return {
        key.removeprefix(prefix): value for key, value in action.items() if key.startswith(prefix) and value is not None
    }


def delta_local(tmp_path: Path, _s3: S3Server | None) -> DeltaRig:
    return DeltaRig("delta_local", str(tmp_path / "lake"), S3Access(), race_rounds=RACE_ROUNDS or 40)


def delta_s3(_tmp_path: Path, s3: S3Server | None) -> DeltaRig:
    assert s3 is not None
    # The store of the tests answers one request at a time, so that a round costs forty times a local one.
    return DeltaRig("delta_s3", f"s3://{s3.make_bucket()}/lake", s3.options, race_rounds=RACE_ROUNDS or 5)


RIGS = [delta_local, delta_s3]
