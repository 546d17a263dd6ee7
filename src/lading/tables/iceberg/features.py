"""Whether Lading may append to an Iceberg table: what the table asks of its writers, against what Lading does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.serializers import Compressor
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import UnknownTransform
from pyiceberg.types import (
    GeographyType,
    GeometryType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UnknownType,
    UUIDType,
)

from lading.errors import TableError
from lading.tables.iceberg.lineage import VERSION as LINEAGE_VERSION
from lading.tables.iceberg.lineage import dump_metadata

_TYPES = (
    GeographyType,
    GeometryType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UnknownType,
    UUIDType,
)
DATA_PATH = "write.data.path"
OBJECT_STORAGE = "write.object-storage.enabled"
_OLD_PATHS = ("write.object-storage.path", "write.folder-storage.path")
_ENCRYPTION = "encryption."


def check_appendable(table: Table, *, where: str) -> None:
    """Refuse a table that asks for more than Lading does. At CREATE JOB, and again before every commit."""
    metadata = table.metadata
    _check_types(metadata.schema(), where)
    _check_properties(metadata, where)
    for field in metadata.spec().fields:
        if isinstance(field.transform, UnknownTransform) or len(getattr(field, "source_ids", ())) > 1:
            raise _refused(where, f"the partition field {field.name} ({field.transform})", "Replace that field.")
    if lost := lost_metadata(table):
        todo = "Use a catalog with a server of its own (REST), which keeps what Lading does not know."
        raise _refused(where, f"metadata that Lading does not know: {lost}", todo)


def lost_metadata(table: Table) -> str:
    """What a commit would leave out. A catalog without a server has the whole metadata written again each time."""
    if table.metadata.format_version != LINEAGE_VERSION or not isinstance(table.catalog, MetastoreCatalog):
        return ""
    return find_lost(_raw(table.io, table.metadata_location), json.loads(dump_metadata(table.metadata)))


def data_folder(metadata: TableMetadata) -> str:
    """Where data files go, relative to the table. Raises TableError when that is not below the table's location."""
    location, path = metadata.location.rstrip("/"), metadata.properties.get(DATA_PATH, "").rstrip("/")
    if not path:
        return "data"
    if not path.startswith(f"{location}/") or ".." in path.split("/"):
        todo = "Remove the property, or let it name a folder below the table's location."
        raise _refused(metadata.location, f"files at another place ({DATA_PATH} = {path})", todo)
    return path.removeprefix(f"{location}/")


def is_for_object_storage(metadata: TableMetadata) -> bool:
    """Whether files are to be spread over many prefixes."""
    return metadata.properties.get(OBJECT_STORAGE, "false").strip().lower() == "true"


def _check_types(schema: Schema, where: str) -> None:
    for column in schema.fields:
        if isinstance(column.field_type, _TYPES):
            # Also when the job does not fill it: its files have every column.
            todo = "Load into a table without this type, or change the column with the engine that made it."
            raise _refused(where, f"the type {column.field_type} (column {column.name})", todo)


def _check_properties(metadata: TableMetadata, where: str) -> None:
    data_folder(metadata)
    for name, value in sorted(metadata.properties.items()):
        if name in _OLD_PATHS:
            raise _refused(where, f"files at another place ({name} = {value})", "Remove the property.")
        if name.startswith(_ENCRYPTION):
            raise _refused(where, f"encryption ({name})", "Lading writes files that everybody can read. Remove it.")


def find_lost(theirs: Any, ours: Any, path: str = "") -> str:
    """Where metadata say something that Lading's writing of them would not; empty when all is kept."""
    if isinstance(theirs, Mapping):
        if not isinstance(ours, Mapping):
            return path or "all of it"
        found = (_lost_key(name, value, ours, f"{path}/{name}") for name, value in theirs.items())
        return next((each for each in found if each), "")
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return path
        pairs = enumerate(zip(theirs, ours, strict=True))
        return next((lost for at, (one, other) in pairs if (lost := find_lost(one, other, f"{path}/{at}"))), "")
    return "" if theirs == ours or str(theirs).replace(" ", "") == str(ours).replace(" ", "") else path


def _lost_key(name: str, value: Any, ours: Mapping[str, Any], path: str) -> str:
    if name in ours:
        return find_lost(value, ours[name], path)
    # Nothing said is nothing lost; -1 stands for no snapshot.
    return "" if value in (None, [], {}, "") or (name == "current-snapshot-id" and value == -1) else path


def _raw(io: FileIO, path: str) -> Any:
    with io.new_input(path).open() as stream, Compressor.get_compressor(path).stream_decompressor(stream) as plain:
        return json.loads(plain.read())


def _refused(where: str, needs: str, todo: str) -> TableError:
    msg = f"The Iceberg table {where} asks for {needs}, which Lading does not write"
    return TableError(msg, left="Nothing was written.", todo=todo)
