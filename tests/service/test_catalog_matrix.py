"""The same job into a table of others, for each kind of catalog and each format: made, changed and read by the JVM.

Between the batches the engine on the JVM inserts, rewrites, expires and cleans through the same catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count, takewhile
from pathlib import Path
from threading import Event, Thread
from typing import Any

import deltalake
import duckdb
import polars as pl
import pytest
from pyiceberg.table import StaticTable

from tests.service.conftest import Desk
from tests.service.test_rollbacks import LocalDesk
from tests.store.postgres import PostgresServer
from tests.support.hive_metastore import OLD, Metastore
from tests.support.jvm_engine import HIVE_4, EngineError, JvmEngine, serve_engine
from tests.support.lakes import LakeCatalog, glue_lake, hms_lake, jdbc_lake, rest_lake, s3a
from tests.support.maven import JarsMissingError
from tests.support.nessie import serve_nessie
from tests.support.rest_catalog import RestServer, serve_rest
from tests.tables.s3_server import S3Server, serve_s3

FAR = "older_than => TIMESTAMP '2099-01-01 00:00:00', retain_last => 1"
SLOW = pytest.mark.slow
BETWEEN = (
    "INSERT INTO {t} VALUES (-2, 'between', 1.25)",
    "CALL rewrite_data_files(options => map('rewrite-all', 'true'))",
    f"CALL expire_snapshots({FAR})",
    "CALL remove_orphan_files(prefix_listing => true)",
    "INSERT INTO {t} VALUES (-3, 'after', NULL)",
)
_NUMBERS = count()


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    try:
        with serve_rest(tmp_path_factory.mktemp("rest")) as server:
            yield server
    except JarsMissingError as error:
        pytest.skip(f"NOT PROVED, no REST catalog: {error}")


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    """Of its own: in the shared one, a run looks for secrets in all objects, and engines write what they like."""
    with serve_s3() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


class Adopted:
    """A table that the JVM made in a catalog, and the words for it."""

    def __init__(self, lake: LakeCatalog, jvm: JvmEngine, version: int) -> None:
        number = next(_NUMBERS)
        self.lake, self._jvm = lake, jvm
        self.database, self._session = f"sales{number}", f"matrix{number}"
        jvm.open(self._session, lake.engine)
        self.sql(f"CREATE NAMESPACE lading.{self.database}")
        self.sql(
            "CREATE TABLE {t} (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2)) USING iceberg "
            f"PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '{version}', 'kept-by' = 'them')"
        )
        self.sql("INSERT INTO {t} VALUES (-1, 'before', 0.50)")

    def sql(self, text: str) -> list[dict[str, Any]]:
        """One statement of the JVM; a procedure is called for the table."""
        if text.startswith("CALL "):
            name, _, arguments = text.removeprefix("CALL ").removesuffix(")").partition("(")
            text = f"CALL lading.system.{name}(table => '{self.database}.orders', {arguments})"
        return self._jvm.sql(text.replace("{t}", f"lading.{self.database}.orders"), self._session)

    def rows(self) -> list[tuple[Any, ...]]:
        """As Spark on the JVM reads them."""
        found = self.sql("SELECT id, city, CAST(amount AS STRING) amount FROM {t} ORDER BY id")
        return [(row["id"], row["city"], row["amount"]) for row in found]

    def rows_elsewhere(self) -> list[tuple[Any, ...]]:
        """As Polars reads them, from the metadata that the JVM finds through the catalog."""
        (newest,) = self.sql("SELECT file FROM {t}.metadata_log_entries ORDER BY timestamp DESC, file DESC LIMIT 1")
        place = str(newest["file"])
        if not self.lake.files:
            place = "/" + place.removeprefix("file:").lstrip("/")
        scan = pl.scan_iceberg(StaticTable.from_metadata(place, dict(self.lake.files)), reader_override="pyiceberg")
        return _sorted(scan.collect())


def _sorted(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    rows = frame.select("id", "city", pl.col("amount").cast(pl.String)).sort("id").rows()
    return list(rows)


def orders(first: int, number: int) -> list[tuple[int, str, str]]:
    """What `put_orders` puts, as rows."""
    return [(order, "essen", f"{order % 100}.50") for order in range(first, first + number)]


def walk(desk: Desk, table: Adopted, between: Sequence[str] = BETWEEN) -> None:
    """Six batches and a restart; the JVM does something after each."""
    desk.sql(table.lake.statement)
    desk.create(target=f"lake.{table.database}.orders")
    for number, statement in enumerate(between):
        desk.put_orders(f"{number}.csv", number * 10, 10)
        desk.run()
        assert desk.show("Status") == "RUNNING", desk.show("ErrorMsg")
        table.sql(statement)
    desk.restart()
    desk.put_orders("last.csv", 50, 10)
    desk.run()
    whole = [(-3, "after", None), (-2, "between", "1.25"), (-1, "before", "0.50"), *orders(0, 60)]
    assert table.rows() == whole, (desk.show("Status"), desk.show("ErrorMsg"))
    assert table.rows_elsewhere() == whole
    # What data skipping finds is what a full look finds.
    assert table.sql("SELECT count(*) n FROM {t} WHERE id = 42 AND city = 'essen' AND amount = 42.50") == [{"n": 1}]
    assert desk.lading.verify("j").is_clean
    said = {row["key"]: row["value"] for row in table.sql("SHOW TBLPROPERTIES {t}")}
    assert said["kept-by"] == "them"


@pytest.mark.parametrize("version", [pytest.param(2), pytest.param(3, marks=SLOW)])
def test_an_adopted_table_of_a_rest_catalog(desk: Desk, rest: RestServer, jvm: JvmEngine, version: int) -> None:
    walk(desk, Adopted(rest_lake(rest), jvm, version))


@SLOW
@pytest.mark.parametrize("version", [2, 3])
def test_an_adopted_table_of_a_jdbc_catalog(
    desk: Desk, postgres: PostgresServer, lakes_jvm: JvmEngine, version: int, tmp_path: Path
) -> None:
    walk(desk, Adopted(jdbc_lake(postgres, tmp_path / "lake"), lakes_jvm, version))


@SLOW
@pytest.mark.parametrize("version", [2, 3])
def test_an_adopted_table_of_a_glue_catalog(desk: Desk, store: S3Server, lakes_jvm: JvmEngine, version: int) -> None:
    walk(desk, Adopted(glue_lake(store), lakes_jvm, version))


@pytest.fixture
def hive_jvm(request: pytest.FixtureRequest, metastore: Metastore) -> JvmEngine:
    """With a client that this metastore answers: Spark's own, or one of Hive 4."""
    found: JvmEngine = request.getfixturevalue("lakes_jvm" if metastore.release is OLD else "hive_4_jvm")
    return found


