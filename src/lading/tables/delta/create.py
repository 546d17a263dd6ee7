"""Making and opening Delta tables."""

from __future__ import annotations

import deltalake

from lading.errors import ConfigError, TableExistsError
from lading.model.table import TableSpec
from lading.tables.delta.actions import LOG
from lading.tables.delta.library import library_options, library_uri, translated
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.probe import check_put_if_absent
from lading.tables.storage import StorageOptions, open_storage
from lading.tables.types import arrow_schema


def create_delta_table(location: str, spec: TableSpec, options: StorageOptions | None = None) -> DeltaLakeTable:
    """Make an empty table and open it. Raises TableExistsError when one is there."""
    how = options or StorageOptions()
    storage = open_storage(location, how)
    if next(iter(storage.keys(f"{LOG}/")), None) is not None:
        msg = f"There is already a Delta table at {storage.uri}"
        raise TableExistsError(msg, left="It was not touched.", todo="Open it, or choose another location.")
    check_put_if_absent(storage, how)
    with translated(storage):
        deltalake.DeltaTable.create(
            library_uri(storage),
            schema=arrow_schema(spec),
            partition_by=_partition_columns(spec),
            configuration=dict(spec.properties) or None,
            storage_options=library_options(how),
        )
    return DeltaLakeTable(storage, how)


def open_delta_table(location: str, options: StorageOptions | None = None) -> DeltaLakeTable:
    """Open a table that is there."""
    how = options or StorageOptions()
    return DeltaLakeTable(open_storage(location, how), how)


def _partition_columns(spec: TableSpec) -> list[str]:
    for field in spec.partition_by:
        if field.transform != "identity":
            msg = f"A Delta table cannot be partitioned by {field.transform} of {field.column}"
            raise ConfigError(msg, left="Nothing was made.", todo="Partition by a column itself, or use Iceberg.")
    return [field.column for field in spec.partition_by]
