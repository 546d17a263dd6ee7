"""A Glue catalog that delays, cuts, refuses and loses answers; the files of its table are in S3, which does not.

Its client tries again by itself: a commit whose answer was lost meets what it has done, and must not take that for
somebody else's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from tests.faults.rig import Service, tell_counts
from tests.support.fault_proxy import HTTP_FAULTS, FaultProxy, Weather, serve_faults
from tests.tables.s3_server import S3Server

pytestmark = pytest.mark.slow
ROWS = 5
SEEDS = int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12"))
COMMIT = r"AWSGlue\.UpdateTable"


class GlueService(Service):
    """Its table is one of the catalog, read by somebody else past the proxy."""

    def __init__(self, home: Path, s3: S3Server) -> None:
        super().__init__(home)
        keys = s3.options
        own = {"endpoint": keys.endpoint, "region": keys.region, "access-key-id": keys.access_key}
        own["secret-access-key"] = keys.secret_key
        both = {f"{system}.{name}": value for system in ("glue", "s3") for name, value in own.items()}
        self._theirs = GlueCatalog("theirs", **both)

    def ids(self, table: str = "t") -> list[int]:
        return sorted(self._theirs.load_table(f"{NAMESPACE}.{table}").scan().to_arrow()["id"].to_pylist())


NAMESPACE = "faulty"


class Lake:
    """Files on a disk, and a table whose catalog is behind the proxy."""

    def __init__(self, s3: S3Server, proxy: FaultProxy, path: Path) -> None:
        self.proxy, self.inbox, self.files = proxy, path / "in", 0
        self.inbox.mkdir()
        self.service = GlueService(path / "home", s3)
        keys, table = s3.options, f"lake.{NAMESPACE}.t"
        self.put()
        self.service.sql(
            'CREATE CATALOG lake PROPERTIES ("type" = "iceberg", "iceberg.catalog.type" = "glue", '
            f'"warehouse" = "s3://{s3.make_bucket()}/lake", "glue.endpoint" = "{proxy.endpoint}", '
            f'"glue.region" = "{keys.region}", "glue.access_key" = "{keys.access_key}", '
            f'"glue.secret_key" = "{keys.secret_key}", "s3.endpoint" = "{keys.endpoint}", '
            f'"s3.region" = "{keys.region}", "s3.access_key" = "{keys.access_key}", '
            f'"s3.secret_key" = "{keys.secret_key}", "use_path_style" = "true");'
            f"CREATE DATABASE IF NOT EXISTS lake.{NAMESPACE};"
            f"CREATE TABLE {table} (id BIGINT, city STRING) USING iceberg;"
            'CREATE JOB j PROPERTIES("max_interval"="1", "file.settle_seconds"="0") ON STREAMING DO '
            f'INSERT INTO {table} SELECT id, city FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", '
            '"column_separator"=",")'
        )

    def put(self) -> None:
        first = self.files * ROWS
        rows = "".join(f"{number},essen\n" for number in range(first, first + ROWS))
        (self.inbox / f"{self.files:03d}.csv").write_text(f"id,city\n{rows}")
        self.files += 1

    def check(self) -> None:
        """Once it is calm the job goes on by itself, and each row is there once."""
        self.proxy.calm()
        self.service.run_until(self.service.is_loaded(self.files * ROWS))
        self.service.turn()
        assert self.service.ids() == list(range(self.files * ROWS))
        assert self.service.lading.verify("j").is_clean
        assert "PAUSED" not in self.service.shown()


@pytest.fixture
def glue(s3: S3Server, tmp_path: Path) -> Iterator[Lake]:
    with serve_faults(s3.endpoint, "glue") as proxy:
        made = Lake(s3, proxy, tmp_path)
        yield made
        proxy.calm()
        made.service.sql(f"DROP JOB j; DROP TABLE lake.{NAMESPACE}.t")
        made.service.close()


@pytest.mark.parametrize("fault", ["lose", "late-error", "partial", "busy", "cut"])
def test_a_fault_at_a_commit_makes_no_wrong_row(glue: Lake, fault: str) -> None:
    glue.service.turn()
    for _ in range(2):
        glue.put()
        before = glue.proxy.counts()[fault]
        glue.proxy.set(Weather(only=COMMIT, script=[fault]))
        glue.service.turn()
        assert glue.proxy.counts()[fault] == before + 1, "the commit went another way"
    glue.check()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_many_storms_make_no_wrong_row(glue: Lake, seed: int) -> None:
    glue.proxy.set(Weather(rate=(0.05, 0.2, 0.4)[seed % 3], faults=HTTP_FAULTS, seed=seed, delay_s=0.02))
    for _ in range(4):
        glue.put()
        glue.service.turn()
    glue.check()
    tell_counts("glue", glue.proxy, glue.files * ROWS)


def test_an_outage_is_a_reason_in_show(glue: Lake) -> None:
    glue.service.run_until(glue.service.is_loaded(ROWS))
    glue.proxy.set(Weather(is_down=True))
    glue.put()
    for _ in range(2):
        glue.service.turn()
    assert any("lake" in told for told in glue.service.reasons), glue.service.reasons
    glue.check()
