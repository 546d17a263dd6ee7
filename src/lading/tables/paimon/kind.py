"""Paimon as a table format: a table is found by its place, as a filesystem catalog does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from lading.model.table import TableSpec
from lading.storage.store import ObjectStore
from lading.tables.base import LakeTable, Writer, WriterSpec
from lading.tables.kind import FoundTable, TableKind, TablePlace, refuse_purge
from lading.tables.read_elsewhere import filled_in
from lading.tables.types import arrow_schema

_READ = {"Spark": 'rows = spark.read.format("paimon").load("$place")\nrows.show(10)\n'}


class PaimonKind:
    """Implements TableKind."""

    name = "paimon"
    title = "Paimon"
    folder = "schema"
    marker = r"schema/schema-\d+"
    libraries: Collection[str] = ()
    catalog = ""
    empty_partition_is_null = False

    def missing(self) -> str:
        from lading.tables.paimon.library import missing_library

        return missing_library()

    def check_new(self, place: TablePlace) -> None:
        """There is no catalog that could have forgotten it."""

    def create(self, place: TablePlace, spec: TableSpec) -> None:
        from lading.tables.paimon.create import create_paimon_table

        create_paimon_table(place.location, spec, place.options)

    def open(self, place: TablePlace) -> LakeTable:
        from lading.tables.paimon.create import open_paimon_table

        return open_paimon_table(place.location, place.options)

    def drop(self, place: TablePlace) -> None:
        """No catalog of Lading knows it."""

    def shares_files(self, place: TablePlace) -> bool:
        """No Paimon table says so."""
        return False

    def purge(self, place: TablePlace) -> None:
        raise refuse_purge(self.title, place)

    @contextmanager
    def find(self, place: TablePlace) -> Iterator[FoundTable]:
        yield FoundTable(sight=self.open(place))

    def check_owned(self, storage: ObjectStore) -> None:
        """A table belongs to who commits to it; heads keep jobs apart."""

    def schema_of(self, spec: TableSpec) -> pa.Schema:
        return arrow_schema(spec)

    def read_elsewhere(self, name: str, location: str) -> Mapping[str, str]:
        return filled_in(_READ, name, location)

    def open_writer(self, spec: WriterSpec, attempt: str) -> Writer:
        from lading.tables.paimon.writer import PaimonWriter

        return PaimonWriter(spec, attempt)


KIND: TableKind = PaimonKind()
