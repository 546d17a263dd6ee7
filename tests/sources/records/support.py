"""Blocks of records from plain values, and their rows as plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lading.sources.records.parser import RecordBlock, RecordParser
from lading.sources.records.spec import RecordFormat

META = pa.schema([("key", pa.string())])


def block(values: Sequence[bytes], first: int = 100) -> RecordBlock:
    numbers = range(first, first + len(values))
    return RecordBlock(values=list(values), places="t/0", numbers=numbers, meta={"key": [f"k{n}" for n in numbers]})


def rows_of(parser: RecordParser, records: RecordBlock) -> list[dict[str, Any]]:
    """All rows in the order they came. Checks what holds for every row."""
    rows: list[dict[str, Any]] = []
    for batch in parser.parse(records):
        batch.validate(full=True)
        assert batch.schema == parser.schema
        assert batch.num_rows > 0
        rows += batch.to_pylist()
    assert [row["__row"] for row in rows] == sorted(row["__row"] for row in rows)
    for row in rows:
        assert row["key"] == f"k{row['__row']}"
        assert row["__file"] == "t/0"
        assert (row["__raw"] is None) == (row["__error"] is None)
    return rows


def parse(format: RecordFormat, values: Sequence[bytes], *, fast: bool = True) -> list[dict[str, Any]]:
    return rows_of(RecordParser(format, META, fast=fast), block(values))


def good(rows: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Values of the good rows."""
    return [tuple(row[name] for name in names) for row in rows if row["__error"] is None]


def bad(rows: Sequence[dict[str, Any]]) -> list[tuple[int, bytes, str]]:
    return [(row["__row"], row["__raw"], row["__error"]) for row in rows if row["__error"] is not None]
