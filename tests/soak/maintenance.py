"""What others do to a table: they rewrite its files, expire its history, and remove every file they do not know.

The same is done in the contract tests of each format. Here it is done to tables of a home, between two lives of a job:
who removes files without a grace period while others write removes what they are writing.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from lading.model.s3_access import S3Access
from lading.tables.iceberg.catalog import open_catalog, sqlite_catalog
from tests.soak.lakes import SharedLake
from tests.tables.rig_delta import DeltaRig
from tests.tables.rig_iceberg import IcebergRig
from tests.tables.rig_paimon import PaimonRig


class _IcebergOfStore(IcebergRig):
    """In the catalog that services share."""

    def __init__(self, lake: SharedLake, catalog: SqlCatalog) -> None:
        self._table, self._opened, self.options = lake.table, catalog, lake.access

    def stranger(self, name: str) -> Table:
        return self._opened.load_table(self._table)


class _IcebergOfHome(IcebergRig):
    def __init__(self, home: Path, database: str) -> None:
        self.catalog, self.options, self._database = sqlite_catalog(home), S3Access(), database

    def stranger(self, name: str) -> Table:
        return open_catalog(self.catalog, self.options).load_table(f"{self._database}.{name}")


def maintain(form: str, home: Path, database: str, folder: Path, *, removes_orphans: bool) -> None:
    """Rewrite, expire, and perhaps remove what the format does not know."""
    with TemporaryDirectory() as warehouse:
        rig: Any
        if form == "delta":
            rig = DeltaRig("soak", str(folder.parent), S3Access(), race_rounds=1)
        elif form == "iceberg":
            rig = _IcebergOfHome(home, database)
        else:
            # Paimon's catalog wants folders of databases to end in .db.
            (Path(warehouse) / "lake.db").symlink_to(folder.parent)
            rig = PaimonRig("soak", warehouse, S3Access(), race_rounds=1)
        rig.others_maintain(folder.name)
        if removes_orphans:
            rig.remove_orphans(folder.name)


def maintain_shared(lake: SharedLake, *, removes_orphans: bool) -> None:
    """The same to a table of several services."""
    parent, _, name = lake.place.rpartition("/")
    if lake.form == "paimon":
        maintain(lake.form, Path(parent), "", Path(lake.place), removes_orphans=removes_orphans)
        return
    with ExitStack() as stack:
        rig: Any = (
            DeltaRig("soak", parent, lake.access, race_rounds=1)
            if lake.form == "delta"
            else _IcebergOfStore(lake, stack.enter_context(lake.open_catalog()))
        )
        rig.others_maintain(name)
        if removes_orphans:
            rig.remove_orphans(name)
