"""ALTER TABLE for Delta: one log entry with new metadata. It has no files and no transaction of a job: heads stay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import deltalake
import pyarrow as pa

from lading import __version__
from lading.clock import SystemClock
from lading.errors import TableError
from lading.model.s3_access import S3Access
from lading.model.table import Column, ColumnChange
from lading.storage.store import ObjectStore
from lading.tables.altering import changed, needed_changes, place_of
from lading.tables.delta.actions import entry_key
from lading.tables.delta.features import check_appendable
from lading.tables.delta.library import load_table, metadata_of, protocol_of
from lading.tables.types import arrow_type

NTZ = "timestampNtz"
WIDENS: frozenset[str] = frozenset()
"""None: type widening is a feature of tables that delta-rs, and what is built on it, does not read."""


def alter_schema(storage: ObjectStore, options: S3Access, changes: Sequence[ColumnChange]) -> tuple[ColumnChange, ...]:
    """Those changes that were not made yet.

    Dies in here: the entry is there or not. The same again changes nothing.
    """

    def attempt() -> Sequence[ColumnChange] | None:
        table = load_table(storage, options)
        check_appendable(protocol_of(table), metadata_of(table), where=storage.uri)
        _check_alterable(table, storage.uri)
        schema = pa.schema(table.schema().to_arrow())
        needed = needed_changes(schema, changes, WIDENS, storage.uri)
        if not needed:
            return ()
        won = storage.put_if_absent(entry_key(table.version() + 1), _entry(table, needed))
        return needed if won else None

    return changed(storage.uri, attempt)


def _check_alterable(table: deltalake.DeltaTable, where: str) -> None:
    """Refuse what a new column or an entry would need more for than is written here."""
    settings = table.metadata().configuration
    maps = settings.get("delta.columnMapping.mode", "none").lower() != "none"
    if maps or settings.get("delta.enableInCommitTimestamps", "false").lower() == "true":
        feature = "column mapping" if maps else "in-commit timestamps"
        msg = f"The columns of the table at {where} cannot be changed by Lading: it has {feature}"
        raise TableError(msg, left="Nothing was changed.", todo="ALTER TABLE with the table's own engine; jobs go on.")


def _entry(table: deltalake.DeltaTable, changes: Sequence[ColumnChange]) -> bytes:
    known = table.metadata()
    schema = json.loads(table.schema().to_json())
    for change in changes:
        names = [field["name"] for field in schema["fields"]]
        schema["fields"].insert(place_of(change, names), _field(change))
    columns = [{"column": {"name": change.name, "type": _field(change)["type"]}} for change in changes]
    told = {
        "timestamp": int(SystemClock().now().timestamp() * 1000),
        "operation": "ADD COLUMNS",
        "operationParameters": {"columns": json.dumps(columns)},
        "engineInfo": f"lading/{__version__}",
    }
    metadata = {
        "id": str(known.id),
        "name": known.name,
        "description": known.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, separators=(",", ":")),
        "partitionColumns": list(known.partition_columns),
        "createdTime": known.created_time,
        "configuration": dict(known.configuration),
    }
    actions: list[dict[str, Any]] = [{"commitInfo": told}, {"metaData": metadata}]
    if any(_field(change)["type"] == "timestamp_ntz" for change in changes):
        actions += _with_ntz(table)
    return "".join(json.dumps(each) + "\n" for each in actions).encode()


def _field(change: ColumnChange) -> dict[str, Any]:
    kind = arrow_type(Column(name=change.name, type=change.type))
    field = deltalake.Schema.from_arrow(pa.schema([pa.field(change.name, kind)])).to_json()
    made: dict[str, Any] = json.loads(field)["fields"][0]
    return {**made, "nullable": True, "metadata": {"comment": change.comment} if change.comment else {}}


_NAMED = 7
_MAPPING_READER = 2
_OLD_WRITERS = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}
"""What a writer of this version and all later ones can do, until versions name their features."""


def _with_ntz(table: deltalake.DeltaTable) -> list[dict[str, Any]]:
    """The protocol of a table that has times without a zone, which are a feature of their own."""
    found = table.protocol()
    readers, writers = set(found.reader_features or ()), set(found.writer_features or ())
    if NTZ in writers:
        return []
    if found.min_writer_version < _NAMED:
        writers |= {name for name, since in _OLD_WRITERS.items() if since <= found.min_writer_version}
    if found.min_reader_version == _MAPPING_READER:
        readers |= {"columnMapping"}
        writers |= {"columnMapping"}
    elif found.min_reader_version < _MAPPING_READER:
        writers -= {"columnMapping"}  # Of readers and writers alike: it is in both lists or in none.
    return [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": _NAMED,
                "readerFeatures": sorted({*readers, NTZ}),
                "writerFeatures": sorted({*writers, NTZ}),
            }
        }
    ]
