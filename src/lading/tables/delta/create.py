"""Making and opening Delta tables."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import deltalake

from lading.errors import ConfigError, ConflictError
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore, open_store
from lading.tables.delta.actions import LOG, entry_key
from lading.tables.delta.library import library_uri, translated
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.probe import check_put_if_absent
from lading.tables.types import arrow_schema

NAMED_FEATURES = 7
"""The writer version from which on a protocol names its features."""


def create_delta_table(location: str, spec: TableSpec, options: S3Access | None = None) -> DeltaLakeTable:
    """Make an empty table and open it. Raises ConflictError when one is there."""
    how = options or S3Access()
    storage = open_store(location, how)
    uri = library_uri(storage)
    if next(iter(storage.keys(f"{LOG}/")), None) is not None:
        raise _exists(storage)
    check_put_if_absent(storage, how)
    first = _first_entry(storage, uri, spec)
    # Dies before it: there is no table. Dies after it: the table is whole.
    if not storage.put_if_absent(entry_key(0), first):
        raise _exists(storage)
    return DeltaLakeTable(storage, how)


def _first_entry(storage: ObjectStore, uri: str, spec: TableSpec) -> bytes:
    """The entry that makes the table: delta-rs' own, made elsewhere, with the protocol that the columns ask for."""
    with translated(storage), tempfile.TemporaryDirectory() as scratch:
        deltalake.DeltaTable.create(
            scratch,
            schema=arrow_schema(spec),
            partition_by=_partition_columns(spec),
            configuration=dict(spec.properties) or None,
        )
        actions = [json.loads(line) for line in (Path(scratch) / entry_key(0)).read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["operationParameters"] = {"mode": "ErrorIfExists", "location": uri}
        if "protocol" in action and any(not column.nullable for column in spec.columns):
            _name_invariants(action["protocol"])
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode() + b"\n"


def _name_invariants(protocol: dict[str, Any]) -> None:
    """NOT NULL is the feature `invariants`. From writer version 7 on features are named, and delta-rs leaves it out.

    Delta on the JVM does not even read a table that uses a feature without naming it.
    """
    if protocol["minWriterVersion"] >= NAMED_FEATURES:
        protocol["writerFeatures"] = sorted({*(protocol.get("writerFeatures") or ()), "invariants"})


def _exists(storage: ObjectStore) -> ConflictError:
    msg = f"There is already a Delta table at {storage.uri}"
    return ConflictError(
        msg, code="TableExists", left="It was not touched.", todo="Open it, or choose another location."
    )


def open_delta_table(location: str, options: S3Access | None = None, *, is_adopted: bool = False) -> DeltaLakeTable:
    """Open a table that is there."""
    how = options or S3Access()
    return DeltaLakeTable(open_store(location, how), how, is_adopted=is_adopted)


def _partition_columns(spec: TableSpec) -> list[str]:
    for field in spec.partition_by:
        if field.transform != "identity":
            msg = f"A Delta table cannot be partitioned by {field.transform} of {field.column}"
            raise ConfigError(msg, left="Nothing was made.", todo="Partition by a column itself, or use Iceberg.")
    return [field.column for field in spec.partition_by]