@pytest.fixture(scope="module")
def hive_4_jvm() -> Iterator[JvmEngine]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(serve_engine(with_lakes=True, hive=HIVE_4))
        except JarsMissingError as missing:
            pytest.skip(f"NOT PROVED, no engine on the JVM: {missing}")
        yield running


@SLOW
@pytest.mark.parametrize("version", [2, 3])
def test_an_adopted_table_of_a_hive_metastore(
    desk: Desk, metastore: Metastore, hive_jvm: JvmEngine, version: int
) -> None:
    walk(desk, Adopted(hms_lake(metastore), hive_jvm, version))


@SLOW
def test_many_writers_of_one_table_in_a_hive_metastore(desk: Desk, metastore: Metastore, hive_jvm: JvmEngine) -> None:
    """The lock of the metastore holds between Lading and the JVM: nobody's commit is written over."""
    table = Adopted(hms_lake(metastore), hive_jvm, 2)
    desk.sql(table.lake.statement)
    desk.create(target=f"lake.{table.database}.orders")
    landed: list[int] = []
    stop = Event()

    def insert() -> None:
        for number in takewhile(lambda _: not stop.is_set(), count(1000)):
            with suppress(EngineError):  # It gives up after four tries of its own, and says so.
                table.sql(f"INSERT INTO {{t}} VALUES ({number}, 'theirs', NULL)")
                landed.append(number)

    thread = Thread(target=insert)
    thread.start()
    try:
        for number in range(15):
            desk.put_orders(f"{number:02d}.csv", number * 10, 10)
            desk.run()
            assert desk.show("Status") == "RUNNING", desk.show("ErrorMsg")
    finally:
        stop.set()
        thread.join()
    assert landed
    ids = [row[0] for row in table.rows()]
    assert len(ids) == len(set(ids))
    assert {-1, *range(150), *landed} <= set(ids), "somebody's commit was written over"
    assert desk.lading.verify("j").is_clean


