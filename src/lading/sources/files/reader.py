"""The executors' side: the rows of a split as Arrow batches, then its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

import pyarrow as pa

from lading.errors import FILE_UNREADABLE, ConfigError, SourceError
from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.sources.fields import FieldNotes
from lading.sources.files.errors import file_readable, file_unreadable, lines_in_field, translating
from lading.sources.files.json_reader import JsonReader, records_of
from lading.sources.files.payload import FilePart, parse_payload, pieces_of
from lading.sources.files.rows import BadRow, RowShaper
from lading.sources.files.spec import TOLD, FilesSpec, Format
from lading.sources.files.text_files import csv_batches, is_one_line, open_text
from lading.sources.files.together import fetch, groups_of, read_together
from lading.sources.files.watched import WatchedFile, judging
from lading.sources.hidden import HIDDEN
from lading.sources.records.json_records import JsonRecords
from lading.sources.records.passed import MAX_PASSED_BYTES
from lading.storage.store import ByteFile, ReadStore, open_store

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_Found = Iterator[pa.RecordBatch]


def output_schema(spec: FilesSpec) -> pa.Schema:
    """What batches look like: source columns, columns of the path, hidden columns."""
    paths = [pa.field(name, pa.string()) for name in spec.path_partition_keys]
    return pa.schema([*_schema(spec), *paths, *(TOLD.field(name) for name in spec.tells), *HIDDEN])


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
    if split.is_checked or split.poison:
        for part in payload.parts:
            yield from _read_alone(spec, part, place, split, count)
    else:
        for group in groups_of(payload.parts, spec):
            yield from _read_group(spec, group, place, split, count)
    yield SplitEnd(
        end=split.start if split.end is None else split.end,
        finished=payload.finished,
        rows=count.rows,
        source_files=sum(1 for part in payload.parts if part.begin == 0),
        source_bytes=sum(part.end - part.begin for part in payload.parts),
        received_bytes=count.received,
        marks={**payload.marks, **(payload.unread if count.is_put_aside else {})},
        fields=count.notes.drain() if count.notes is not None else {},
    )


class _Count:
    """What a split has given so far."""

    __slots__ = ("is_put_aside", "notes", "received", "records", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.received = 0
        self.is_put_aside = False
        self.notes: FieldNotes | None = None
        self.records: JsonRecords | None = None


def _read_alone(spec: FilesSpec, part: FilePart, place: ReadStore, split: Split, count: _Count) -> _Found:
    if split.is_checked:
        yield from _checked_file(spec, part, place, count)
    elif split.poison and not split.poison_at:
        yield from _passed_file(spec, part, place, split.poison, count)
    else:
        yield from _read_pieces(spec, part, place, split, count)


def _read_group(spec: FilesSpec, group: Sequence[FilePart], place: ReadStore, split: Split, count: _Count) -> _Found:
    """One part, or small files that are read together where that can be."""
    if len(group) == 1:
        yield from _read_pieces(spec, group[0], place, split, count)
        return
    store, rest = fetch(spec, group, place), list(group)
    if count.notes is None:
        if spec.format is Format.JSON and count.records is None:
            yield from _read_pieces(spec, rest.pop(0), store, split, count)  # It shows what values there are.
        named = [(part, path_values(part.key, spec.path_partition_keys, place.uri_of(part.key))) for part in rest]
        if (found := read_together(spec, named, store, count.records)) is not None:
            count.received += found.received
            for batch in found.batches:
                count.rows += batch.num_rows
                yield batch
            return
    for part in rest:
        yield from _read_pieces(spec, part, store, split, count)


def _passed_file(
    spec: FilesSpec, part: FilePart, store: ReadStore, reason: str, count: _Count
) -> Iterator[pa.RecordBatch]:
    """A file that is not looked at: one bad row stands for it, in the first of its parts."""
    if part.begin == 0:
        shaper = _shaper(spec, part, store, 0)
        count.rows += 1
        yield shaper.bad([BadRow(0, b"", reason)])


def _checked_file(spec: FilesSpec, part: FilePart, store: ReadStore, count: _Count) -> Iterator[pa.RecordBatch]:
    """A file that could not be read, looked at once more, all of it in the first of its parts. When what is in it is
    bad again, one bad row stands for it. Rows before that are not loaded: nobody sees half of a file."""
    if part.begin:
        return
    whole, seen = replace(part, end=part.size), _Count()
    seen.notes = FieldNotes(spec.watch) if spec.watch is not None else None
    try:
        for _ in _read_part(spec, whole, store, _shaper(spec, whole, store, 0), seen, _batches):
            pass
    except SourceError as error:
        if error.code != FILE_UNREADABLE:
            raise
        values = dict.fromkeys(spec.path_partition_keys)
        shaper = RowShaper(_schema(spec), part.key, values, tells=spec.tells, uri=store.uri_of(part.key))
        count.rows, count.is_put_aside = count.rows + 1, True
        yield shaper.bad([BadRow(0, b"", f"The file was put aside: {error.what}")])
    else:
        raise file_readable(store.uri_of(part.key))


def _read_pieces(
    spec: FilesSpec, part: FilePart, store: ReadStore, split: Split, count: _Count
) -> Iterator[pa.RecordBatch]:
    """The rows of a part, without a look at those that are passed over. They are numbered as if it were one piece."""
    before = count.rows
    for piece, is_passed in pieces_of(part, split.poison_at):
        shaper = _shaper(spec, part, store, count.rows - before)
        read = partial(_passed_row, split.poison) if is_passed else _batches
        for batch in _read_part(spec, piece, store, shaper, count, read):
            count.rows += batch.num_rows
            yield batch


def _passed_row(
    reason: str, spec: FilesSpec, part: FilePart, file: ByteFile, shaper: RowShaper, uri: str, count: _Count
) -> Iterator[pa.RecordBatch]:
    """The row that starts a part. It is kept for people; what killed workers may be its length."""
    text = open_text(file, part, spec, uri)
    raw = text.stream.read(MAX_PASSED_BYTES + 1)
    kept = raw.removesuffix(text.lines.delimiter) if len(raw) <= MAX_PASSED_BYTES else b""
    if spec.format.is_csv and not is_one_line(text, raw, kept, spec):
        raise lines_in_field(uri)
    count.received += text.stream.received
    yield shaper.bad([BadRow(1, kept, reason)])


def _shaper(spec: FilesSpec, part: FilePart, store: ReadStore, rows_before: int) -> RowShaper:
    uri = store.uri_of(part.key)
    values = path_values(part.key, spec.path_partition_keys, uri)
    # The rows of Parquet files are numbered through the whole file, also in its later parts.
    name = part.key if spec.format is Format.PARQUET else part.name
    return RowShaper(_schema(spec), name, values, rows_before=rows_before, tells=spec.tells, uri=uri)


def _read_part(
    spec: FilesSpec, part: FilePart, store: ReadStore, shaper: RowShaper, count: _Count, read: Callable[..., _Found]
) -> _Found:
    uri = store.uri_of(part.key)
    with translating(uri):
        file = WatchedFile(store.open(part.key, if_match=part.etag, size=part.size, random=not spec.format.is_text))
        try:
            with judging(file, uri):
                yield from read(spec, part, file, shaper, uri, count)
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
        # A file of a few rows ends before it has shown what values they have.
        count.records = count.records or records_of(spec.json, shaper.schema.names)
        found = JsonReader(spec.json, text.lines, shaper, records=count.records).batches(text.stream.read)
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
