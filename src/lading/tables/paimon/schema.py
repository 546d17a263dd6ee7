"""The schema files of a Paimon table: `schema/schema-<number>`, each put once, the highest is the table's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lading.errors import ConfigError, TableError, TableNotFoundError
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore
from lading.tables.paimon.library import translated
from lading.tables.paimon.partitions import DEFAULT_NAME, check_partition_type
from lading.tables.types import arrow_schema, is_nested

SCHEMA = "schema/schema-"
APPEND_BUCKET = "-1"
"""Rows go wherever they come: no column decides on a bucket."""
_OURS = ("lading.", "comment")
_DEFAULTS = {"bucket": APPEND_BUCKET, "file.format": "parquet", "partition.legacy-name": "false"}
_REFUSED = ("data-evolution.enabled", "row-tracking.enabled", "deletion-vectors.enabled")
"""Options that ask more of a writer than Lading does."""
_ELSEWHERE = ("data-file.external-paths", "data-file.path-directory", "branch", "scan.fallback-branch", "bucket-key")
_RESERVED = ("_KEY_", "_SEQUENCE_NUMBER", "_VALUE_KIND", "_ROW_ID", "_LEVEL")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonSchema:
    """One version of a table's schema."""

    id: int
    table: Any
    """pypaimon's TableSchema."""
    arrow: pa.Schema

    @property
    def partition_keys(self) -> tuple[str, ...]:
        return tuple(self.table.partition_keys)

    @property
    def options(self) -> Mapping[str, str]:
        return dict(self.table.options)

    @property
    def default_partition(self) -> str:
        return self.options.get("partition.default-name", DEFAULT_NAME)

    @property
    def is_legacy(self) -> bool:
        """Whether folders of dates are named by numbers of days."""
        return self.options.get("partition.legacy-name", "true").lower() == "true"

    @property
    def columns(self) -> dict[str, tuple[int, str]]:
        """Name → number and type of each column."""
        return {field.name: (field.id, str(field.type)) for field in self.table.fields}


def schema_key(number: int) -> str:
    """Where a version is kept, relative to the table."""
    return f"{SCHEMA}{number}"


def new_schema(spec: TableSpec) -> tuple[PaimonSchema, bytes]:
    """The first schema of a table, and the file that makes the table. Raises ConfigError."""
    from pypaimon.common.json_util import JSON
    from pypaimon.schema.schema import Schema
    from pypaimon.schema.table_schema import TableSchema

    arrow = arrow_schema(spec)
    if nested := [field.name for field in arrow if is_nested(field.type)]:
        msg = f"Lading does not write ARRAY, MAP and STRUCT to Paimon tables: {', '.join(nested)}"
        raise ConfigError(
            msg, left="Nothing was made.", todo="Write STRING, which holds JSON; or use Delta or Iceberg."
        )
    for part in spec.partition_by:
        if part.transform != "identity":
            msg = f"A Paimon table cannot be partitioned by {part.transform} of {part.column}"
            raise ConfigError(msg, left="Nothing was made.", todo="Partition by a column itself, or use Iceberg.")
        check_partition_type(part.column, arrow.field(part.column).type)
    own = {key: value for key, value in spec.properties.items() if not key.startswith(_OURS)}
    options = {**_DEFAULTS, **own}
    keys = [part.column for part in spec.partition_by]
    if len(keys) == len(arrow):
        msg = "A Paimon table needs a column that it is not partitioned by"
        raise ConfigError(msg, left="Nothing was made.", todo="Leave one column out of PARTITIONED BY.")
    if "primary-key" in options:
        msg = "A Paimon table of Lading cannot have a PRIMARY KEY: loads append rows and replace none"
        raise ConfigError(msg, left="Nothing was made.", todo="Leave primary-key out.")
    made = TableSchema.from_schema(
        0, Schema.from_pyarrow_schema(arrow, keys, [], options, spec.properties.get("comment"))
    )
    schema = PaimonSchema(id=0, table=made, arrow=arrow)
    if why := why_not_appendable(schema):
        msg = f"Lading cannot make this Paimon table: {why}"
        raise ConfigError(msg, left="Nothing was made.", todo="Leave the option out.")
    return schema, JSON.to_json(made, indent=2).encode()


def parse_schema(content: bytes, where: str) -> PaimonSchema:
    """Read a schema file."""
    from pypaimon.schema.data_types import PyarrowFieldParser
    from pypaimon.schema.table_schema import TableSchema

    with translated(where):
        table = TableSchema.from_json(content.decode())
        return PaimonSchema(id=table.id, table=table, arrow=PyarrowFieldParser.from_paimon_schema(table.fields))


def why_not_appendable(schema: PaimonSchema) -> str:
    """Why Lading cannot append to a table; empty when it can."""
    options = schema.options
    if schema.table.primary_keys:
        return f"it has a primary key ({', '.join(schema.table.primary_keys)})"
    if options.get("bucket", APPEND_BUCKET) != APPEND_BUCKET:
        return f"its option bucket is {options['bucket']}"
    if options.get("type", "table") != "table":
        return f"its option type is {options['type']}"
    for name in _REFUSED:
        if (value := options.get(name, "false").lower()) != "false":
            return f"its option {name} is {value!r}"
    if (value := options.get("manifest.format", "avro").lower()) != "avro":
        return f"its option manifest.format is {value!r}"
    if reserved := [name for name in schema.arrow.names if name.startswith(_RESERVED)]:
        return f"its column {reserved[0]} has a name that Paimon keeps for itself"
    return next((f"it has the option {name}" for name in _ELSEWHERE if name in options), "")


def check_appendable(schema: PaimonSchema, where: str) -> None:
    """Refuse a table that asks more of writers than Lading does. Raises TableError."""
    if why := why_not_appendable(schema):
        msg = f"Lading cannot append to the Paimon table at {where}: {why}"
        todo = "Load into an append table without a bucket key: CREATE TABLE … USING paimon makes one."
        raise TableError(msg, left="Nothing was changed.", todo=todo)


class Schemas:
    """The schemas of one table. Each file is read once: it never changes."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage
        self._known: dict[int, PaimonSchema] = {}
        numbers = [key.removeprefix(SCHEMA) for key in storage.keys(SCHEMA)]
        versions = [int(number) for number in numbers if number.isdigit()]
        if not versions:
            msg = f"There is no Paimon table at {storage.uri}"
            raise TableNotFoundError(msg, left="Nothing was changed.", todo="Create it first.")
        self._newest = max(versions)

    def newest(self) -> PaimonSchema:
        """The table's schema now."""
        while self._find(self._newest + 1) is not None:
            self._newest += 1
        return self.get_schema(self._newest)

    def get_schema(self, number: int) -> PaimonSchema:
        found = self._find(number)
        if found is None:
            msg = f"{self._storage.uri}/{schema_key(number)} is missing"
            raise TableError(msg, left="Nothing was changed.", todo="Restore the file from a copy of the table.")
        return found

    def _find(self, number: int) -> PaimonSchema | None:
        if number not in self._known:
            content = self._storage.get(schema_key(number))
            if content is None:
                return None
            self._known[number] = parse_schema(content, f"{self._storage.uri}/{schema_key(number)}")
        return self._known[number]


def numbered(schema: PaimonSchema) -> pa.Schema:
    """The schema of data files: each column has the number that it has in the table."""
    fields = {field.name: field.id for field in schema.table.fields}
    return pa.schema(
        [column.with_metadata({b"PARQUET:field_id": str(fields[column.name]).encode()}) for column in schema.arrow]
    )
