"""Two streams to join, and the words to try joins of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from lading.model.bill import Bill
from tests.service.conftest import Desk

CSV = '"format"="csv_with_names", "column_separator"=","'
WATERMARK = '"watermark.column"="a.at, b.at", "watermark.delay"="1 minute"'
NEAR = "b.at BETWEEN a.at AND a.at + INTERVAL 2 MINUTES"
HEADER = "k,at,v"
NULL = r"\N"


def create(
    desk: Desk,
    *,
    join: str = "JOIN",
    on: str = f"a.k = b.k AND {NEAR}",
    where: str = "",
    properties: str = WATERMARK,
    columns: str = "k STRING, x BIGINT, y BIGINT",
    select: str = "a.k, a.v, b.v",
    form: str = "delta",
) -> None:
    desk.sql(f"CREATE TABLE t ({columns}) USING {form}")
    desk.sql(statement(desk, join=join, on=on, where=where, properties=properties, select=select))


def statement(
    desk: Desk,
    *,
    join: str = "JOIN",
    on: str = f"a.k = b.k AND {NEAR}",
    where: str = "",
    properties: str = WATERMARK,
    select: str = "a.k, a.v, b.v",
) -> str:
    return (
        f"CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO t SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/a*.csv", {CSV}) AS a {join} FILE("uri"="{desk.inbox}/b*.csv", {CSV}) AS b '
        f"ON {on} {where}"
    )


def put(desk: Desk, name: str, rows: Sequence[str]) -> None:
    desk.put(name, list(rows), header=HEADER)


def at(second: int) -> str:
    """A moment of the story."""
    return f"2026-01-01 {12 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def row(key: str, second: int, value: object) -> str:
    return f"{key},{at(second)},{value}"


def story(seed: int, batches: int, rows: int) -> list[tuple[list[str], list[str]]]:
    """Batches of both streams, out of order and at most half a minute late, some without a key."""
    rng = Random(seed)

    def made(batch: int, first: int) -> list[str]:
        keys = ("red", "green", "blue", NULL)
        return [row(rng.choice(keys), 60 + batch * 60 + rng.randint(-30, 59), first + n) for n in range(rows)]

    return [(made(batch, batch * 1000), made(batch, 500_000 + batch * 1000)) for batch in range(batches)]


END_S = 10 * 3600
"""Long after everything else."""


def finish(desk: Desk) -> None:
    """Rows that move the watermark of both past everything before."""
    put(desk, "a99.csv", [row("end", END_S, 1)])
    put(desk, "b99.csv", [row("END", END_S, 2)])
    desk.run()
    desk.run()


def rows_of(desk: Desk) -> list[tuple[Any, ...]]:
    """As somebody else reads the table, where that can be done without Java."""
    assert not reason(desk), reason(desk)
    table = desk.lading.catalog.open_table("shop", "t")
    if (Path(table.location) / "_delta_log").exists():
        return sorted(pl.read_delta(table.location).rows(), key=str)
    return sorted((tuple(each.values()) for each in table.scan().to_pylist()), key=str)


def whole(lefts: Sequence[str], rights: Sequence[str], query: str) -> list[tuple[Any, ...]]:
    """The same by other means: all rows at once, in DuckDB."""
    with duckdb.connect() as connection:
        for name, rows in (("a", lefts), ("b", rights)):
            parts = [each.split(",") for each in rows]
            columns = {
                key: [None if part[n] == NULL else part[n] for part in parts]
                for n, key in enumerate(("k", "happened", "v"))
            }
            table = pa.table({key: pa.array(texts, pa.string()) for key, texts in columns.items()})
            connection.register(f"{name}_texts", table)
            connection.sql(
                f"CREATE TABLE {name} AS SELECT k, happened::TIMESTAMP AS happened, v::BIGINT AS v FROM {name}_texts"
            )
        return sorted(connection.sql(query).fetchall(), key=str)


def bills(desk: Desk) -> list[Bill]:
    return desk.lading.bills(desk.lading.job("j"), 100)


def reason(desk: Desk) -> str:
    found = desk.lading.job("j").reason
    return found.message if found is not None else ""
