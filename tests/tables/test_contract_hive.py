"""The contract of a table, held by one in a Hive metastore."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from pyiceberg.table import Table

from lading.model.catalog import CatalogAccess, CatalogKind
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.net.addresses import EVERY_PRIVATE
from lading.tables.iceberg.external import open_external
from lading.tables.iceberg.table import IcebergTable, create_external_table, open_external_table
from tests.support.hive_metastore import Metastore
from tests.tables.rig import Rig
from tests.tables.rig_iceberg import IcebergRig
from tests.tables.test_contract import *  # noqa: F403 - the tests, with the rig of this file

pytestmark = [pytest.mark.slow, pytest.mark.java]
_NUMBERS = count()


def access_to(metastore: Metastore, uri: str = "") -> CatalogAccess:
    """As ADMIN named it."""
    return CatalogAccess(
        name="hive",
        kind=CatalogKind.HMS,
        properties={"uri": uri or metastore.uri, "warehouse": f"file://{metastore.warehouse}"},
        storage=S3Access(addresses=EVERY_PRIVATE, roots=(str(metastore.warehouse),)),
    )


class HiveRig(IcebergRig):
    """Tables of one database of a metastore."""

    def __init__(self, home: Path, metastore: Metastore) -> None:
        super().__init__("hive", home, "", S3Access(), race_rounds=3)
        self._access = access_to(metastore)
        self._database = f"lake{next(_NUMBERS)}"
        open_external(self._access).create_namespace(self._database)

    def create(self, name: str, spec: TableSpec) -> IcebergTable:
        create_external_table(self._access, f"{self._database}.{name}", spec, None)
        return self.reopen(name)

    def reopen(self, name: str) -> IcebergTable:
        return open_external_table(self._access, f"{self._database}.{name}")

    def stranger(self, name: str) -> Table:
        return open_external(self._access).load_table(f"{self._database}.{name}")


@pytest.fixture
def rig(tmp_path: Path, metastore: Metastore) -> Rig:
    return HiveRig(tmp_path / "home", metastore)
