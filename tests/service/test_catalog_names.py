"""One name in two catalogs: every statement means the table that it names, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from lading.errors import (
    ConfigError,
    ConflictError,
    DeniedError,
    LadingError,
    NotFoundError,
    SqlError,
    TableError,
    TableNotFoundError,
)
from lading.http.app import create_app
from lading.service.lineage.rounds import LineageRounds
from lading.service.scheduling.compactor import CompactionRounds
from lading.service.telemetry.metrics import Metrics
from tests.http.rig import JSON, rules
from tests.lineage.test_rounds import settings
from tests.service.conftest import Desk
from tests.service.routine_fakes import Desk as Bench
from tests.service.routine_fakes import bench
from tests.service.routine_words import create
from tests.service.test_catalog_statements import SCHEMA, properties
from tests.service.test_rollbacks import LocalDesk
from tests.service.test_rollbacks import theirs as as_others
from tests.store.postgres import PostgresServer

__all__ = ["bench"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


@pytest.fixture
def theirs(desk: Desk, postgres: PostgresServer, tmp_path: Path) -> Iterator[SqlCatalog]:
    """The catalog `lake` as others use it, with sales.orders; the installation has sales.orders, too."""
    uri = postgres.new_database()
    warehouse = f"file://{tmp_path}/lake"
    catalog = SqlCatalog("lake", uri=uri.replace("postgresql://", "postgresql+psycopg://"), warehouse=warehouse)
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA)
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.sql("CREATE DATABASE sales")
    desk.table("sales.orders", form="iceberg")
    yield catalog
    catalog.close()


def load_both(desk: Desk, batches: int = 2) -> None:
    """So many small files in each of the two tables."""
    for name, target in (("ours", "sales.orders"), ("theirs", "lake.sales.orders")):
        desk.create(name, target)
    for number in range(batches):
        desk.put_orders(f"{number}.csv", number, 1)
        desk.run()


def files(desk: Desk, theirs: SqlCatalog) -> tuple[int, int]:
    ours = desk.lading.catalog.open_table("sales", "orders").files()
    return len(ours), len(list(theirs.load_table("sales.orders").scan().plan_files()))


@pytest.mark.parametrize("words", ["ADMIN COMPACT TABLE {}", "OPTIMIZE {}"])
def test_compaction_means_the_table_of_the_catalog(desk: Desk, theirs: SqlCatalog, words: str) -> None:
    load_both(desk)
    assert files(desk, theirs) == (2, 2)
    ((name, *_),) = desk.sql(words.format("lake.sales.orders"))
    assert (name, files(desk, theirs)) == ("lake.sales.orders", (2, 1))
    desk.sql("SWITCH lake")
    assert desk.sql(words.format("sales.orders")) == []  # In lake; nothing is left to do there.
    assert files(desk, theirs) == (2, 1)
    ((name, *_),) = desk.sql(words.format("internal.sales.orders"))
    assert (name, files(desk, theirs)) == ("sales.orders", (1, 1))
    assert desk.lading.verify("theirs").is_clean
    assert desk.lading.verify("ours").is_clean


def test_who_may_compact_a_table_of_a_catalog_may_not_compact_ours(desk: Desk, theirs: SqlCatalog) -> None:
    load_both(desk)
    desk.sql("CREATE USER 'ann'; GRANT ADMIN ON lake.sales.orders TO 'ann'")
    ann = desk.lading.session("ann")
    with pytest.raises(DeniedError):
        ann.sql("OPTIMIZE sales.orders")
    # A name that leads nowhere is not cut down to one of ours.
    desk.sql("GRANT ADMIN ON nolake.*.* TO 'ann'")
    for statement in (
        "OPTIMIZE nolake.sales.orders",
        "ADMIN COMPACT TABLE nolake.sales.orders",
        "SHOW COMPACTION FROM nolake.sales.orders",
        'ALTER TABLE nolake.sales.orders SET ("compaction" = "OFF")',
        "ALTER TABLE nolake.sales.orders ADD COLUMN more INT",
        "DESCRIBE nolake.sales.orders",
        "ADMIN CLEAN ORPHANS FROM nolake.sales.orders",
        "DROP TABLE nolake.sales.orders",
        "SELECT * FROM nolake.sales.orders",
    ):
        with pytest.raises((NotFoundError, TableNotFoundError, DeniedError)):
            ann.sql(statement)
    assert files(desk, theirs) == (2, 2)
    assert "OFF" not in [row[1] for row in desk.sql("SHOW COMPACTION") if row[0] == "sales.orders"]
    ann.sql("OPTIMIZE lake.sales.orders")
    assert files(desk, theirs) == (2, 1)


def test_the_mode_of_a_table_of_a_catalog_is_its_own(desk: Desk, theirs: SqlCatalog) -> None:
    desk.sql('ALTER TABLE sales.orders SET ("compaction" = "OFF")')
    desk.sql('ALTER TABLE lake.sales.orders SET ("compaction" = "AUTO")')
    assert desk.lading.store.read_setting("compaction/sales.orders") == "OFF"
    assert desk.lading.store.read_setting("compaction/lake.sales.orders") == "AUTO"
    # Another table of that name has no mode of its own yet.
    desk.sql("DROP TABLE lake.sales.orders")
    assert not desk.lading.store.read_setting("compaction/lake.sales.orders")
    assert desk.lading.store.read_setting("compaction/sales.orders") == "OFF"
    with pytest.raises(TableNotFoundError):
        desk.sql('ALTER TABLE lake.sales.orders SET ("compaction" = "AUTO")')


def test_the_files_of_a_table_of_a_catalog_are_counted(desk: Desk, theirs: SqlCatalog) -> None:
    with theirs.load_table("sales.orders").update_spec() as update:
        update.add_identity("city")
    desk.create(target="lake.sales.orders")
    for number in range(12):
        desk.put_orders(f"{number:02}.csv", number, 1)
        desk.run()
    desk.put("x.csv", ["99,ulm,1.00"])
    desk.run()
    shown = {row[0]: row[1:5] for row in desk.sql("SHOW COMPACTION")}
    assert shown == {"sales.orders": ("AUTO", 0, 0, 0), "lake.sales.orders": ("OFF", 2, 13, 13)}
    assert sorted(row[:3] for row in desk.sql("SHOW COMPACTION FROM lake.sales.orders")) == [
        ("city=essen", 12, 12),
        ("city=ulm", 1, 1),
    ]
    metrics = Metrics(desk.lading.store, desk.lading.clock)
    rounds = CompactionRounds(desk.lading, metrics)
    rounds.look()
    told = metrics.render().decode()
    assert 'lading_table_small_files{table="lake.sales.orders"} 13.0' in told
    assert 'lading_table_partition_files_max{table="lake.sales.orders"} 12.0' in told
    assert files(desk, theirs)[1] == 13
    # Somebody who has nothing there does not hear of it.
    desk.sql("CREATE USER 'ann'; GRANT SELECT ON sales.orders TO 'ann'")
    assert [row[0] for row in desk.lading.session("ann").sql("SHOW COMPACTION")[-1].rows] == ["sales.orders"]
    desk.sql('ALTER TABLE lake.sales.orders SET ("compaction" = "AUTO")')
    assert [row[1] for row in desk.sql("SHOW COMPACTION") if row[0] == "lake.sales.orders"] == ["AUTO"]
    desk.sql("DROP JOB WHERE jobName = 'j'")
    rounds.look()
    assert "lake.sales.orders" not in metrics.render().decode()


def test_purge_deletes_the_files_of_a_table_of_a_catalog(desk: Desk, theirs: SqlCatalog, tmp_path: Path) -> None:
    load_both(desk)
    place = tmp_path / "lake" / "sales" / "orders"
    data = list(place.rglob("*.parquet"))
    assert len(data) == 2
    desk.sql("DROP JOB WHERE jobName = 'theirs'; DROP JOB WHERE jobName = 'ours'")
    (place / "notes.txt").write_text("somebody's")
    desk.sql("DROP TABLE lake.sales.orders PURGE")
    assert not theirs.table_exists("sales.orders")
    assert [path.name for path in place.rglob("*") if path.is_file()] == ["notes.txt"]
    assert len(desk.lading.catalog.open_table("sales", "orders").files()) == 2
    assert sorted(desk.lading.catalog.open_table("sales", "orders").scan()["id"].to_pylist()) == [0, 1]


@pytest.mark.parametrize("said", ["false", "maybe"])
def test_purge_is_refused_where_files_may_be_those_of_another_table(desk: Desk, theirs: SqlCatalog, said: str) -> None:
    load_both(desk, batches=1)
    desk.sql("DROP JOB WHERE jobName = 'theirs'; DROP JOB WHERE jobName = 'ours'")
    shared = [task.file.file_path for task in theirs.load_table("sales.orders").scan().plan_files()]
    schema = theirs.load_table("sales.orders").schema()
    theirs.create_table("sales.clone", schema, properties={"gc.enabled": said}).add_files(shared)
    with pytest.raises(TableError, match=r"PURGE is refused for the table sales.clone: gc.enabled is"):
        desk.sql("DROP TABLE lake.sales.clone PURGE")
    assert theirs.table_exists("sales.clone")
    desk.sql("DROP TABLE lake.sales.clone")
    assert theirs.load_table("sales.orders").scan().to_arrow()["id"].to_pylist() == [0]


@pytest.mark.parametrize("more", ["", " PURGE"])
def test_files_that_may_be_those_of_another_table_stay(desk: Desk, more: str) -> None:
    desk.table("orders", form="iceberg", more='TBLPROPERTIES ("gc.enabled" = "false")')
    desk.create(target="orders")
    desk.put_orders("a.csv", 0, 3)
    desk.run()
    with as_others(desk) as table:
        newest = table.metadata_location
    desk.sql(f"DROP JOB WHERE jobName = 'j'; DROP TABLE orders{more}")
    assert desk.sql("SHOW TABLES") == []
    assert sorted(StaticTable.from_metadata(newest).scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
    with pytest.raises(ConflictError, match="already an Iceberg table at"):
        desk.table("orders", form="iceberg")


def test_alter_job_knows_its_table_from_any_catalog(desk: Desk, theirs: SqlCatalog) -> None:
    desk.put_orders("a.csv", 0, 1)
    desk.create(target="lake.sales.orders")
    desk.sql("PAUSE JOB WHERE jobName = 'j'; SWITCH lake")
    alter = (
        "ALTER JOB j INSERT INTO {} ({}) SELECT {} "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    desk.sql(alter.format("sales.orders", "id", "id"))
    desk.sql("USE sales")
    desk.sql(alter.format("orders", "id, amount", "id, amount"))
    desk.sql("USE internal.sales")
    desk.sql(alter.format("lake.sales.orders", "id, city", "id, city"))
    for other in ("orders", "sales.orders", "internal.sales.orders"):
        with pytest.raises(SqlError, match="target table cannot be modified"):
            desk.sql(alter.format(other, "id", "id"))
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    rows = theirs.load_table("sales.orders").scan().to_arrow()
    assert rows.to_pylist() == [{"id": 0, "city": "essen", "amount": None}]


def test_create_job_finds_the_table_of_the_catalog(desk: Desk, theirs: SqlCatalog) -> None:
    """Its columns are not asked of a source that has nothing yet."""
    source = f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    job = (
        "CREATE JOB {0} ON STREAMING DO CREATE TABLE IF NOT EXISTS {1} USING iceberg INSERT INTO {1} SELECT * " + source
    )
    desk.sql(job.format("j", "lake.sales.orders"))
    with pytest.raises(LadingError, match="has nothing yet to learn columns from"):
        desk.sql(job.format("k", "lake.sales.others"))
    desk.put_orders("a.csv", 0, 2)
    desk.sql(job.format("k", "lake.sales.others"))
    desk.run()
    assert len(theirs.load_table("sales.orders").scan().to_arrow()) == 2
    assert any(name.startswith("lading.head.") for name in theirs.load_table("sales.others").properties)
    assert desk.sql("SHOW TABLES FROM internal.sales") == [("orders",)]
    assert len(desk.lading.catalog.open_table("sales", "orders").files()) == 0


@pytest.mark.parametrize(("way", "ids"), [("KEEP POSITION", [20]), ("LOAD AGAIN", [0, 10, 20])])
def test_another_table_of_the_name_stops_the_job_and_both_ways_lead_on(
    desk: Desk, theirs: SqlCatalog, way: str, ids: list[int]
) -> None:
    desk.create(target="lake.sales.orders")
    for first in (0, 10):
        desk.put_orders(f"{first:02}.csv", first, 1)
        desk.run()
    theirs.drop_table("sales.orders")
    desk.run()
    assert (desk.show("Status"), "There is no Iceberg table" in desk.show("ErrorMsg")) == ("PAUSED", True)
    theirs.create_table("sales.orders", SCHEMA)
    desk.put_orders("20.csv", 20, 1)
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert "had committed seq 2, the table has no head" in desk.show("ErrorMsg")
    assert theirs.load_table("sales.orders").current_snapshot() is None
    desk.sql(f"ACCEPT ROLLBACK OF JOB j {way}; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert sorted(theirs.load_table("sales.orders").scan().to_arrow()["id"].to_pylist()) == ids
    assert desk.lading.verify("j").is_clean


def test_a_namespace_within_another_one_is_a_database(desk: Desk, theirs: SqlCatalog) -> None:
    theirs.create_namespace(("sales", "eu"))
    theirs.create_table(("sales", "eu", "orders"), SCHEMA)
    with pytest.raises(SqlError, match=r"in quotes: catalog\.`outer\.inner`\.name"):
        desk.create(target="lake.sales.eu.orders")
    desk.put_orders("a.csv", 0, 2)
    desk.create(target="lake.`sales.eu`.orders")
    assert "INSERT INTO lake.`sales.eu`.orders" in str(desk.sql("SHOW CREATE JOB j")[0][1])
    desk.run()
    assert theirs.load_table(("sales", "eu", "orders")).scan().to_arrow()["id"].to_pylist() == [0, 1]
    assert theirs.load_table("sales.orders").scan().to_arrow().num_rows == 0
    desk.sql("USE lake.`sales.eu`")
    assert desk.sql("SHOW TABLES") == [("orders",)]


def test_lineage_tells_of_the_table_of_the_catalog(desk: Desk, theirs: SqlCatalog, tmp_path: Path) -> None:
    desk.create(target="lake.sales.orders")
    rounds = LineageRounds(desk.lading, settings(openlineage_file=tmp_path / "lineage.jsonl"))
    desk.put_orders("a.csv", 0, 1)
    desk.run()
    rounds.look()
    event = json.loads((tmp_path / "lineage.jsonl").read_text().splitlines()[-1])
    (told,) = event["outputs"]
    assert told["facets"]["symlinks"]["identifiers"][0]["name"] == "lake.sales.orders"
    assert [field["name"] for field in told["facets"]["schema"]["fields"]] == ["id", "city", "amount"]
    assert told["name"].endswith("/lake/sales/orders")


def test_a_routine_load_in_a_catalog_is_controlled_by_its_name(
    bench: Bench, postgres: PostgresServer, tmp_path: Path
) -> None:
    uri = postgres.new_database()
    catalog = SqlCatalog(
        "lake", uri=uri.replace("postgresql://", "postgresql+psycopg://"), warehouse=f"file://{tmp_path}/lake"
    )
    catalog.create_namespace("sales")
    bench.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}; CREATE DATABASE sales")
    for place in ("sales", "lake.sales"):
        bench.sql(f"CREATE TABLE {place}.t (id BIGINT NOT NULL, city STRING) USING iceberg")
        create(bench, name=f"{place}.r")
    client = TestClient(create_app(bench.lading, rules=rules()), raise_server_exceptions=False)

    def states() -> list[tuple[str, str]]:
        jobs = client.get("/api/jobs").json()["jobs"]
        return [(job["name"], job["target"]) for job in jobs if job["state"] == "PAUSED"]

    # The session of an operation is in the database of the job, and the name that it writes means the same there.
    assert client.post("/api/jobs/lake.sales.r/pause", headers=JSON).status_code == 200
    assert states() == [("lake.sales.r", "lake.sales.t")]
    assert client.post("/api/jobs/lake.sales.r/resume", headers=JSON).status_code == 200
    assert states() == []
    bench.sql("SWITCH lake; PAUSE ROUTINE LOAD FOR sales.r")
    assert states() == [("lake.sales.r", "lake.sales.t")]
    bench.sql("STOP ROUTINE LOAD FOR internal.sales.r")
    assert [job["name"] for job in client.get("/api/jobs").json()["jobs"]] == ["lake.sales.r"]
    catalog.close()


def test_one_table_under_two_names(desk: Desk, theirs: SqlCatalog, tmp_path: Path) -> None:
    """The same server, known as two catalogs: two jobs are two jobs, and neither loses its table to the other name."""
    ((_, made),) = desk.sql("SHOW CREATE CATALOG lake")
    pond = str(made).replace("CATALOG lake", "CATALOG pond")
    desk.sql(pond[: pond.rindex(")")] + ', "iceberg.jdbc.catalog_name" = "lake")')
    desk.create("one", "lake.sales.orders")
    desk.create("two", "pond.sales.orders")
    for number in range(2):
        desk.put_orders(f"{number}.csv", number, 1)
        desk.run()
    assert sorted(theirs.load_table("sales.orders").scan().to_arrow()["id"].to_pylist()) == [0, 0, 1, 1]
    assert desk.lading.verify("one").is_clean
    assert desk.lading.verify("two").is_clean
    with pytest.raises(ConflictError):
        desk.sql("CREATE TABLE pond.sales.orders (id BIGINT) USING iceberg")
    desk.sql("DROP JOB WHERE jobName = 'two'")
    for name in ("lake", "pond"):
        with pytest.raises(ConfigError, match="is loaded by one"):
            desk.sql(f"DROP TABLE {name}.sales.orders")
    assert theirs.table_exists("sales.orders")
    # A table of the installation is not put among its files, nor inside of them.
    place = tmp_path / "lake" / "sales" / "orders"
    before = sorted(place.rglob("*"))
    with pytest.raises(ConflictError, match="files of another table, of the format iceberg"):
        desk.sql(f"CREATE TABLE mine (id BIGINT) USING delta LOCATION '{place}'")
    with pytest.raises(LadingError):
        desk.sql(f"CREATE TABLE mine (id BIGINT) USING iceberg LOCATION '{place}'")
    assert sorted(place.rglob("*")) == before


def test_a_location_of_another_table_is_refused(desk: Desk, tmp_path: Path) -> None:
    place = tmp_path / "place"
    desk.sql(f"CREATE TABLE a (id BIGINT) USING delta LOCATION '{place}'")
    for other in (place, place / "inner", tmp_path, f"{place}/../place"):
        for form in ("delta", "iceberg"):
            with pytest.raises(LadingError):
                desk.sql(f"CREATE TABLE b (id BIGINT) USING {form} LOCATION '{other}'")
    assert desk.sql("SHOW TABLES") == [("a",)]
    assert sorted(path.name for path in place.iterdir()) == ["_delta_log", "_lading"]
