"""CREATE CATALOG and loads into tables of others, from the door, over Iceberg's own REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from lading.errors import ConfigError, LadingError, StorageError, TableError
from lading.service.scheduling.scheduler import Scheduler
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_scheduler import until
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
        self.catalog = RestCatalog("theirs", uri=rest.url, **{"header.Connection": "close"})
        self.namespace = namespace
        self.catalog.create_namespace(namespace)

    def make(self, name: str, **properties: str) -> Table:
        table: Table = self.catalog.create_table(f"{self.namespace}.{name}", SCHEMA, properties=properties)
        table.append(THEIRS)
        return table

    def load(self, name: str) -> Table:
        table: Table = self.catalog.load_table(f"{self.namespace}.{name}")
        return table

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
    assert lake.ids("orders") == [-1, *range(100)], (desk.show("Status"), desk.show("ErrorMsg"))
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


@pytest.mark.java
def test_a_job_goes_on_after_lost_answers_and_a_kill_of_the_catalog(desk: Desk, rest: RestServer, front: Front) -> None:
    lake = Lake(rest, "faults")
    lake.make("orders")
    create(desk, front)
    desk.create(target="lake.faults.orders", properties='"max_interval"="1"')
    desk.put_orders("a.csv", 0, 20)
    front.lose_commits = 1
    desk.run()
    assert front.lost == 1
    assert lake.ids("orders") == [-1, *range(20)]
    service = Scheduler(desk.lading)
    service.start()
    try:
        rest.kill()
        desk.put_orders("b.csv", 20, 20)
        until(lambda: "did not answer" in desk.show("ErrorMsg"), "the job pauses, and says why")
        with pytest.raises(LadingError, match="catalog"):
            desk.sql("SHOW DATABASES FROM lake")
        rest.start()
        until(lambda: lake.ids("orders") == [-1, *range(40)], "the job goes on by itself")
        until(lambda: desk.show("Status") == "RUNNING", "and says so")
    finally:
        service.close()
    assert desk.lading.verify("j").is_clean


@pytest.mark.java
def test_a_token_is_asked_for_and_a_table_that_is_gone_pauses_the_job(
    desk: Desk, rest: RestServer, front: Front
) -> None:
    lake = Lake(rest, "guarded")
    lake.make("orders")
    front.token = secret("token")
    more = ', "iceberg.rest.security.type" = "oauth2", "iceberg.rest.oauth2.token" = "{}"'
    with pytest.raises(TableError, match="catalog lake may not be read") as caught:
        create(desk, front, more=more.format(secret("wrong")))
    assert secret("wrong") not in str(caught.value)
    assert len(desk.sql("SHOW CATALOGS")) == 1
    create(desk, front, more=more.format(front.token))
    desk.create(target="lake.guarded.orders")
    front.token = secret("another")
    desk.put_orders("a.csv", 0, 5)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    desk.sql(f'ALTER CATALOG lake SET PROPERTIES ("iceberg.rest.oauth2.token" = "{front.token}")')
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert lake.ids("orders") == [-1, *range(5)]
    lake.catalog.drop_table("guarded.orders")
    desk.put_orders("b.csv", 5, 5)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "lake.guarded.orders" in desk.show("ErrorMsg")


@pytest.mark.java
def test_what_a_server_says_leads_nowhere_that_nobody_named(desk: Desk, rest: RestServer, front: Front) -> None:
    lake = Lake(rest, "hostile")
    lake.make("orders")
    front.overrides = {"py-io-impl": "os.system", "oauth2-server-uri": "http://127.0.0.1:1", "auth.impl": "os.system"}
    front.config = {"py-io-impl": "os.system", "s3.endpoint": "http://169.254.169.254"}
    create(desk, front)
    assert len(desk.sql("DESCRIBE lake.hostile.orders")) == 3
    front.overrides = {}
    front.redirect = rest.url
    with pytest.raises(LadingError, match="did not answer as it should"):
        desk.sql("SHOW DATABASES FROM lake")
    front.redirect = ""
    # Files of this machine are the catalog's only where its warehouse is a folder, and only in it.
    desk.sql('ALTER CATALOG lake SET PROPERTIES ("warehouse" = "elsewhere")')
    with pytest.raises(StorageError, match="not a place that it may name"):
        desk.sql("DESCRIBE lake.hostile.orders")
    with pytest.raises(StorageError):
        desk.create(target="lake.hostile.orders")
    assert desk.sql('SELECT Name FROM jobs("type"="insert")') == []
