"""Which data files an Iceberg table may still need: those of every snapshot that it keeps."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lading.errors import TableError
from lading.storage.store import ObjectStore
from lading.tables.iceberg.place import relative_path
from lading.tables.iceberg.retention import GC_ENABLED

_NUMBERED = re.compile(r"(?:.*/)?(\d+)-[^/]+\.metadata\.json")


def kept_files(table: Table, location: str, storage: ObjectStore) -> set[str]:
    """Every file that a manifest of a kept snapshot names.

    A catalog that was put back from a copy is behind its table: metadata files with higher numbers than the one it
    names count, too. Raises TableError when the table's settings keep everything.
    """
    if table.metadata.properties.get(GC_ENABLED, "true").strip().lower() != "true":
        msg = f"The Iceberg table at {location} says {GC_ENABLED} = {table.metadata.properties[GC_ENABLED]}"
        raise TableError(msg, left="Nothing was deleted.", todo=f"Set {GC_ENABLED} if its files belong to it alone.")
    kept, read = set[str](), set[str]()
    for metadata in (table.metadata, *_newer(table, storage)):
        for snapshot in metadata.snapshots:
            for manifest in snapshot.manifests(table.io):
                if manifest.manifest_path in read:
                    continue
                read.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                kept.update(relative_path(location, entry.data_file.file_path) for entry in entries)
    return kept


def _newer(table: Table, storage: ObjectStore) -> Iterator[TableMetadata]:
    """Metadata files that were written after the one that the catalog names."""
    named = _NUMBERED.fullmatch(table.metadata_location)
    for key in storage.keys("metadata/"):
        match = _NUMBERED.fullmatch(key)
        if match is None:
            continue
        found = _read(table.io, f"{storage.uri}/{key}")
        if found is not None and found.table_uuid != table.metadata.table_uuid:
            msg = f"At {storage.uri} is another Iceberg table, too: {key}"
            todo = "Give each a place of its own, or remove the metadata of one that was dropped."
            raise TableError(msg, left="Nothing was deleted.", todo=todo)
        if found is not None and (named is None or int(match[1]) > int(named[1])):
            yield found


def _read(io: FileIO, path: str) -> TableMetadata | None:
    """None: it was not written to its end, so no commit named it. Raises TableError for what is newer than we are."""
    file = io.new_input(path)
    try:
        return FromInputFile.table_metadata(file)
    except (ValidationError, ValueError) as error:
        if not _is_whole(file):
            return None
        msg = f"The metadata of Iceberg in {path} cannot be understood"
        todo = "Another engine may write a newer format: use a newer Lading, or remove the file if nothing names it."
        raise TableError(msg, left="Nothing was deleted.", todo=todo) from error


def _is_whole(file: InputFile) -> bool:
    with file.open() as stream:
        content = stream.read()
    try:
        json.loads(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    except (ValueError, EOFError, OSError):
        return False
    return True
