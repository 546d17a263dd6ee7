"""A table to join with, and the words to try joins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lading.failpoints import disarm_all
from lading.model.bill import Bill
from tests.service.conftest import Desk

CSV = '"format"="csv_with_names", "column_separator"=","'


class Killed(BaseException):
    """The process is gone here."""


class Dimension:
    """The table that is joined with, as somebody else changes it."""

    def __init__(self, desk: Desk, name: str = "pages") -> None:
        self._desk, self._name = desk, name
        desk.sql(f"CREATE TABLE {name} (id BIGINT, title STRING, price DECIMAL(10,2)) USING delta")
        self.place = desk.lading.catalog.open_table("shop", name).location

    def add(self, *rows: tuple[int | None, str | None, float | None]) -> None:
        schema = pa.schema([("id", pa.int64()), ("title", pa.string()), ("price", pa.decimal128(10, 2))])
        columns = list(zip(*rows, strict=True))
        data = [pa.array(columns[0], pa.int64()), pa.array(columns[1]), pa.array(columns[2], pa.float64())]
        write_deltalake(self.place, pa.table(data, names=schema.names).cast(schema), mode="append")

    def delete(self, where: str) -> None:
        DeltaTable(self.place).delete(where)


def create(
    desk: Desk,
    *,
    join: str = "JOIN",
    on: str = "s.page = d.id",
    where: str = "",
    properties: str = "",
    columns: str = "id BIGINT, page STRING, title STRING",
    select: str = "s.id, s.page, d.title",
    form: str = "delta",
) -> None:
    desk.sql(f"CREATE TABLE t ({columns}) USING {form}")
    said = f"PROPERTIES({properties})" if properties else ""
    desk.sql(
        f"CREATE JOB j {said} ON STREAMING DO INSERT INTO t SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) AS s {join} pages AS d ON {on} {where}'
    )


def put(desk: Desk, name: str, *rows: str) -> None:
    desk.put(name, list(rows), header="id,page")


def rows_of(desk: Desk, *, is_stopped: bool = False) -> list[tuple[Any, ...]]:
    """As somebody else reads the table, where that can be done without Java."""
    assert is_stopped or not reason(desk), reason(desk)
    table = desk.lading.catalog.open_table("shop", "t")
    if (Path(table.location) / "_delta_log").exists():
        return sorted(pl.read_delta(table.location).rows(), key=str)
    return sorted((tuple(row.values()) for row in table.scan().to_pylist()), key=str)


def killed(desk: Desk) -> None:
    """A batch that dies on the way, and another process."""
    job_id = desk.lading.job("j").job_id
    with pytest.raises(Killed):
        desk.lading.runner(job_id).run_once()
    disarm_all()
    desk.lading.drop_runner(job_id)
    desk.restart()


def bills(desk: Desk) -> list[Bill]:
    return desk.lading.bills(desk.lading.job("j"), 100)


def reason(desk: Desk) -> str:
    found = desk.lading.job("j").reason
    return found.message if found is not None else ""
