"""Catalogs without a server of Iceberg's, PostgreSQL and Glue, behind a proxy that cuts, refuses and loses answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.sql import SqlCatalog

from tests.faults.rig import Service, tell_counts
from tests.store.postgres import NoPostgresError, PostgresServer, serve_postgres
from tests.support.fault_proxy import HTTP_FAULTS, TCP_FAULTS, FaultProxy, Weather, serve_faults
from tests.support.rest_catalog import free_port
from tests.tables.s3_server import S3Server

ROWS = 5
SEEDS = max(2, int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12")) // 3)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    try:
        with serve_postgres(free_port()) as server:
            yield server
    except NoPostgresError as error:
        pytest.skip(str(error))


class Lake:
    """Files on a disk, and a table that others made in a catalog behind the proxy. They read it past the proxy."""

    def __init__(self, path: Path, proxy: FaultProxy, theirs: Catalog, properties: dict[str, str]) -> None:
        self.proxy, self.theirs, self.inbox, self.files = proxy, theirs, path / "in", 0
        self.inbox.mkdir()
        said = ", ".join(f'"{name}" = "{value}"' for name, value in properties.items())
        self.service = Service(path / "home")
        self.put()
        self.service.sql(
            f'CREATE CATALOG lake PROPERTIES ("type" = "iceberg", {said}); CREATE DATABASE lake.shop;'
            "CREATE TABLE lake.shop.t (id BIGINT, city STRING) USING iceberg;"
            'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO '
            f'INSERT INTO lake.shop.t SELECT id, city FROM FILE("uri"="{self.inbox}/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )

    def put(self) -> None:
        first = self.files * ROWS
        rows = "".join(f"{number},essen\n" for number in range(first, first + ROWS))
        (self.inbox / f"{self.files:03d}.csv").write_text(f"id,city\n{rows}")
        self.files += 1

    def ids(self) -> list[int]:
        newest = self.theirs.load_table("shop.t").metadata_location
        return sorted(polars.scan_iceberg(newest.replace("file:///", "/")).collect()["id"].to_list())

    def check(self) -> None:
        """Once it is calm the job goes on by itself, and each row is there once."""
        self.proxy.calm()
        self.service.run_until(lambda: len(self.ids()) >= self.files * ROWS)
        self.service.turn()
        assert self.ids() == list(range(self.files * ROWS))
        assert self.service.lading.verify("j").is_clean
        assert "PAUSED" not in self.service.shown()


@contextmanager
def lake_in_postgres(server: PostgresServer, path: Path) -> Iterator[Lake]:
    uri, warehouse = server.new_database(), f"file://{path}/lake"
    theirs = SqlCatalog("lake", uri=uri.replace("postgresql://", "postgresql+psycopg://"), warehouse=warehouse)
    place = uri.partition("@")[2].partition("/")[0]
    with serve_faults(place, "tcp") as proxy:
        there = uri.replace(place, f"127.0.0.1:{proxy.port}")
        yield Lake(path, proxy, theirs, {"iceberg.catalog.type": "jdbc", "uri": there, "warehouse": warehouse})
    theirs.close()


@contextmanager
def lake_in_glue(server: S3Server, path: Path) -> Iterator[Lake]:
    keys, warehouse = server.options, f"file://{path}/lake"
    said = {"glue.region": keys.region, "glue.endpoint": server.endpoint, "warehouse": warehouse}
    login = {"glue.access-key-id": keys.access_key, "glue.secret-access-key": keys.secret_key}
    theirs = GlueCatalog("lake", **said, **login)
    for name, *_ in theirs.list_namespaces():  # The server is one for all tests.
        for table in theirs.list_tables(name):
            theirs.drop_table(table)
        theirs.drop_namespace(name)
    with serve_faults(server.endpoint, "kinesis") as proxy:  # Both speak the JSON of AWS.
        own = {"glue.endpoint": proxy.endpoint, "glue.access_key": keys.access_key, "glue.secret_key": keys.secret_key}
        yield Lake(path, proxy, theirs, {"iceberg.catalog.type": "glue", **said, **own})


def storm(lake: Lake, seed: int, rate: float, faults: tuple[str, ...]) -> None:
    lake.proxy.set(Weather(rate=rate, faults=faults, seed=seed, delay_s=0.02))
    for _ in range(6):
        lake.put()
        lake.service.turn()
    lake.check()
    tell_counts("plain catalog", lake.proxy, lake.files * ROWS)
    assert sum(count for fault, count in lake.proxy.counts().items() if fault in faults) > 0


def test_a_database_that_cuts_connections_and_goes_away(postgres: PostgresServer, tmp_path: Path) -> None:
    with lake_in_postgres(postgres, tmp_path) as lake:
        storm(lake, 1, 0.03, TCP_FAULTS)
        lake.service.forget()
        lake.proxy.set(Weather(is_down=True))
        lake.put()
        lake.service.turn()
        lake.service.turn()
        assert any("lake" in told and "did not answer" in told for told in lake.service.reasons)
        lake.check()


@pytest.mark.slow
def test_a_lost_answer_of_glue(s3: S3Server, tmp_path: Path) -> None:
    with lake_in_glue(s3, tmp_path) as lake:
        lake.service.turn()
        for fault in ("lose", "late-error"):
            lake.put()
            lake.proxy.set(Weather(rate=0.2, seed=3, faults=(fault,)))
            lake.service.turn()
            lake.service.turn()
            assert lake.proxy.counts()[fault] > 0
            lake.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + SEEDS))
def test_storms_before_a_database(postgres: PostgresServer, tmp_path: Path, seed: int) -> None:
    with lake_in_postgres(postgres, tmp_path) as lake:
        storm(lake, seed, (0.01, 0.03, 0.1)[seed % 3], TCP_FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + SEEDS))
def test_storms_before_glue(s3: S3Server, tmp_path: Path, seed: int) -> None:
    with lake_in_glue(s3, tmp_path) as lake:
        storm(lake, seed, (0.05, 0.2, 0.4)[seed % 3], HTTP_FAULTS)
