"""Whether Lading may append to a Delta table: what the table asks of writers, against what Lading does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lading.errors import TableError
from lading.tables.delta.actions import Metadata, TableProtocol
from lading.tables.delta.columns import mapping_mode

MAX_READER, MAX_WRITER = 3, 7

HARMLESS = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Features that Lading's entries and files do what they ask, or that ask nothing of an appender as long as no column
or property makes use of them (`_active_features`). A column of a type that Lading does not write, such as VARIANT, is
left out of its files and so NULL."""

_BINDING_FIELDS = {
    "delta.generationExpression": (
        "generatedColumns",
        "Lading does not compute it: load into a table without it, and let a view or its own engine compute it",
    ),
    "delta.invariants": ("invariants", "Lading does not check it: remove the invariant, and filter with WHERE"),
    "delta.identity.start": (
        "identityColumns",
        "Lading does not number rows: make it an ordinary column (ALTER TABLE … ALTER COLUMN … DROP IDENTITY)",
    ),
}


def check_appendable(protocol: TableProtocol, metadata: Metadata, *, where: str) -> None:
    """Refuse a table that asks for more than Lading does. Called again whenever the table changed."""
    if protocol.reader > MAX_READER or protocol.writer > MAX_WRITER:
        needs = f"reader version {protocol.reader} and writer version {protocol.writer}"
        raise _refused(where, needs, f"Lading knows versions up to {MAX_READER} and {MAX_WRITER}; use a newer Lading.")
    for name in sorted(protocol.features - HARMLESS):
        todo = f"Drop it (ALTER TABLE … DROP FEATURE '{name}'), or use another target."
        raise _refused(where, f"the table feature {name}", todo)
    mode = mapping_mode(metadata)
    if mode not in ("none", "name", "id"):
        raise _refused(where, f"column mapping by {mode!r}", "Use a newer Lading.")
    for feature, cause, todo in _active_features(metadata):
        raise _refused(where, f"{feature} ({cause})", f"{todo}, or use another target.")


def _active_features(metadata: Metadata) -> Iterator[tuple[str, str, str]]:
    """What Lading cannot check or compute: its name, where it is, and what to do."""
    settings = metadata.configuration
    for key in sorted(settings):
        if key.startswith("delta.constraints."):
            name = key.removeprefix("delta.constraints.")
            todo = f"Lading does not check {settings[key]!r}: ALTER TABLE … DROP CONSTRAINT {name}"
            yield "checkConstraints", key, f"{todo}, and filter with WHERE in the job"
        if key.startswith("delta.enableIcebergCompat") and settings[key].strip().lower() == "true":
            # Files would need the partition columns in them, and a conversion that only its own engine makes.
            yield "Iceberg compatibility", f"{key} is true", f"Set {key} to false"
    for field in all_fields(json.loads(metadata.schema_string)):
        for key, (feature, todo) in _BINDING_FIELDS.items():
            if key in (field.get("metadata") or {}):
                yield feature, f"{key} on column {field['name']}", todo


def all_fields(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every field of a Delta schema, also inside structs, arrays and maps."""
    if not isinstance(schema, dict):
        return
    for field in schema.get("fields", ()):
        yield field
        yield from all_fields(field["type"])
    for part in ("elementType", "keyType", "valueType"):
        yield from all_fields(schema.get(part))


def _refused(where: str, needs: str, todo: str) -> TableError:
    msg = f"The Delta table {where} needs {needs}, and Lading cannot append to it"
    return TableError(msg, left="Nothing was written.", todo=todo, needs=needs)
