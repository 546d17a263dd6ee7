"""An Iceberg table whose catalog has forgotten it, given back to the catalog by its files.

Each commit writes a metadata file with the next number, and then asks the catalog to name it. The newest file is the
table, unless the catalog never named it: a commit that lost a race, or whose process died. Such a file is a state of
the table as whole as any other, rows and head together, as long as the files it added are there; a commit that was
known not to have landed has deleted them. So: the highest number of which one file, and no second one, is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lading.errors import ConfigError, TableNotFoundError
from lading.tables.iceberg.catalog import CatalogSpec, ensure_namespace, file_io_properties, make_home, open_catalog
from lading.tables.iceberg.faults import translated
from lading.tables.iceberg.fileio import DurableFileIO
from lading.tables.iceberg.place import open_place
from lading.tables.storage import StorageOptions

_NUMBERED = re.compile(r"metadata/(\d+)-[^/]+\.metadata\.json")


def is_in_catalog(spec: CatalogSpec, identifier: str, options: StorageOptions) -> bool:
    """Whether the catalog knows a table."""
    make_home(spec)
    catalog = open_catalog(spec, options)
    try:
        with translated(f"table {identifier}"):
            return catalog.table_exists(identifier)
    finally:
        catalog.close()


def register_iceberg_table(spec: CatalogSpec, identifier: str, location: str, options: StorageOptions) -> str:
    """Give a table back to the catalog; returns the metadata file. Raises TableNotFoundError, ConfigError."""
    make_home(spec)
    catalog = open_catalog(spec, options)
    try:
        with translated(f"table {identifier}"):
            chosen = _choose(location, options)
            ensure_namespace(catalog, identifier)
            catalog.register_table(identifier, chosen)
            return chosen
    finally:
        catalog.close()


def _choose(location: str, options: StorageOptions) -> str:
    storage, io = open_place(location, options), DurableFileIO(file_io_properties(options))
    numbered: dict[int, list[str]] = {}
    for key in storage.keys("metadata/"):
        if match := _NUMBERED.fullmatch(key):
            numbered.setdefault(int(match[1]), []).append(f"{storage.uri}/{key}")
    for number in sorted(numbered, reverse=True):
        whole = [path for path in numbered[number] if _is_whole(io, path)]
        if len(whole) > 1:
            msg = f"Several metadata files could be the newest of {location}: {', '.join(sorted(whole))}"
            todo = "Find out which one the table was at, and move the others away; each is a whole state of the table."
            raise ConfigError(msg, left="Nothing was changed.", todo=todo)
        if whole:
            return whole[0]
    msg = f"There is no metadata file at {location} whose files are all there"
    raise TableNotFoundError(msg, left="Nothing was changed.", todo="Restore the table from a copy.")


def _is_whole(io: FileIO, path: str) -> bool:
    """Whether everything is there that the newest commit of a metadata file added."""
    try:
        metadata = FromInputFile.table_metadata(io.new_input(path))
        return all(io.new_input(file).exists() for file in _added(io, metadata))
    except (FileNotFoundError, ValueError):  # A manifest is gone, or the file was not written to its end.
        return False


def _added(io: FileIO, metadata: TableMetadata) -> Iterable[str]:
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return
    for manifest in snapshot.manifests(io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
                yield entry.data_file.file_path
