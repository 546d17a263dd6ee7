"""Tables that get the columns their source has: statements as a user types them, tables read by others."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from tests.service.conftest import Desk


def put(desk: Desk, name: str, rows: list[dict[str, Any]]) -> None:
    draft = desk.path / f"{name}.draft"
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
    draft.rename(desk.inbox / name)


def create(desk: Desk, properties: str, form: str = "json", more: str = "") -> None:
    desk.sql(
        f'CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="{desk.inbox}/*", '
        f'"format"="{form}"{more})'
    )


def rows(desk: Desk) -> list[dict[str, Any]]:
    """What Polars reads, without nulls, by id."""
    place = desk.lading.catalog.entry("shop", "t").location
    found = pl.read_delta(place).sort("id").to_dicts()
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def test_fields_that_appear_become_columns(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT) USING delta")
    create(desk, '"schema.evolution"="ADD"')
    put(desk, "1.json", [{"id": 1}])
    desk.run()
    put(
        desk, "2.json", [{"id": 2, "city": "essen", "big": True, "n": 7, "x": 1.5, "deep": {"a": [1, 2.5]}, "no": None}]
    )
    put(desk, "3.json", [{"id": 3, "n": 2**60}, {"id": 4, "x": 3}])
    desk.run()
    assert rows(desk) == [
        {"id": 1},
        {"id": 2, "city": "essen", "big": True, "n": 7, "x": 1.5, "deep": '{"a":[1,2.5]}'},
        {"id": 3, "n": 2**60},
        {"id": 4, "x": 3.0},
    ]
    assert desk.sql("DESCRIBE t") == [
        ("id", "bigint", "Yes"),
        ("city", "string", "Yes"),
        ("big", "boolean", "Yes"),
        ("n", "bigint", "Yes"),
        ("x", "double", "Yes"),
        ("deep", "string", "Yes"),
    ]
