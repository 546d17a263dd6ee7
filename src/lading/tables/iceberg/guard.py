"""What the properties of an Iceberg table must not do: name Python classes, or places.

PyIceberg imports and calls what `py-io-impl` and `write.py-location-provider.impl` name, and lets properties of a table
choose the endpoint and the keys of its files. Properties come from CREATE TABLE, and from metadata files that everybody
who may write to the bucket can change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lading.errors import ConfigError, TableError
from lading.model.s3_access import S3Access
from lading.storage.store import require_allowed
from lading.tables.iceberg.features import lost_metadata
from lading.tables.iceberg.lineage import write_metadata

_PLACES = frozenset(
    ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
)


def check_new_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties of a new table. Raises ConfigError."""
    for name in properties:
        if _names_class(name) or name.lower() in _PLACES:
            what = "a Python class" if _names_class(name) else "a place for files"
            msg = f"A table cannot have the property {name}: it names {what}"
            raise ConfigError(msg, left="Nothing was made.", todo="Leave it out. LOCATION says where a table is.")


def guard_catalog(catalog: Catalog, options: S3Access) -> Catalog:
    """The same catalog. Tables that it loads are checked each time, also by its own commits; files are reached as the
    options say, whatever a table says.
    """
    load_table = catalog.load_table

    def load_checked(identifier: Any) -> Table:
        table = load_table(identifier)
        check_loaded(table.metadata, options)
        return table

    def load_io(properties: object = None, location: str | None = None) -> FileIO:
        del properties
        return load_file_io(catalog.properties, location)

    # PyIceberg has no other way: these are what it calls before it uses the properties of a table.
    catalog.load_table = load_checked  # type: ignore[method-assign]
    catalog._load_file_io = load_io  # type: ignore[method-assign]  # noqa: SLF001
    if isinstance(catalog, MetastoreCatalog):
        _guard_metadata(catalog)
    return catalog


def _guard_metadata(catalog: MetastoreCatalog) -> None:
    """Metadata of version 3 are written by Lading's own hand, and only when nothing of them would be left out."""
    stage = catalog._update_and_stage_table  # noqa: SLF001 - the step of every commit that has the state before it

    def stage_checked(current_table: Table | None, *more: Any, **named: Any) -> Any:
        if current_table is not None and (lost := lost_metadata(current_table)):
            msg = f"the table has metadata that Lading does not know and would leave out: {lost}"
            raise ForbiddenError(msg)
        return stage(current_table, *more, **named)

    catalog._update_and_stage_table = stage_checked  # type: ignore[method-assign]  # noqa: SLF001
    catalog._write_metadata = write_metadata  # type: ignore[method-assign]  # noqa: SLF001


def check_loaded(metadata: TableMetadata, options: S3Access) -> None:
    """Refuse a table that names classes, or is where it may not be. Raises TableError, StorageError."""
    named = sorted(name for name in metadata.properties if _names_class(name))
    if named:
        msg = f"The Iceberg table at {metadata.location} names a Python class in its property {named[0]}"
        todo = "Lading runs no code that a table names. Remove the property with another engine."
        raise TableError(msg, left="Nothing was changed.", todo=todo)
    has_own_keys = bool(options.access_key)
    require_allowed(metadata.location, options.within, has_own_keys=has_own_keys, roots=options.roots)


def _names_class(name: str) -> bool:
    return name.lower().endswith("impl")
