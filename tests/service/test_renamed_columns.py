"""Another engine gives the name of a column to another column while the job is open: rows go by the name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, IcebergType, StringType

from lading.jobs.record import JobRecord
from lading.tables.iceberg.table import IcebergTable
from tests.console.local import LocalLading
from tests.tables.delta_by_hand import actions, add_entry

MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}


class IcebergLake:
    """A table of PyIceberg."""

    def __init__(self, lading: LocalLading) -> None:
        self._lading = lading
        lading.sql("CREATE TABLE t (id BIGINT, city STRING) USING iceberg")

    def _table(self) -> Table:
        table = self._lading.catalog.open_table("default", "t")
        assert isinstance(table, IcebergTable)
        return table.handle.load()

    def rename(self, new_type: IcebergType | None) -> None:
        """`city` is `town`; with a type there is a new column `city`."""
        with self._table().update_schema() as update:
            update.rename_column("city", "town")
        if new_type is not None:
            with self._table().update_schema() as update:
                update.add_column("city", new_type)

    def rows(self) -> list[dict[str, Any]]:
        found = self._table().scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: row["id"])


class DeltaLake:
    """A table with column mapping, as Spark writes it: the log by hand, since delta-rs does not."""

    def __init__(self, lading: LocalLading) -> None:
        lading.sql("CREATE TABLE t (id BIGINT, city STRING) USING delta")
        self._place = Path(lading.catalog.entry("default", "t").location)
        add_entry(self._place, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
        self._say([("id", "id", "long"), ("city", "city", "string")])

    def _say(self, columns: list[tuple[str, str, str]]) -> None:
        fields = [
            {
                "name": name,
                "type": kind,
                "nullable": True,
                "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
            }
            for number, (name, physical, kind) in enumerate(columns, start=1)
        ]
        metadata = actions(self._place, "metaData")[-1]
        settings = {**metadata["configuration"], **MAPPED}
        schema = json.dumps({"type": "struct", "fields": fields})
        add_entry(self._place, {"metaData": {**metadata, "configuration": settings, "schemaString": schema}})

    def rename(self, new_type: IcebergType | None) -> None:
        kept = [("id", "id", "long"), ("town", "city", "string")]
        new = [] if new_type is None else [("city", "col-1", str(new_type))]
        self._say([*kept, *new])

    def rows(self) -> list[dict[str, Any]]:
        fields = json.loads(actions(self._place, "metaData")[-1]["schemaString"])["fields"]
        found = []
        for add in actions(self._place, "add"):
            for row in pq.read_table(self._place / add["path"]).to_pylist():
                physical = ((field["name"], field["metadata"]["delta.columnMapping.physicalName"]) for field in fields)
                found.append({name: row.get(inside) for name, inside in physical})
        return sorted(found, key=lambda row: row["id"])


LAKES: dict[str, type[IcebergLake | DeltaLake]] = {"iceberg": IcebergLake, "delta": DeltaLake}


def load(lading: LocalLading, path: Path, number: int) -> JobRecord:
    (path / "in" / f"{number}.csv").write_text(f"id,city\n{number},essen\n")
    return lading.run()["j"]


def begin(lading: LocalLading, path: Path) -> None:
    (path / "in").mkdir()
    lading.sql(
        f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="{path}/in/*.csv", '
        '"format"="csv_with_names", "column_separator"=",")'
    )
    assert load(lading, path, 1).reason is None


@pytest.mark.parametrize("form", LAKES)
def test_the_column_that_has_the_name_now_is_filled(tmp_path: Path, form: str) -> None:
    with LocalLading(tmp_path / "home") as lading:
        lake = LAKES[form](lading)
        begin(lading, tmp_path)
        lake.rename(StringType())
        assert load(lading, tmp_path, 2).reason is None
        assert lake.rows() == [
            {"id": 1, "town": "essen", "city": None},
            {"id": 2, "town": None, "city": "essen"},
        ]


@pytest.mark.parametrize(("new_type", "why"), [(None, "was dropped"), (DoubleType(), "was string and is double")])
@pytest.mark.parametrize("form", LAKES)
def test_a_name_that_nothing_fitting_has_stops_the_open_job(
    tmp_path: Path, form: str, new_type: IcebergType | None, why: str
) -> None:
    with LocalLading(tmp_path / "home") as lading:
        lake = LAKES[form](lading)
        begin(lading, tmp_path)
        lake.rename(new_type)
        record = load(lading, tmp_path, 2)
        assert (record.state.value, record.reason is not None) == ("PAUSED", True)
        assert record.reason is not None
        assert why in record.reason.message
        assert [row["id"] for row in lake.rows()] == [1]
