"""A warehouse that may not be written to: said at CREATE, and a paused job with the reason when it comes later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import deltalake
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lading.errors import LadingError
from lading.storage.libraries import delta_options
from tests.console.local import LocalLading
from tests.store.postgres import PostgresServer
from tests.support.fault_proxy import FaultProxy, Weather, serve_faults
from tests.tables.s3_server import S3Server

WRITES = Weather(rate=1, faults=("denied",), only="^(PUT|POST|DELETE) ")
ALL = Weather(rate=1, faults=("denied",))


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with serve_faults(s3.endpoint, "s3") as made:
        yield made


class Desk:
    """A home whose tables are in a bucket behind the proxy: of its own, or of another catalog."""

    def __init__(self, path: Path, s3: S3Server, proxy: FaultProxy, postgres: PostgresServer) -> None:
        self.path, self.s3, self.proxy = path, s3, proxy
        self.bucket = s3.make_bucket()
        (path / "in").mkdir()
        self.lading = LocalLading(path / "home", user="tester")
        keys = s3.options
        self.reach = (
            f'"s3.endpoint" = "{proxy.endpoint}", "s3.region" = "us-east-1", "s3.access_key" = "{keys.access_key}", '
            f'"s3.secret_key" = "{keys.secret_key}", "use_path_style" = "true"'
        )
        self.uri = postgres.new_database()

    def catalog(self) -> None:
        self.lading.sql(
            'CREATE CATALOG lake PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "jdbc", '
            f'"uri" = "{self.uri}", "warehouse" = "s3://{self.bucket}/lake", {self.reach}); CREATE DATABASE lake.sales'
        )

    def table(self, form: str) -> str:
        """Make a table; its name."""
        if form == "iceberg":
            self.lading.sql("CREATE TABLE lake.sales.t (id BIGINT, city STRING) USING iceberg")
            return "lake.sales.t"
        self.lading.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION 's3://{self.bucket}/t' "
            f"TBLPROPERTIES ({self.reach})"
        )
        return "t"

    def job(self, target: str) -> None:
        self.lading.sql(
            f'CREATE JOB j ON STREAMING DO INSERT INTO {target} SELECT * FROM FILE("uri"="{self.path}/in/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )

    def jobs(self) -> list[tuple[object, ...]]:
        return list(self.lading.sql('SELECT Name FROM jobs("type"="insert")')[-1].rows)

    def ids(self, form: str) -> list[int]:
        """As somebody else reads them, past the proxy."""
        keys = self.s3.options
        if form == "delta":
            options = delta_options(keys)
            found = deltalake.DeltaTable(f"s3://{self.bucket}/t", storage_options=options).to_pyarrow_table()
            return sorted(found["id"].to_pylist())
        catalog = SqlCatalog(
            "lake",
            **{
                "uri": self.uri.replace("postgresql://", "postgresql+psycopg://"),
                "s3.endpoint": keys.endpoint,
                "s3.access-key-id": keys.access_key,
                "s3.secret-access-key": keys.secret_key,
                "s3.region": "us-east-1",
            },
        )
        try:
            return sorted(catalog.load_table("sales.t").scan().to_arrow()["id"].to_pylist())
        finally:
            catalog.close()


@pytest.fixture
def desk(tmp_path: Path, s3: S3Server, proxy: FaultProxy, postgres: PostgresServer) -> Iterator[Desk]:
    made = Desk(tmp_path, s3, proxy, postgres)
    yield made
    made.lading.close()


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_it_is_said_at_create_and_nothing_is_half_made(desk: Desk, form: str) -> None:
    desk.catalog()
    desk.proxy.set(WRITES)
    with pytest.raises(LadingError) as caught:
        desk.table(form)
    assert "may not" in str(caught.value) or "denied" in str(caught.value).lower(), caught.value
    desk.proxy.calm()
    assert list(desk.lading.sql("SHOW TABLES")[-1].rows) == []
    assert list(desk.lading.sql("SHOW TABLES FROM lake.sales")[-1].rows) == []
    name = desk.table(form)
    for weather in (WRITES, ALL):
        desk.proxy.set(weather)
        with pytest.raises(LadingError) as caught:
            desk.job(name)
        assert "may not" in str(caught.value) or "denied" in str(caught.value).lower(), caught.value
        assert desk.jobs() == []
    desk.proxy.calm()
    desk.job(name)
    (desk.path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    desk.lading.run()
    assert desk.ids(form) == [1]


@pytest.mark.parametrize(
    "weather", [pytest.param(WRITES, id="write"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_later_it_pauses_the_job_with_the_reason(desk: Desk, form: str, weather: Weather) -> None:
    desk.catalog()
    desk.job(desk.table(form))
    (desk.path / "in" / "a.csv").write_text("id,city\n1,essen\n")
    desk.lading.run()
    desk.proxy.set(weather)
    (desk.path / "in" / "b.csv").write_text("id,city\n2,ulm\n")
    record = desk.lading.run()["j"]
    assert record.state.value == "PAUSED"
    assert record.reason
    said = record.reason.message
    assert "may not" in said or "denied" in said.lower(), said
    assert desk.ids(form) == [1]
    desk.proxy.calm()
    desk.lading.sql("RESUME JOB WHERE jobName = 'j'")
    desk.lading.run()
    assert desk.ids(form) == [1, 2]
    assert desk.lading.verify("j").is_clean
