"""Parquet and ORC: rows in groups, typed, read a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from lading.model.rows import REST
from lading.sources.fields import FieldNotes, folded, spark_name
from lading.sources.files.column_fit import fit_each
from lading.sources.files.errors import file_unreadable
from lading.sources.files.payload import FilePart
from lading.sources.files.rows import MAX_ROWS, RowShaper
from lading.sources.files.spec import FilesSpec, Format, MissingColumns
from lading.sources.files.text_files import check_columns
from lading.sources.files.unpack import lend
from lading.storage.store import ByteFile


def columnar_batches(
    file: ByteFile, part: FilePart, spec: FilesSpec, shaper: RowShaper, uri: str, notes: FieldNotes | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of the groups or stripes that belong to a part."""
    source = lend(file)
    if notes is not None:
        yield from _watched(source, part, spec, shaper, uri, notes)
        return
    pieces = _parquet(source, part, shaper) if spec.format is Format.PARQUET else _orc(source, part, shaper)
    for found, first, batch in pieces:
        _check_doubled(found, uri)
        if spec.missing_columns is MissingColumns.ERROR:
            check_columns(shaper.schema.names, found, uri)
        yield from shaper.good(_fit(batch, shaper.schema, uri), first)


def _watched(
    source: Any, part: FilePart, spec: FilesSpec, shaper: RowShaper, uri: str, notes: FieldNotes
) -> Iterator[pa.RecordBatch]:
    """Columns that the job does not know are told, and go into `__rest` where somebody wants them."""
    known = [field for field in shaper.schema if field.name != REST]
    found = {field.name: plain_type(field.type) for field in _file_schema(source, spec)}
    taken = {*spec.path_partition_keys, *(field.name for field in known)}
    extras = [pa.field(name, kind) for name, kind in found.items() if name not in taken]
    for name, kind in found.items():
        (notes.see_wider if name in notes.watch.known else notes.see)(name, spark_name(kind))
    extras = extras if notes.watch.rescues else []
    wide = shaper.widened(pa.schema([*known, *extras]))
    pieces = _parquet(source, part, wide) if spec.format is Format.PARQUET else _orc(source, part, wide)
    for names, first, batch in pieces:
        _check_doubled(names, uri)
        columns, misfits = fit_each(batch, wide.schema, uri, keeps=notes.watch.rescues)
        for shaped in wide.good(columns, first):
            yield folded(shaped, shaper.whole, [field.name for field in extras], misfits)


def _file_schema(source: Any, spec: FilesSpec) -> pa.Schema:
    found = pq.read_schema(source) if spec.format is Format.PARQUET else paorc.ORCFile(source).schema
    source.seek(0)
    return found


def columnar_schema(file: ByteFile, spec: FilesSpec) -> pa.Schema:
    """The columns of a file in types that Spark has."""
    source = lend(file)
    found = pq.read_schema(source) if spec.format is Format.PARQUET else paorc.ORCFile(source).schema
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in found])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that Spark has for a type of Arrow, without losing values."""
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_time(kind) or types.is_null(kind):
        return pa.string()
    if types.is_date64(kind):
        return pa.date32()
    return _plain_nested(kind)


def _plain_nested(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def _check_doubled(found: tuple[str, ...], uri: str) -> None:
    if doubled := sorted({name for name in found if found.count(name) > 1}):
        raise file_unreadable(uri, f"it has more than one column {', '.join(doubled)}")


Piece = tuple[tuple[str, ...], int, pa.RecordBatch]
"""Columns of the file, number of the first row, rows."""


def _parquet(source: Any, part: FilePart, shaper: RowShaper) -> Iterator[Piece]:
    with pq.ParquetFile(source, page_checksum_verification=True) as reader:
        names = tuple(reader.schema_arrow.names)
        wanted = [name for name in shaper.schema.names if name in names]
        first = 1
        for number in range(reader.metadata.num_row_groups):
            group, following = reader.metadata.row_group(number), first + reader.metadata.row_group(number).num_rows
            if part.begin <= _group_start(group) < part.end:
                for batch in reader.iter_batches(MAX_ROWS, row_groups=[number], columns=wanted, use_threads=False):
                    yield names, first, batch
                    first += batch.num_rows
            first = following


def _group_start(group: Any) -> int:
    """Where a row group starts in its file. A group without columns is taken with the start of the file."""
    if not group.num_columns:
        return 0
    chunk = group.column(0)
    offsets = [chunk.data_page_offset, chunk.dictionary_page_offset]
    return min(int(offset) for offset in offsets if offset)


def _orc(source: Any, part: FilePart, shaper: RowShaper) -> Iterator[Piece]:
    reader = paorc.ORCFile(source)
    names = tuple(reader.schema.names)
    wanted = [name for name in shaper.schema.names if name in names]
    first = 1
    for number in range(reader.nstripes):
        # The library does not tell where stripes are; an even share of the file gives each to exactly one part.
        if part.begin <= part.size * number // reader.nstripes < part.end:
            stripe = reader.read_stripe(number, columns=wanted)
            for at in range(0, stripe.num_rows, MAX_ROWS):
                yield names, first + at, stripe.slice(at, MAX_ROWS)
            first += stripe.num_rows


def _fit(batch: pa.RecordBatch, schema: pa.Schema, uri: str) -> list[pa.Array]:
    columns = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        array = batch.column(place)
        try:
            columns.append(array if array.type == field.type else array.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            why = f"column {field.name} is {array.type} and the job expects {field.type}: {error}"
            raise file_unreadable(uri, why) from error
    return columns
