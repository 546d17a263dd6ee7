"""ALTER TABLE for Paimon: the next schema file, put once. Snapshots and heads stay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lading.clock import SystemClock
from lading.model.table import Column, ColumnChange
from lading.storage.store import ObjectStore
from lading.tables.altering import changed, needed_changes, place_of
from lading.tables.paimon.schema import Schemas, check_appendable, parse_schema, schema_key
from lading.tables.types import arrow_type

WIDENS: frozenset[str] = frozenset()
"""None: pypaimon does not read files of the narrower type."""


def alter_schema(storage: ObjectStore, changes: Sequence[ColumnChange]) -> tuple[ColumnChange, ...]:
    """Those changes that were not made yet.

    Dies in here: the schema is there or not. The same again changes nothing.
    """
    schemas = Schemas(storage)

    def attempt() -> Sequence[ColumnChange] | None:
        newest = schemas.newest()
        needed = needed_changes(newest.arrow, changes, WIDENS, storage.uri)
        if not needed:
            return ()
        content = _next(json.loads(storage.get(schema_key(newest.id)) or b"{}"), needed)
        check_appendable(parse_schema(content, storage.uri), storage.uri)
        return needed if storage.put_if_absent(schema_key(newest.id + 1), content) else None

    return changed(storage.uri, attempt)


def _next(schema: dict[str, Any], changes: Sequence[ColumnChange]) -> bytes:
    fields, highest = list(schema["fields"]), int(schema["highestFieldId"])
    for change in changes:
        highest += 1
        field = {"id": highest, "name": change.name, "type": _type(change)}
        if change.comment:
            field["description"] = change.comment
        fields.insert(place_of(change, [each["name"] for each in fields]), field)
    now_ms = int(SystemClock().now().timestamp() * 1000)
    new = {"id": schema["id"] + 1, "fields": fields, "highestFieldId": highest, "timeMillis": now_ms}
    return json.dumps({**schema, **new}, indent=2).encode()


def _type(change: ColumnChange) -> str:
    from pypaimon.schema.data_types import PyarrowFieldParser

    arrow = pa.schema([pa.field(change.name, arrow_type(Column(name=change.name, type=change.type)))])
    return str(PyarrowFieldParser.to_paimon_schema(arrow)[0].type)
