"""Whether Lading may append to a Delta table: what the table asks of writers, against what Lading does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lading.errors import TableError
from lading.tables.delta.actions import Metadata, TableProtocol

MAX_READER, MAX_WRITER = 3, 7

HARMLESS = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features that ask nothing of an appender as long as no column or property makes use of them."""

_BINDING_FIELDS = {
    "delta.generationExpression": "generatedColumns",
    "delta.invariants": "invariants",
    "delta.identity.start": "identityColumns",
}


def check_appendable(protocol: TableProtocol, metadata: Metadata, *, where: str) -> None:
    """Refuse a table that asks for more than Lading does. Called again whenever the table changed."""
    if protocol.reader > MAX_READER or protocol.writer > MAX_WRITER:
        needs = f"reader version {protocol.reader} and writer version {protocol.writer}"
        raise _refused(where, needs, f"Lading knows versions up to {MAX_READER} and {MAX_WRITER}; use a newer Lading.")
    for name in sorted(protocol.features - HARMLESS):
        raise _refused(where, f"the table feature {name}", "Drop the feature from the table, or use another target.")
    for feature, cause in _active_features(metadata):
        todo = "Lading cannot check or compute it; remove it from the table, or use another target."
        raise _refused(where, f"{feature} ({cause})", todo)


def _active_features(metadata: Metadata) -> Iterator[tuple[str, str]]:
    settings = metadata.configuration
    if settings.get("delta.columnMapping.mode", "none").lower() != "none":
        yield "columnMapping", "delta.columnMapping.mode is set"
    for key in sorted(settings):
        if key.startswith("delta.constraints."):
            yield "checkConstraints", key
    if "delta.setTransactionRetentionDuration" in settings:
        # Heads are application transactions. A table that forgets them forgets where an idle job stands.
        yield "forgetting of application transactions", "delta.setTransactionRetentionDuration is set"
    for field in all_fields(json.loads(metadata.schema_string)):
        for key, feature in _BINDING_FIELDS.items():
            if key in (field.get("metadata") or {}):
                yield feature, f"{key} on column {field['name']}"


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
