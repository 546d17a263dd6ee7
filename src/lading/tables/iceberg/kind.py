"""Iceberg as a table format: tables are named by a catalog, in the home or shared, which may be lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from lading.errors import ConfigError, ConflictError
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore
from lading.tables.base import LakeTable, Writer, WriterSpec
from lading.tables.kind import FoundTable, TableKind, TablePlace, refuse_purge
from lading.tables.manifest import is_same_place
from lading.tables.read_elsewhere import filled_in
from lading.tables.types import arrow_schema

_WIDER = {pa.int8(): pa.int32(), pa.int16(): pa.int32()}
"""Iceberg has no whole numbers of less than four bytes."""

_READ = {
    "Polars": (
        "import polars as pl\n\n"
        '# NEWEST is the newest file in this folder.\nnewest = "$place/metadata/NEWEST.metadata.json"\n'
        "print(pl.scan_iceberg(newest).head(10).collect())\n"
    ),
    "DuckDB": (
        "import duckdb\nfrom pyiceberg.table import StaticTable\n\n"
        '# NEWEST is the newest file in this folder.\nnewest = "$place/metadata/NEWEST.metadata.json"\n'
        "rows = StaticTable.from_metadata(newest).scan().to_arrow()\n"
        'print(duckdb.sql("SELECT * FROM rows LIMIT 10"))\n'
    ),
    "Spark": (
        '# NEWEST is the newest file in this folder.\nnewest = "$place/metadata/NEWEST.metadata.json"\n'
        'spark.read.format("iceberg").load(newest).show(10)\n'
    ),
    "Trino": (
        "CALL iceberg.system.register_table(\n"
        "  schema_name => '$schema', table_name => '$table', table_location => '$location');\n"
        'SELECT * FROM iceberg."$schema_name"."$table_name" LIMIT 10;\n'
    ),
}


class IcebergKind:
    """Implements TableKind. PyIceberg is slow to import, so each method does it when it needs it."""

    name = "iceberg"
    title = "Iceberg"
    folder = "metadata"
    marker = r"metadata/[^/]+\.metadata\.json(\.gz)?"
    libraries: Collection[str] = ("pyiceberg",)
    catalog = "lading"
    empty_partition_is_null = False

    def missing(self) -> str:
        return ""

    def check_new(self, place: TablePlace) -> None:
        files = (Path(place.location) / "metadata").glob("*.metadata.json")
        if any(file.name.partition("-")[0].strip("0") for file in files):
            msg = f"There is already an Iceberg table at {place.location}"
            raise ConflictError(msg, code="TableExists", left="It was not touched.", todo="Move its files away.")

    def create(self, place: TablePlace, spec: TableSpec) -> None:
        from lading.tables.iceberg.catalog import catalog_of
        from lading.tables.iceberg.table import create_external_table, create_iceberg_table

        if place.catalog is not None:
            create_external_table(place.catalog, place.name.partition(".")[2], spec, place.location or None)
            return
        catalog = catalog_of(place)
        create_iceberg_table(catalog, place.name, spec, location=place.location, options=place.options).close()

    def open(self, place: TablePlace) -> LakeTable:
        from lading.tables.iceberg.catalog import catalog_of
        from lading.tables.iceberg.table import open_external_table, open_iceberg_table

        if place.catalog is not None:
            return open_external_table(place.catalog, place.name.partition(".")[2])
        return open_iceberg_table(catalog_of(place), place.name, place.options)

    def drop(self, place: TablePlace) -> None:
        from lading.tables.iceberg.catalog import catalog_of, drop_table

        drop_table(catalog_of(place), place.name)

    def shares_files(self, place: TablePlace) -> bool:
        from lading.tables.iceberg.catalog import catalog_of, shares_files

        return shares_files(catalog_of(place), place.name, place.options)

    def purge(self, place: TablePlace) -> None:
        raise refuse_purge(self.title, place)

    @contextmanager
    def find(self, place: TablePlace) -> Iterator[FoundTable]:
        from lading.tables.iceberg.catalog import catalog_of
        from lading.tables.iceberg.place import local_path
        from lading.tables.iceberg.postgres import DATABASE
        from lading.tables.iceberg.register import find_lost_table, is_in_catalog, register_iceberg_table
        from lading.tables.iceberg.table import open_iceberg_table

        catalog = catalog_of(place)
        # Not asked when it is not there: to ask would make it.
        is_there = bool(place.catalog_url) or (place.home / DATABASE).exists()
        if not is_there or not is_in_catalog(catalog, place.name, place.options):
            lost = find_lost_table(place.location, place.options)
            notes = [f"the catalog had lost it too, and it is at {lost.path}"]
            if lost.skipped:
                notes.append(f"passed over, since the files they added are gone: {', '.join(lost.skipped)}")
            give_back = partial(register_iceberg_table, catalog, place.name, lost, place.options)
            yield FoundTable(sight=lost, give_back=give_back, notes=tuple(notes))
            return
        with closing(open_iceberg_table(catalog, place.name, place.options)) as lake:
            if not is_same_place(local_path(lake.location), place.location):
                msg = f"The catalog has table {place.name} at {lake.location}, and not at {place.location}"
                todo = "Move the copy out of the way. Do not DROP the table: that would delete files."
                raise ConfigError(msg, left="Nothing was changed.", todo=todo)
            yield FoundTable(sight=lake)

    def check_owned(self, storage: ObjectStore) -> None:
        from lading.tables.iceberg.owned import check_own_table

        check_own_table(storage)

    def schema_of(self, spec: TableSpec) -> pa.Schema:
        return pa.schema([field.with_type(_wider(field.type)) for field in arrow_schema(spec)])

    def read_elsewhere(self, name: str, location: str) -> Mapping[str, str]:
        return filled_in(_READ, name, location)

    def open_writer(self, spec: WriterSpec, attempt: str) -> Writer:
        from lading.tables.iceberg.writer import IcebergWriter

        return IcebergWriter(spec, attempt)


def _wider(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_wider(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_wider(kind.key_type), _wider(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_wider(kind.value_type)))
    return _WIDER.get(kind, kind)


KIND: TableKind = IcebergKind()
