"""Another engine adds a column to the table of a job: the job goes on, also after a restart."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pytest
from pyiceberg.types import StringType

from lading.errors import ConfigError
from lading.tables.iceberg.table import IcebergTable
from tests.console.local import LocalLading


def add_column(lading: LocalLading, name: str, form: str) -> None:
    """What Spark does for ALTER TABLE … ADD COLUMN."""
    entry = lading.catalog.entry("default", "t")
    if form == "delta":
        field = deltalake.schema.Field(name, deltalake.schema.PrimitiveType("string"))
        deltalake.DeltaTable(entry.location).alter.add_columns([field])
        return
    table = lading.catalog.open_table("default", "t")
    assert isinstance(table, IcebergTable)
    with table._load().update_schema() as update:
        update.add_column(name, StringType())


@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.parametrize("kind", ["csv_with_names", "json"])
def test_an_added_column_does_not_pause_the_job_at_the_next_restart(tmp_path: Path, form: str, kind: str) -> None:
    (tmp_path / "in").mkdir()

    def put(number: int) -> None:
        row = {"id": number, "city": "essen"}
        text = json.dumps(row) if kind == "json" else f"id,city\n{number},essen"
        (tmp_path / "in" / f"{number}.txt").write_text(text + "\n")

    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING {form};"
            f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="{tmp_path}/in/*.txt", '
            f'"format"="{kind}", "column_separator"=",")'
        )
        put(1)
        lading.run()
        shown = str(lading.sql("SHOW CREATE JOB j")[0].rows)
        assert "(`id`, `city`)" in shown or "(id, city)" in shown
        add_column(lading, "note", form)
    with LocalLading(tmp_path / "home") as lading:
        put(2)
        record = lading.run()["j"]
        assert record.state.value == "RUNNING", record.reason
        rows = lading.catalog.open_table("default", "t").scan()
        assert sorted(rows["id"].to_pylist()) == [1, 2]
        assert rows["note"].to_pylist() == [None, None]


def test_a_name_with_a_dot_is_one_name(tmp_path: Path) -> None:
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id INT, s STRUCT<x: INT>) USING iceberg;"
            "ALTER TABLE t ADD COLUMN `a.b` INT AFTER id, ADD COLUMN `s.y` INT;"
            "ALTER TABLE t MODIFY COLUMN `a.b` BIGINT"
        )
        table = lading.catalog.open_table("default", "t")
        assert isinstance(table, IcebergTable)
        schema = table.handle.load().schema()
        assert [(field.name, str(field.field_type)) for field in schema.fields if field.name != "s"] == [
            ("id", "int"),
            ("a.b", "long"),
            ("s.y", "int"),
        ]
        with pytest.raises(ConfigError, match=r"cannot have these columns: .*s\.x"):
            lading.sql("ALTER TABLE t ADD COLUMN `s.x` INT")
        assert table.schema().names == ["id", "a.b", "s", "s.y"]
