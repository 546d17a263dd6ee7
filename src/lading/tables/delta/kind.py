"""Delta as a table format: a table is found by its place, there is no catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from lading.model.table import TableSpec
from lading.storage.store import ObjectStore, open_store
from lading.tables.base import LakeTable, Writer, WriterSpec
from lading.tables.kind import FoundTable, TableKind, TablePlace
from lading.tables.read_elsewhere import filled_in
from lading.tables.types import arrow_schema

_READ = {
    "Polars": 'import polars as pl\n\nrows = pl.scan_delta("$place")\nprint(rows.head(10).collect())\n',
    "DuckDB": (
        'import deltalake\nimport duckdb\n\nrows = deltalake.DeltaTable("$place").to_pyarrow_dataset()\n'
        'print(duckdb.sql("SELECT * FROM rows LIMIT 10"))\n'
    ),
    "Spark": 'rows = spark.read.format("delta").load("$place")\nrows.show(10)\n',
    "Trino": (
        "CALL delta.system.register_table(\n"
        "  schema_name => '$schema', table_name => '$table', table_location => '$location');\n"
        'SELECT * FROM delta."$schema_name"."$table_name" LIMIT 10;\n'
    ),
}


class DeltaKind:
    """Implements TableKind."""

    name = "delta"
    title = "Delta"
    folder = "_delta_log"
    marker = r"_delta_log/\d{20}\.(json|checkpoint\..+)"
    libraries: Collection[str] = ()
    catalog = ""
    empty_partition_is_null = True
    """In the log an empty partition value means null, for every type."""

    def missing(self) -> str:
        return ""

    def check_new(self, place: TablePlace) -> None:
        """There is no catalog that could have forgotten it."""

    def create(self, place: TablePlace, spec: TableSpec) -> None:
        from lading.tables.delta.create import create_delta_table

        # delta-rs takes no properties but Delta's own; ours are kept with the table's name.
        own = {key: value for key, value in spec.properties.items() if not _is_ours(key)}
        create_delta_table(place.location, replace(spec, properties=own), place.options)

    def open(self, place: TablePlace) -> LakeTable:
        from lading.tables.delta.create import open_delta_table

        return open_delta_table(place.location, place.options, is_adopted=place.is_adopted)

    def drop(self, place: TablePlace) -> None:
        """No catalog knows it."""

    def shares_files(self, place: TablePlace) -> bool:
        """No Delta table says so."""
        return False

    def purge(self, place: TablePlace) -> None:
        from lading.tables.delta.purge import purge_table

        purge_table(open_store(place.location, place.options))

    @contextmanager
    def find(self, place: TablePlace) -> Iterator[FoundTable]:
        yield FoundTable(sight=self.open(place))

    def check_owned(self, storage: ObjectStore) -> None:
        """A Delta table belongs to nobody."""

    def schema_of(self, spec: TableSpec) -> pa.Schema:
        return arrow_schema(spec)

    def read_elsewhere(self, name: str, location: str) -> Mapping[str, str]:
        return filled_in(_READ, name, location)

    def open_writer(self, spec: WriterSpec, attempt: str) -> Writer:
        from lading.tables.delta.writer import DeltaWriter

        return DeltaWriter(spec, attempt)


def _is_ours(key: str) -> bool:
    return key.startswith("lading.") or key == "comment"


KIND: TableKind = DeltaKind()
