"""Names and values that a producer may write and no table can take as they are. No Spark is started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import ConfigError, ConflictError
from lading.jobs.record import JobState
from tests.console.local import LocalLading

FORMS = ["delta", "iceberg", "paimon"]


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[LocalLading]:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as made:
        yield made


def make(lading: LocalLading, tmp_path: Path, columns: str, properties: str, form: str = "delta") -> None:
    lading.sql(
        f"CREATE TABLE t ({columns}) USING {form};"
        f'CREATE JOB j PROPERTIES({properties}, "file.settle_seconds"="0") ON STREAMING DO '
        f'INSERT INTO t SELECT * FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
    )


@pytest.mark.parametrize("form", FORMS)
def test_fields_that_differ_by_case_alone_do_not_break_the_table(
    lading: LocalLading, tmp_path: Path, form: str
) -> None:
    make(lading, tmp_path, "id BIGINT, _r STRING", '"schema.evolution"="ADD", "rescued_data_column"="_r"', form)
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "Foo": 1, "foo": "x"}\n')
    lading.run()
    table = lading.catalog.open_table("default", "t")
    assert table.schema().names == ["id", "_r", "Foo"]
    (row,) = table.scan().to_pylist()
    rescued = json.loads(row.pop("_r"))
    assert (row, rescued["foo"]) == ({"id": 1, "Foo": 1}, "x")


def test_without_a_rescued_column_they_pause_the_job(lading: LocalLading, tmp_path: Path) -> None:
    make(lading, tmp_path, "id BIGINT", '"schema.evolution"="ADD"')
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "Foo": 1, "foo": "x"}\n')
    lading.run()
    record = lading.job("j")
    assert record.state is JobState.PAUSED
    assert record.reason is not None
    assert "'foo'" in record.reason.message
    assert lading.catalog.open_table("default", "t").scan().num_rows == 0


@pytest.mark.parametrize("form", FORMS)
def test_no_statement_makes_columns_that_differ_by_case_alone(lading: LocalLading, tmp_path: Path, form: str) -> None:
    lading.sql(f"CREATE TABLE t (id BIGINT) USING {form}")
    with pytest.raises(ConflictError, match="already has a column foo"):
        lading.sql("ALTER TABLE t ADD COLUMN Foo BIGINT, ADD COLUMN foo STRING")
    assert lading.catalog.open_table("default", "t").schema().names == ["id"]
    (tmp_path / "in" / "1.json").write_text('{"Foo": 1, "foo": "x"}\n')
    with pytest.raises(ConfigError, match="case"):
        lading.sql(f'CREATE TABLE u USING {form} AS SCHEMA OF FILE("uri"="{tmp_path}/in/*.json", "format"="json")')
