"""A store that lets two writers win is refused before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import TableError
from lading.storage.store import open_store
from lading.tables import probe
from lading.tables.delta.create import create_delta_table, open_delta_table
from lading.tables.iceberg.catalog import sqlite_catalog
from lading.tables.iceberg.table import create_iceberg_table
from tests.console.local import LocalLading
from tests.tables.drive import SPEC
from tests.tables.s3_server import S3Server, serve_s3


@pytest.fixture(scope="module")
def deaf() -> Iterator[S3Server]:
    with serve_s3("deaf") as server:
        yield server


def objects(server: S3Server, bucket: str) -> list[str]:
    return list(open_store(f"s3://{bucket}", server.options).keys(""))


def test_a_store_that_ignores_the_condition_is_refused_by_name(deaf: S3Server, tmp_path: Path) -> None:
    bucket = deaf.make_bucket()
    for make in (
        lambda: create_delta_table(f"s3://{bucket}/delta", SPEC, deaf.options),
        lambda: create_iceberg_table(
            sqlite_catalog(tmp_path), "a.t", SPEC, location=f"s3://{bucket}/iceberg", options=deaf.options
        ),
    ):
        with pytest.raises(TableError, match=f"{deaf.endpoint}, bucket {bucket}.*If-None-Match"):
            make()
    assert objects(deaf, bucket) == []


def test_a_table_that_is_there_is_not_opened(deaf: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = deaf.make_bucket()
    with monkeypatch.context() as unasked:
        unasked.setattr(probe, "_kept", {(deaf.endpoint, bucket)})
        create_delta_table(f"s3://{bucket}/t", SPEC, deaf.options)
    before = objects(deaf, bucket)
    with pytest.raises(TableError):
        open_delta_table(f"s3://{bucket}/t", deaf.options)
    assert objects(deaf, bucket) == before


def test_create_table_says_it(deaf: S3Server, tmp_path: Path) -> None:
    """From the door."""
    bucket, options = deaf.make_bucket(), deaf.options
    with LocalLading(tmp_path / "home") as lading, pytest.raises(TableError, match="If-None-Match"):
        lading.sql(
            f"CREATE TABLE t (id BIGINT) USING delta LOCATION 's3://{bucket}/t' TBLPROPERTIES ("
            f'"s3.endpoint"="{options.endpoint}", "s3.region"="us-east-1", "s3.access_key"="{options.access_key}", '
            f'"s3.secret_key"="{options.secret_key}", "use_path_style"="true")'
        )


def test_a_store_that_keeps_it_is_asked_once(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_kept", set())
    bucket = s3.make_bucket()
    create_delta_table(f"s3://{bucket}/t", SPEC, s3.options)
    assert not [key for key in objects(s3, bucket) if "probe" in key]
    assert probe._kept == {(s3.endpoint, bucket)}


def test_keys_that_may_not_write_are_let_through(s3: S3Server) -> None:
    """A reader opens a table: a reader that cannot put anything cannot lose a commit either."""
    storage = open_store("s3://there-is-no-such-bucket/t", s3.options)
    probe.check_put_if_absent(storage, s3.options)
    assert (s3.endpoint, "there-is-no-such-bucket") not in probe._kept