@SLOW
@pytest.mark.parametrize("version", [2, 3])
def test_an_adopted_table_of_nessie(
    desk: Desk, store: S3Server, lakes_jvm: JvmEngine, version: int, tmp_path: Path
) -> None:
    """Another REST server than Iceberg's own. It forbids expiry and cleaning, which its own collector does."""
    between = [statement for statement in BETWEEN if "expire" not in statement and "orphan" not in statement]
    allowed = (*between[:2], "CALL rewrite_manifests(use_caching => false)", "SELECT 1", between[-1])
    try:
        with serve_nessie(tmp_path, store) as nessie:
            walk(desk, Adopted(nessie.lake, lakes_jvm, version), allowed)
    except JarsMissingError as error:
        pytest.skip(f"NOT PROVED, no Nessie: {error}")


class DeltaPlace:
    """A Delta table that the JVM made, at a path or in S3."""

    def __init__(self, path: Path, jvm: JvmEngine, store: S3Server | None) -> None:
        self._jvm, self._store, self._session = jvm, store, ""
        self.place = str(path / "lake" / "orders")
        if store is not None:
            self.place = f"s3://{store.make_bucket()}/lake/orders"
            self._session = f"delta{next(_NUMBERS)}"
            jvm.open(self._session, {"type": "hadoop", "warehouse": str(path), **s3a(store)})
        self.sql("CREATE TABLE {t} (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta")
        self.sql("INSERT INTO {t} VALUES (-1, 'before', 0.50)")

    def sql(self, text: str) -> list[dict[str, Any]]:
        place = self.place.replace("s3://", "s3a://")
        return self._jvm.sql(text.replace("{t}", f"delta.`{place}`"), self._session)

    @property
    def reach(self) -> str:
        """Of CREATE TABLE."""
        if self._store is None:
            return ""
        keys = self._store.options
        return (
            f' TBLPROPERTIES ("s3.endpoint" = "{keys.endpoint}", "s3.region" = "{keys.region}", "s3.access_key" = '
            f'"{keys.access_key}", "s3.secret_key" = "{keys.secret_key}", "use_path_style" = "true")'
        )

    def rows_elsewhere(self) -> list[tuple[Any, ...]]:
        """With DuckDB, of the files that delta-rs names."""
        options = {}
        if self._store is not None:
            keys = self._store.options
            options = {
                "AWS_ENDPOINT_URL": keys.endpoint,
                "AWS_REGION": keys.region,
                "AWS_ACCESS_KEY_ID": keys.access_key,
                "AWS_SECRET_ACCESS_KEY": keys.secret_key,
                "AWS_ALLOW_HTTP": "true",
            }
        whole = deltalake.DeltaTable(self.place, storage_options=options).to_pyarrow_dataset()
        with duckdb.connect() as connection:
            connection.register("whole", whole)
            return connection.sql("SELECT id, city, CAST(amount AS VARCHAR) FROM whole ORDER BY id").fetchall()


@SLOW
@pytest.mark.parametrize("where", ["path", "s3"])
def test_an_adopted_delta_table(tmp_path: Path, lakes_jvm: JvmEngine, store: S3Server, where: str) -> None:
    desk = LocalDesk(tmp_path)
    table = DeltaPlace(tmp_path, lakes_jvm, store if where == "s3" else None)
    desk.sql(f"CREATE TABLE orders USING delta LOCATION '{table.place}'{table.reach}")
    desk.create()
    between = (
        "INSERT INTO {t} VALUES (-2, 'between', 1.25)",
        "OPTIMIZE {t}",
        "VACUUM {t} RETAIN 168 HOURS",
        "DELETE FROM {t} WHERE id = 7",
        "INSERT INTO {t} VALUES (-3, 'after', NULL)",
    )
    for number, statement in enumerate(between):
        desk.put_orders(f"{number}.csv", number * 10, 10)
        desk.run()
        assert desk.show("Status") == "RUNNING", desk.show("ErrorMsg")
        table.sql(statement)
    desk.restart()
    desk.put_orders("last.csv", 50, 10)
    desk.run()
    whole = [(-3, "after", None), (-2, "between", "1.25"), (-1, "before", "0.50"), *orders(0, 7), *orders(8, 52)]
    found = table.sql("SELECT id, city, CAST(amount AS STRING) amount FROM {t} ORDER BY id")
    assert [(row["id"], row["city"], row["amount"]) for row in found] == whole, desk.show("ErrorMsg")
    assert table.rows_elsewhere() == whole
    desk.lading.close()
