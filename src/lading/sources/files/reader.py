"""The executors' side: the rows of a split as Arrow batches, then its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import pyarrow as pa

from lading.errors import ConfigError
from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.sources.fields import FieldNotes
from lading.sources.files.errors import file_unreadable, translating
from lading.sources.files.json_reader import JsonReader
from lading.sources.files.payload import FilePart, parse_payload
from lading.sources.files.rows import RowShaper
from lading.sources.files.spec import FilesSpec, Format
from lading.sources.files.text_files import csv_batches, open_text
from lading.sources.hidden import HIDDEN
from lading.storage.store import ByteFile, ReadStore, open_store

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def output_schema(spec: FilesSpec) -> pa.Schema:
    """What batches look like: source columns, columns of the path, hidden columns."""
    paths = [pa.field(name, pa.string()) for name in spec.path_partition_keys]
    return pa.schema([*_schema(spec), *paths, *HIDDEN])


def read_splits(spec: FilesSpec, splits: Sequence[Split]) -> Iterator[pa.RecordBatch | SplitEnd]:
    """Splits one after the other."""
    for split in splits:
        yield from read_split(spec, split)


def read_split(spec: FilesSpec, split: Split, *, store: ReadStore | None = None) -> Iterator[pa.RecordBatch | SplitEnd]:
    """Every row of a split, good or bad, in batches; then one SplitEnd.

    Raises StageError, StageError, SourceError or StorageError, each with the name of the file. The
    rows before it must be thrown away then: no SplitEnd, no split. Memory is bounded by the block size and by
    `max_record_bytes`, for parquet and orc by one batch of one row group or one stripe.
    """
    place = store or open_store(spec.place.root, spec.s3)
    payload = parse_payload(split.payload)
    count = _Count()
    count.notes = FieldNotes(spec.watch) if spec.watch is not None else None
    for part in payload.parts:
        yield from _read_part(spec, part, place, count)
    yield SplitEnd(
        end=split.start if split.end is None else split.end,
        finished=payload.finished,
        rows=count.rows,
        source_files=sum(1 for part in payload.parts if part.begin == 0),
        source_bytes=sum(part.end - part.begin for part in payload.parts),
        received_bytes=count.received,
        marks=payload.marks,
        fields=count.notes.drain() if count.notes is not None else {},
    )


class _Count:
    """What a split has given so far."""

    __slots__ = ("notes", "received", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.received = 0
        self.notes: FieldNotes | None = None


def _read_part(spec: FilesSpec, part: FilePart, store: ReadStore, count: _Count) -> Iterator[pa.RecordBatch]:
    uri = store.uri_of(part.key)
    shaper = RowShaper(_schema(spec), part.name, path_values(part.key, spec.path_partition_keys, uri))
    with translating(uri):
        file = store.open(part.key, if_match=part.etag, size=part.size, random=not spec.format.is_text)
        try:
            for batch in _batches(spec, part, file, shaper, uri, count):
                count.rows += batch.num_rows
                yield batch
            file.check()
        finally:
            file.close()


def _batches(
    spec: FilesSpec, part: FilePart, file: ByteFile, shaper: RowShaper, uri: str, count: _Count
) -> Iterator[pa.RecordBatch]:
    if not spec.format.is_text:
        # Imported here so that readers of text do not pay for it.
        from lading.sources.files.columnar import columnar_batches

        yield from columnar_batches(file, part, spec, shaper, uri, count.notes)
        count.received += part.end - part.begin
        return
    text = open_text(file, part, spec, uri)
    if spec.format is Format.JSON:
        found = JsonReader(spec.json, text.lines, shaper).batches(text.stream.read)
    else:
        found = csv_batches(text, spec, shaper, uri, count.notes)
    for batch in found:
        if count.notes is not None:
            count.notes.see_batch(batch)
        yield batch
    count.received += text.stream.received


def path_values(key: str, names: tuple[str, ...], uri: str) -> dict[str, str | None]:
    """Values of `name=value` folders in a key."""
    folders = dict(part.split("=", 1) for part in key.split("/")[:-1] if "=" in part)
    if missing := [name for name in names if name not in folders]:
        raise file_unreadable(uri, f"its path has no folder {', '.join(f'{name}=…' for name in missing)}")
    return {name: None if folders[name] == _HIVE_NULL else unquote(folders[name]) for name in names}


def _schema(spec: FilesSpec) -> pa.Schema:
    if spec.schema is None or not spec.schema.names:
        msg = "The columns of the files are not known"
        raise ConfigError(msg, left="Nothing was read.", todo="Infer the schema first, or give the columns.")
    return spec.schema
