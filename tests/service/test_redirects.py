"""The S3 endpoint of a table begins to send requests elsewhere: the service does not go there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lading.errors import LadingError
from lading.jobs.record import JobState
from lading.testing.marked import secret
from tests.console.local import LocalLading
from tests.net.listeners import Listener, listening
from tests.tables.s3_server import S3Server


@pytest.fixture
def inside() -> Iterator[Listener]:
    """A port of the machine, as the metadata service of a cloud would be."""
    with listening() as server:
        yield server


@pytest.fixture
def front(s3: S3Server) -> Iterator[Listener]:
    with listening(s3.endpoint) as server:
        yield server


def reach(endpoint: str) -> str:
    given = {
        "s3.endpoint": endpoint,
        "s3.region": "us-east-1",
        "s3.access_key": secret("access"),
        "s3.secret_key": secret("key"),
        "use_path_style": "true",
    }
    return ", ".join(f"'{name}'='{value}'" for name, value in given.items())


@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_a_table_does_not_follow_its_endpoint_elsewhere(
    s3: S3Server, front: Listener, inside: Listener, form: str, tmp_path: Path
) -> None:
    """Users with ADMIN on one database could name such an endpoint, and reach what only the service should."""
    place = f"s3://{s3.make_bucket()}/t"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id\n1\n2\n")
    files = f'FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
    with LocalLading(tmp_path / "home", allow_private_endpoints="true") as lading:
        lading.sql("CREATE DATABASE shop; CREATE USER ann; GRANT ADMIN ON shop TO ann")
        ann = lading.session("ann", "shop")
        ann.sql(f"CREATE TABLE t (id BIGINT) USING {form} LOCATION '{place}' TBLPROPERTIES({reach(front.url)})")
        lading.sql(f"USE shop; CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id FROM {files}")
        (record,) = lading.run().values()
        assert record.state is not JobState.PAUSED, record.reason
        front.redirect(307, inside.url)
        (tmp_path / "in" / "2.csv").write_text("id\n3\n")
        for statement in ("DESCRIBE t", "SHOW CREATE TABLE t", "RESUME JOB WHERE jobname='j'"):
            with suppress(LadingError):
                lading.sql(f"USE shop; {statement}")
        lading.run()
        with pytest.raises(LadingError, match=r"redirects|not followed|ACCESS_DENIED"):
            ann.sql(f"CREATE TABLE u (id BIGINT) USING {form} LOCATION '{place}/u' TBLPROPERTIES({reach(front.url)})")
        assert front.heard
        assert inside.heard == []
        front.status = 0
        assert lading.catalog.open_table("shop", "t").scan().num_rows in (2, 3)
