"""Manifests of a Paimon table, written and read by pypaimon on Lading's storage.

A snapshot names two lists: of the manifests that were there before, and of those that it brought. Small manifests are
put together when there are many, so that the thousandth commit costs what the tenth did.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.storage.store import ObjectStore
from lading.tables.paimon.fileio import StorageFiles
from lading.tables.paimon.library import translated
from lading.tables.paimon.partitions import parse_value
from lading.tables.paimon.schema import PaimonSchema, Schemas
from lading.tables.paimon.snapshots import Snapshot
from lading.tables.paimon.stats import FileFacts, parse_stats

MERGE_AT = 30
"""So many small manifests are put together."""
_SMALL_BYTES = 8 * 1024 * 1024
ADD = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """The manifest lists of a snapshot that is about to be put, and every file that was written for it."""

    base: tuple[str, int]
    delta: tuple[str, int]
    written: tuple[str, ...]
    """Keys. When the snapshot is certainly not put, nobody names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file of a snapshot."""

    path: str
    """Relative to the table."""
    schema_id: int
    rows: int
    entry: Any
    """pypaimon's ManifestEntry."""


class Manifests:
    """The manifests of one table, as of one of its schemas."""

    def __init__(self, storage: ObjectStore, schema: PaimonSchema, schemas: Schemas) -> None:
        from pypaimon.common.options import Options
        from pypaimon.common.options.core_options import CoreOptions
        from pypaimon.manifest.manifest_file_manager import ManifestFileManager
        from pypaimon.manifest.manifest_list_manager import ManifestListManager

        self._storage = storage
        self._schema = schema
        self._io = StorageFiles(storage)
        fields = {field.name: field for field in schema.table.fields}
        # All that these classes ask of a table. The whole class would import half of pypaimon, for seconds.
        table = SimpleNamespace(
            table_path=storage.uri,
            file_io=self._io,
            options=CoreOptions(Options(dict(schema.options))),
            table_schema=schema.table,
            schema_manager=SimpleNamespace(get_schema=lambda number: schemas.get_schema(number).table),
            partition_keys_fields=[fields[name] for name in schema.partition_keys],
            primary_keys_fields=[],
            trimmed_primary_keys_fields=[],
        )
        self._fields = table.partition_keys_fields
        with translated(storage.uri):
            self._files = ManifestFileManager(table)
            self._lists = ManifestListManager(table)

    def write(self, newest: Snapshot | None, staged: Sequence[StagedFile]) -> Lists:
        """Write everything that a snapshot after `newest` needs. Dies in here: files that nobody names."""
        entries = [self._entry(file) for file in staged]
        name, before = str(uuid.uuid4()), len(self._io.written)
        with translated(self._storage.uri):
            old = (
                []
                if newest is None
                else self._merged([*self._metas(newest.base_list), *self._metas(newest.delta_list)])
            )
            new = self._files.rolling_write(entries, _SMALL_BYTES, f"manifest-{name}")
            base = self._lists.write(f"manifest-list-{name}-0", old)
            delta = self._lists.write(f"manifest-list-{name}-1", new)
        written = tuple(self._io.written[before:])
        return Lists(base=(f"manifest-list-{name}-0", base), delta=(f"manifest-list-{name}-1", delta), written=written)

    def files(self, snapshot: Snapshot | None) -> list[DataFile]:
        """The data files of a snapshot."""
        if snapshot is None:
            return []
        with translated(self._storage.uri):
            metas = [*self._metas(snapshot.base_list), *self._metas(snapshot.delta_list)]
            entries = self._files.read_entries_parallel(metas, drop_stats=False) if metas else []
            return [self._data_file(entry) for entry in entries]

    def removed(self, snapshot: Snapshot) -> list[str]:
        """Paths of the files that a snapshot took out."""
        with translated(self._storage.uri):
            entries = [entry for meta in self._metas(snapshot.delta_list) for entry in self._files.read(meta.file_name)]
            return [self._data_file(entry).path for entry in entries if entry.kind != ADD]

    def named(self, snapshot: Snapshot, read: set[str]) -> set[str]:
        """Paths of all files that the manifests of a snapshot name, but for manifests that were `read` before."""
        found = set[str]()
        with translated(self._storage.uri):
            for meta in (*self._metas(snapshot.base_list), *self._metas(snapshot.delta_list)):
                if meta.file_name not in read:
                    found.update(self._data_file(entry).path for entry in self._files.read(meta.file_name))
                    read.add(meta.file_name)
        return found

    def names(self, snapshot: Snapshot) -> Iterator[str]:
        """Keys of all lists and manifests of a snapshot."""
        with translated(self._storage.uri):
            for listed in (snapshot.base_list, snapshot.delta_list):
                yield f"manifest/{listed[0]}"
                yield from (f"manifest/{meta.file_name}" for meta in self._metas(listed))

    def _metas(self, listed: tuple[str, int | None]) -> list[Any]:
        metas: list[Any] = self._lists.read(*listed)
        return metas

    def _merged(self, metas: list[Any]) -> list[Any]:
        """Manifests that only add files, put together when there are many. Others stay: their order matters."""
        small = [meta for meta in metas if not meta.num_deleted_files and meta.file_size < _SMALL_BYTES]
        if len(small) < MERGE_AT:
            return metas
        entries = [entry for meta in small for entry in self._files.read(meta.file_name, drop_stats=False)]
        merged = self._files.rolling_write(entries, _SMALL_BYTES, f"manifest-{uuid.uuid4()}")
        names = {meta.file_name for meta in small}
        return [*merged, *(meta for meta in metas if meta.file_name not in names)]

    def _data_file(self, entry: Any) -> DataFile:
        folder = self._folder(tuple(entry.partition.values))
        path = entry.file.external_path or f"{folder}/{entry.file.file_name}"
        if entry.bucket and not entry.file.external_path:
            path = f"{folder.rpartition('/')[0]}/bucket-{entry.bucket}/{entry.file.file_name}".lstrip("/")
        return DataFile(path=path, schema_id=entry.file.schema_id, rows=entry.file.row_count, entry=entry)

    def _folder(self, values: tuple[Any, ...]) -> str:
        """Where Paimon looks for the files of a partition, relative to the table."""
        from pypaimon.utils.file_store_path_factory import FileStorePathFactory

        factory = FileStorePathFactory(
            root=self._storage.uri,
            partition_keys=list(self._schema.partition_keys),
            partition_types=[field.type for field in self._fields],
            default_part_value=self._schema.default_partition,
            format_identifier="parquet",
            data_file_prefix="data-",
            changelog_file_prefix="changelog-",
            legacy_partition_name=self._schema.is_legacy,
            file_suffix_include_compression=False,
            file_compression="zstd",
        )
        return str(factory.relative_bucket_path(values, 0, canonical_partition=True)).removeprefix("./")

    def _entry(self, file: StagedFile) -> Any:
        """A staged file as Paimon knows it. Raises SchemaMismatchError when it does not fit the table as it is now."""
        from pypaimon.manifest.schema.manifest_entry import ManifestEntry
        from pypaimon.table.row.generic_row import GenericRow

        facts = parse_stats(file, self._schema.arrow)
        self._check_fit(file, facts)
        values = [
            parse_value(file.partition[name], self._schema.arrow.field(name).type)
            for name in self._schema.partition_keys
        ]
        folder, _, name = file.path.rpartition("/")
        if folder != self._folder(tuple(values)):
            raise _misfit(file, f"is not in the folder of its partition, {self._folder(tuple(values))}")
        return ManifestEntry(
            kind=ADD,
            partition=GenericRow(values, self._fields),
            bucket=0,
            total_buckets=-1,
            file=self._meta(file, facts, name),
        )

    def _meta(self, file: StagedFile, facts: FileFacts, name: str) -> Any:
        from pypaimon.manifest.schema.data_file_meta import DataFileMeta
        from pypaimon.manifest.schema.simple_stats import SimpleStats
        from pypaimon.table.row.generic_row import GenericRow

        # Statistics of the columns that the file has, in the order of the table.
        fields = [field for field in self._schema.table.fields if field.name in facts.columns]
        empty = GenericRow([], [])
        stats = SimpleStats(
            GenericRow([facts.lows.get(field.name) for field in fields], fields),
            GenericRow([facts.highs.get(field.name) for field in fields], fields),
            [facts.nulls[field.name] for field in fields],
        )
        return DataFileMeta.create(
            file_name=name,
            file_size=file.size_bytes,
            row_count=file.rows,
            min_key=empty,
            max_key=empty,
            key_stats=SimpleStats(empty, empty, []),
            value_stats=stats,
            min_sequence_number=0,
            max_sequence_number=0,
            schema_id=facts.schema_id,
            level=0,
            extra_files=[],
            delete_row_count=0,
            file_source=0,
            value_stats_cols=[field.name for field in fields],
        )

    def _check_fit(self, file: StagedFile, facts: FileFacts) -> None:
        columns = self._schema.columns
        if set(file.partition) != set(self._schema.partition_keys):
            raise _misfit(
                file, f"is partitioned by {sorted(file.partition)}, the table by {self._schema.partition_keys}"
            )
        for name, known in facts.columns.items():
            if columns.get(name) != known:
                raise _misfit(file, f"has column {name} as {known[1]}, and the table has it no more or has another one")
        required: list[pa.Field] = [field for field in self._schema.arrow if not field.nullable]
        for field in required:
            if field.name not in facts.columns or facts.nulls.get(field.name, 0):
                raise _misfit(file, f"has nulls in column {field.name}, which must have a value")


def _misfit(file: StagedFile, why: str) -> SchemaMismatchError:
    msg = f"The staged file {file.path} {why}"
    return SchemaMismatchError(
        msg, left="Nothing was committed.", todo="The batch is staged again for the table as it is now.", path=file.path
    )
