"""A catalog in a Hive metastore, from the door: its own server, killed, cut off and shared with others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import polars as pl
import pyarrow as pa
import pytest
from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from lading.errors import ConfigError, ConflictError, LadingError, SqlError, StorageError, TableNotFoundError
from lading.model.catalog import CatalogAccess, CatalogKind
from lading.model.s3_access import S3Access
from lading.net.addresses import AddressRules
from lading.service.scheduling.scheduler import Scheduler
from lading.tables.iceberg.external import open_external
from lading.tables.iceberg.hive import LockedHive
from lading.testing.clock import ManualClock
from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.service.test_scheduler import until
from tests.support.hive_metastore import Metastore, MetastoreFront
from tests.support.lakes import hms_lake
from tests.tables.test_contract_hive import access_to

pytestmark = pytest.mark.java


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


@pytest.fixture
def front(metastore: Metastore) -> Iterator[MetastoreFront]:
    made = MetastoreFront(metastore)
    yield made
    made.close()


def create(desk: Desk, front: MetastoreFront, database: str) -> None:
    statement = hms_lake(front.behind).statement.replace(front.behind.uri, front.uri)
    desk.sql(f"{statement}; CREATE DATABASE lake.{database}")


def ids(metastore: Metastore, name: str) -> list[int]:
    """As Polars reads it, from the metadata that the metastore names."""
    found = open_external(access_to(metastore)).load_table(name).metadata_location
    return sorted(pl.scan_iceberg("/" + found.removeprefix("file:").lstrip("/")).collect()["id"].to_list())


def test_databases_and_tables_are_made_and_dropped_in_it(
    desk: Desk, metastore: Metastore, front: MetastoreFront
) -> None:
    create(desk, front, "web")
    assert {("web",), ("default",)} <= set(desk.sql("SHOW DATABASES FROM lake"))
    # In the warehouse of the catalog, though the metastore has a place of its own for databases.
    found = open_external(access_to(metastore)).load_namespace_properties("web")["location"]
    assert found.removeprefix("file:").lstrip("/") == f"{metastore.warehouse}/web.db".lstrip("/")
    assert desk.sql("SHOW TABLES FROM lake.web") == []
    desk.table("lake.web.visits", form="iceberg", more="PARTITIONED BY (city)")
    with pytest.raises(ConflictError):
        desk.table("lake.web.visits", form="iceberg")
    assert desk.sql("SHOW TABLES FROM lake.web") == [("visits",)]
    assert [row[0] for row in desk.sql("DESCRIBE lake.web.visits")] == ["id", "city", "amount"]
    with pytest.raises(ConflictError, match="not empty"):
        desk.sql("DROP DATABASE lake.web")
    # The metastore takes every spelling of a name for the same table; who loads it is known by one.
    for statement in ("DESCRIBE lake.web.Visits", "DROP TABLE lake.Web.visits", "CREATE DATABASE lake.Web2"):
        with pytest.raises(TableNotFoundError, match="in small letters"):
            desk.sql(statement)
    make_plain(metastore, "web", "logs")
    # A table of Hive itself is none of Iceberg's.
    assert desk.sql("SHOW TABLES FROM lake.web") == [("visits",)]
    with pytest.raises(LadingError, match="of another kind"):
        desk.sql("DESCRIBE lake.web.logs")
    place = metastore.warehouse / "web.db" / "visits"
    desk.sql("DROP TABLE lake.web.visits")
    assert list((place / "metadata").iterdir())
    desk.table("lake.web.hits", form="iceberg")
    desk.sql("DROP TABLE lake.web.hits PURGE")
    assert not list((metastore.warehouse / "web.db" / "hits").rglob("*.json"))
    desk.sql('SHOW CREATE CATALOG lake; ALTER CATALOG lake SET PROPERTIES ("s3.region" = "eu-west-1")')


def make_plain(metastore: Metastore, database: str, name: str) -> None:
    """A table as Hive makes it."""
    stored = StorageDescriptor(
        cols=[FieldSchema(name="id", type="int")],
        location=f"file://{metastore.warehouse}/{name}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    table = HiveTable(
        dbName=database,
        tableName=name,
        owner="them",
        sd=stored,
        tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
        partitionKeys=[],
    )
    catalog = open_external(access_to(metastore))
    assert isinstance(catalog, LockedHive)
    with catalog._client as client:
        client.create_table(table)


def test_a_lost_answer_loads_nothing_twice(desk: Desk, metastore: Metastore, front: MetastoreFront) -> None:
    create(desk, front, "lost")
    desk.table("lake.lost.orders", form="iceberg")
    desk.create(target="lake.lost.orders")
    desk.put_orders("a.csv", 0, 20)
    front.lose_commits = 1
    desk.run()
    assert front.lost == 1
    # The lock was given back over another connection: otherwise the next one would wait for minutes.
    desk.put_orders("b.csv", 20, 20)
    desk.run()
    assert ids(metastore, "lost.orders") == [*range(40)]
    assert desk.lading.verify("j").is_clean
    open_external(access_to(metastore)).drop_table("lost.orders")
    desk.put_orders("c.csv", 40, 5)
    desk.run()
    assert desk.show("Status") == "PAUSED"
    assert "lake.lost.orders" in desk.show("ErrorMsg")


@pytest.mark.slow
def test_a_job_goes_on_after_a_kill_of_the_metastore(desk: Desk, metastore: Metastore, front: MetastoreFront) -> None:
    create(desk, front, "faults")
    desk.table("lake.faults.orders", form="iceberg")
    desk.create(target="lake.faults.orders", properties='"max_interval"="1"')
    desk.put_orders("a.csv", 0, 20)
    desk.run()
    service = Scheduler(desk.lading)
    service.start()
    try:
        metastore.kill()
        desk.put_orders("b.csv", 20, 20)
        until(lambda: "did not answer" in desk.show("ErrorMsg"), "the job pauses, and says why")
        with pytest.raises(StorageError, match="catalog"):
            desk.sql("SHOW DATABASES FROM lake")
        metastore.start()
        until(lambda: ids(metastore, "faults.orders") == [*range(40)], "the job goes on by itself")
        until(lambda: desk.show("Status") == "RUNNING", "and says so")
    finally:
        service.close()
    assert desk.lading.verify("j").is_clean


def test_what_is_wrong_is_said_at_create(desk: Desk, front: MetastoreFront) -> None:
    said = hms_lake(front.behind).statement
    for uri, error, wrong in [
        ("http://h:9083", SqlError, "begins with thrift"),
        ("thrift://169.254.169.254:9083", SqlError, "always refused"),
        ("thrift://127.0.0.1:9", StorageError, "catalog lake did not answer"),
    ]:
        with pytest.raises(error, match=wrong):
            desk.sql(said.replace(front.behind.uri, uri))
    with pytest.raises(SqlError, match=r"no property hive\.metastore\.sasl\.enabled"):
        desk.sql(said.replace('"warehouse"', '"hive.metastore.sasl.enabled" = "true", "warehouse"'))
    assert len(desk.sql("SHOW CATALOGS")) == 1
    # Of several, the first that takes a connection.
    desk.sql(said.replace(front.behind.uri, f"thrift://127.0.0.1:9,{front.uri}"))
    assert ("default",) in desk.sql("SHOW DATABASES FROM lake")


def test_a_name_that_leads_elsewhere_by_now_is_not_talked_to(metastore: Metastore) -> None:
    reached = access_to(metastore)
    closed = CatalogAccess(
        name="hive",
        kind=CatalogKind.HMS,
        properties=reached.properties,
        storage=S3Access(addresses=AddressRules(), roots=reached.storage.roots),
    )
    with pytest.raises(ConfigError, match="leads to an address that this statement must not reach"):
        open_external(closed).list_namespaces()


ROW = pa.table({"id": pa.array([1], pa.int64())})


def made(metastore: Metastore, name: str) -> Table:
    catalog = open_external(access_to(metastore))
    if not catalog.namespace_exists("alone"):
        catalog.create_namespace("alone")
    return catalog.create_table(f"alone.{name}", ROW.schema, properties={"commit.retry.num-retries": "0"})


def test_of_two_that_commit_from_one_state_one_wins(metastore: Metastore) -> None:
    made(metastore, "raced")
    tables = [open_external(access_to(metastore)).load_table("alone.raced") for _ in range(4)]
    start, outcomes = Barrier(len(tables)), list[str]()

    def commit(table: Table) -> None:
        start.wait()
        try:
            table.append(ROW)
            outcomes.append("landed")
        except CommitFailedException:
            outcomes.append("refused")

    threads = [Thread(target=commit, args=(table,)) for table in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["landed", "refused", "refused", "refused"]
    assert ids(metastore, "alone.raced") == [1]


def test_a_change_that_comes_late_is_not_sent(metastore: Metastore) -> None:
    """Also when the machine slept meanwhile, in which monotonic clocks stand still."""
    made(metastore, "late")
    access, clock = access_to(metastore), ManualClock()
    catalog = LockedHive(access, {}, clock)
    table = catalog.load_table("alone.late")
    write = catalog._write_metadata

    def write_slowly(*given: object, **named: object) -> None:
        write(*given, **named)  # type: ignore[arg-type]
        clock.suspend(61)

    catalog._write_metadata = write_slowly  # type: ignore[method-assign]
    with pytest.raises(CommitFailedException, match="nothing was sent"):
        table.append(ROW)
    assert ids(metastore, "alone.late") == []


def test_what_others_say_of_the_table_stays(metastore: Metastore) -> None:
    """How Hive reads it, and properties of theirs; figures of the newest snapshot are made new."""
    table = made(metastore, "theirs")
    catalog = table.catalog
    assert isinstance(catalog, LockedHive)
    with catalog._client as client:
        known = client.get_table("alone", "theirs")
        known.sd.inputFormat = "org.apache.iceberg.mr.hive.HiveIcebergInputFormat"
        known.parameters |= {"comment": "theirs", "numRows": "0", "current-snapshot-summary": "{}"}
        client.alter_table_with_environment_context("alone", "theirs", known, None)
    table.append(ROW)
    with table.transaction() as changes:
        changes.set_properties({"lading.head.x": "long", "owner": "them"})
    with catalog._client as client:
        known = client.get_table("alone", "theirs")
    assert known.sd.inputFormat == "org.apache.iceberg.mr.hive.HiveIcebergInputFormat"
    said = known.parameters
    assert (said["comment"], said["numRows"], said["owner"]) == ("theirs", "1", "them")
    assert not {"lading.head.x", "current-snapshot-summary"} & set(said)
    assert said["metadata_location"] == catalog.load_table("alone.theirs").metadata_location
