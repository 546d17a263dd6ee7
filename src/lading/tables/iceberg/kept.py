"""Which data files an Iceberg table may still need: those of every snapshot that any of its metadata files has.

The metadata file that the catalog names is not the only one in use. Branches and tags of a catalog, and other catalogs
that the table was registered in, name others of the same table, older or newer ones, and nothing beside the table
tells which. So all that are there count. Of a snapshot that was expired the manifests are deleted, and what nobody can
reach by them is not kept: old metadata files keep no file that expiry gave up.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Iterator

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO, InputFile
from pyiceberg.manifest import ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lading.errors import TableError
from lading.storage.store import ObjectStore
from lading.tables.iceberg.place import local_path, relative_path
from lading.tables.iceberg.retention import GC_ENABLED

_METADATA_PATH = "write.metadata.path"
_METADATA_ENDS = (".json", ".json.gz")
_LEFT = "Nothing was deleted."


class KeptFiles:
    """What is found to be kept. No metadata file, list or manifest changes once it is written: each is read once, also
    when it is asked again."""

    def __init__(self) -> None:
        self._kept = set[str]()
        self._read = set[str]()

    def find(
        self, table: Table, location: str, storage: ObjectStore, asked: Collection[str] | None = None
    ) -> Collection[str]:
        """Every file that a manifest of a kept snapshot names, in any metadata file of the table.

        `asked`: it is enough to know which of these are kept. Tables of others may have tens of thousands of metadata
        files, and when the newest one names all of them, no other is read.
        Raises TableError when the table's settings keep everything, and when other metadata files cannot be looked for.
        """
        if table.metadata.properties.get(GC_ENABLED, "true").strip().lower() != "true":
            msg = f"The Iceberg table at {location} says {GC_ENABLED} = {table.metadata.properties[GC_ENABLED]}"
            raise TableError(msg, left=_LEFT, todo=f"Set {GC_ENABLED} if its files belong to it alone.")
        left = None if asked is None else {_name(path) for path in asked} - {_name(path) for path in self._kept}
        is_whole = False
        try:
            if left is None or left:
                is_whole = self._add(self._look(table, location, storage), left)
        finally:
            if not is_whole:
                # What was begun and not read to its end is read again: a file that it names would look unneeded.
                self._read = set()
        return self._kept

    def _add(self, looked: Iterable[set[str]], left: set[str] | None) -> bool:
        """Keep what is found. False: all that is left to find was found before the end."""
        for found in looked:
            self._kept |= found
            if left is not None:
                left -= {_name(path) for path in found}
                if not left:
                    return False
        return True

    def _look(self, table: Table, location: str, storage: ObjectStore) -> Iterator[set[str]]:
        """The newest metadata first: it names most of what is there."""
        for manifest in _manifests(table.io, table.metadata.snapshots, self._read):
            yield _files(table.io, manifest, location)
        for key, metadata in _others(table, location, storage, self._read):
            for snapshot in metadata.snapshots:
                try:
                    manifests = list(_manifests(table.io, [snapshot], self._read))
                except FileNotFoundError:
                    continue  # It was expired, or its commit was taken back: nobody can read it.
                for manifest in manifests:
                    try:
                        yield _files(table.io, manifest, location)
                    except FileNotFoundError:
                        continue
            self._read.add(key)


def _manifests(io: FileIO, snapshots: Iterable[Snapshot], read: set[str]) -> Iterator[ManifestFile]:
    """Those that were not read yet. Lists are told by their paths: thousands of metadata files share most of them."""
    for snapshot in snapshots:
        if snapshot.manifest_list in read:
            continue
        read.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(io):
            if manifest.manifest_path not in read:
                read.add(manifest.manifest_path)
                yield manifest


def _files(io: FileIO, manifest: ManifestFile, location: str) -> set[str]:
    entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
    return {relative_path(location, entry.data_file.file_path) for entry in entries}


def _others(
    table: Table, location: str, storage: ObjectStore, read: Collection[str]
) -> Iterator[tuple[str, TableMetadata]]:
    """The other metadata files of the table, but for those that were read: what a branch or a catalog may name."""
    named = _name(table.metadata_location or "")  # A server may keep it to itself.
    keys = {key for folder in _folders(table, location) for key in storage.keys(folder) if key.endswith(_METADATA_ENDS)}
    if named not in map(_name, keys):
        msg = f"The metadata of the Iceberg table at {location} is elsewhere: {table.metadata_location}"
        raise TableError(msg, left=_LEFT, todo="What else names its files cannot be found: clean up with its engine.")
    for key in sorted(keys, reverse=True):
        if _name(key) == named or key in read:
            continue
        found = _read(table.io, f"{storage.uri}/{key}")
        if found is not None and found.table_uuid != table.metadata.table_uuid:
            msg = f"At {storage.uri} is another Iceberg table, too: {key}"
            todo = "Give each a place of its own, or remove the metadata of one that was dropped."
            raise TableError(msg, left=_LEFT, todo=todo)
        if found is not None:
            yield key, found


def _folders(table: Table, location: str) -> set[str]:
    """Where metadata files are, relative to the table. Raises TableError when that is outside of its place."""
    folders = {"metadata/"}
    if (chosen := table.metadata.properties.get(_METADATA_PATH)) is not None:
        folder = relative_path(location, chosen)
        if folder == local_path(chosen) or ".." in folder.split("/"):
            msg = f"The Iceberg table at {location} says {_METADATA_PATH} = {chosen}"
            todo = "What else names its files cannot be found there: clean up with its engine."
            raise TableError(msg, left=_LEFT, todo=todo)
        folders.add(f"{folder.rstrip('/')}/")
    return folders


def _name(path: str) -> str:
    return path.rpartition("/")[2]


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
        raise TableError(msg, left=_LEFT, todo=todo) from error


def _is_whole(file: InputFile) -> bool:
    """Whether it is anything but the beginning of a metadata file."""
    with file.open() as stream:
        content = stream.read()
    is_zipped = content.startswith(b"\x1f\x8b")
    if content.strip() and not is_zipped and not content.lstrip().startswith(b"{"):
        return True
    try:
        json.loads(gzip.decompress(content) if is_zipped else content)
    except (ValueError, EOFError, OSError):
        return False
    return True
