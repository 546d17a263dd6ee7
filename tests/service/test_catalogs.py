"""CREATE CATALOG and loads into tables of others, from the door, over Iceberg's own REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from lading.errors import (
    ConfigError,
)
from tests.service.conftest import Desk
from tests.support.maven import JarsMissingError
from tests.support.rest_catalog import Front, RestServer, serve_rest

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.decimal128(10, 2))]
)
THEIRS = pa.Table.from_pylist([{"id": -1, "city": "before", "amount": None}], schema=SCHEMA)


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    try:
        with serve_rest(tmp_path_factory.mktemp("rest")) as server:
            yield server
    except JarsMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def front(rest: RestServer) -> Iterator[Front]:
    made = Front(rest)
    yield made
    made.shutdown()
    made.server_close()


class Lake:
    """A catalog as others use it: with PyIceberg alone."""

    def __init__(self, rest: RestServer, namespace: str) -> None:
        self.catalog = RestCatalog("theirs", uri=rest.url)
        self.namespace = namespace
        self.catalog.create_namespace(namespace)

    def make(self, name: str, **properties: str) -> Table:
        table = self.catalog.create_table(f"{self.namespace}.{name}", SCHEMA, properties=properties)
        table.append(THEIRS)
        return table

    def load(self, name: str) -> Table:
        return self.catalog.load_table(f"{self.namespace}.{name}")

    def ids(self, name: str) -> list[int]:
        """As Polars reads it, from the metadata that the catalog names."""
        rows = pl.scan_iceberg(self.load(name).metadata_location.replace("file:///", "/")).collect()
        return sorted(rows["id"].to_list())


def create(desk: Desk, front: Front, name: str = "lake", more: str = "") -> None:
    desk.sql(
        f'CREATE CATALOG {name} COMMENT "theirs" PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "rest", '
        f'"uri" = "{front.url}", "warehouse" = "file://{front.behind.warehouse}"{more})'
    )


@pytest.mark.java
def test_a_job_loads_a_table_that_was_there(desk: Desk, rest: RestServer, front: Front) -> None:
    lake = Lake(rest, "sales")
    before = lake.make("orders", owner="them").properties
    create(desk, front)
    desk.put_orders("a.csv", 0, 50)
    desk.create(target="lake.sales.orders")
    desk.run()
    desk.put_orders("b.csv", 50, 50)
    desk.run()
    assert lake.ids("orders") == [-1, *range(100)]
    table = lake.load("orders")
    added = {name: value for name, value in table.properties.items() if before.get(name) != value}
    assert all(name.startswith("lading.") for name in added)
    assert not any(name.startswith(("lading.length", "lading.comment")) for name in added)
    assert not (Path(table.location().removeprefix("file:")) / "_lading" / "table.json").exists()
    # The same names everywhere a table may stand.
    assert desk.sql("SELECT count(*) n FROM lake.sales.orders") == [(101,)]
    assert [row[0] for row in desk.sql("DESCRIBE lake.sales.orders")] == ["id", "city", "amount"]
    assert ("orders",) in desk.sql("SHOW TABLES FROM lake.sales")
    assert ("sales",) in desk.sql("SHOW DATABASES FROM lake")
    desk.sql("SWITCH lake; USE sales")
    assert desk.sql("SELECT max(id) FROM orders") == [(99,)]
    # A restart goes on where the table says.
    desk.lading.close()
    desk.restart_empty()
    desk.put_orders("c.csv", 100, 10)
    desk.run()
    assert lake.ids("orders") == [-1, *range(110)]
    assert desk.lading.verify("j").is_clean
    with pytest.raises(ConfigError, match="is used by j"):
        desk.sql("DROP CATALOG lake")
    with pytest.raises(ConfigError, match="is loaded by j"):
        desk.sql("DROP TABLE lake.sales.orders")
