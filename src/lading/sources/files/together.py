"""Small files, read together: to open a parser and to map a batch costs more than the rows of one of them.

Their bytes are fetched first, from a store many at once. Csv files that begin alike become one text, with a mark behind
each: a record of its own that no file holds. Where every mark is a record again, every file began and ended where
records do, so the parser gave what it gives for each of them alone. Where one is not (a field that is not closed, lines
that end in other ways), each is read by itself.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from lading.errors import SourceError
from lading.model.row_formats import CsvOptions
from lading.sources.files.blocks import BOM
from lading.sources.files.csv_fast import FastCsv
from lading.sources.files.errors import translating
from lading.sources.files.payload import FilePart
from lading.sources.files.rows import BadRow, FileRows, ManyShaper
from lading.sources.files.spec import Compression, FilesSpec, MissingColumns, compression_of
from lading.sources.files.text_files import open_text
from lading.sources.files.unpack import check_is_text
from lading.sources.files.watched import WatchedFile, judging
from lading.storage.store import ByteFile, ReadStore

SMALL_BYTES = 256 * 1024
"""A larger file is worth a parser of its own."""
GROUP_BYTES = 2 * 1024 * 1024
"""About what files that are read together may have."""
_AT_ONCE = 8
"""Requests to a store: each of them mostly waits."""
_LETTERS = "xyzwvuXYZWVU0123456789"


def groups_of(parts: Sequence[FilePart], spec: FilesSpec) -> Iterator[Sequence[FilePart]]:
    """The parts in their order: small whole files in groups, all others alone."""
    group, size = list[FilePart](), 0
    for part in parts:
        is_small = part.is_whole and part.size <= min(SMALL_BYTES, spec.max_record_bytes)
        if group and (not is_small or size + part.size > GROUP_BYTES):
            yield group
            group, size = [], 0
        if is_small:
            group.append(part)
            size += part.size
        else:
            yield [part]
    if group:
        yield group


class Fetched:
    """A store of which some files are in memory. Only `open` is asked of it, and for no other files."""

    def __init__(self, store: ReadStore, contents: Mapping[str, bytes]) -> None:
        self.contents = contents
        self.uri_of, self.list = store.uri_of, store.list

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        return _Content(self.contents[key])

    def for_many(self) -> Fetched:
        return self


class _Content(io.BytesIO):
    def check(self) -> None:
        """It was what had been listed when it was fetched."""


def fetch(spec: FilesSpec, parts: Sequence[FilePart], store: ReadStore) -> Fetched:
    """Small files with all of their bytes. Raises what reading them raises."""
    many = store.for_many()

    def content(part: FilePart) -> bytes:
        return _content(part, many)

    if spec.place.scheme == "file":
        contents = list(map(content, parts))
    else:
        with ThreadPoolExecutor(min(_AT_ONCE, len(parts))) as pool:
            contents = list(pool.map(content, parts))
    return Fetched(store, {part.key: found for part, found in zip(parts, contents, strict=True)})


def _content(part: FilePart, store: ReadStore) -> bytes:
    uri = store.uri_of(part.key)
    with translating(uri):
        file = WatchedFile(store.open(part.key, if_match=part.etag, size=part.size))
        try:
            with judging(file, uri):
                pieces = []
                while piece := file.read(SMALL_BYTES):
                    pieces.append(piece)
            file.check()
        finally:
            file.close()
    return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class _Text:
    """The rows of many csv files, one after the other."""

    columns: tuple[str, ...]
    body: bytes
    mark: bytes


def csv_together(
    spec: FilesSpec, files: Sequence[tuple[FilePart, Mapping[str, str | None]]], store: Fetched
) -> list[pa.RecordBatch] | None:
    """The rows of whole files, each with the values of its path. None: they have to be read one by one."""
    parts = [part for part, _ in files]
    if spec.schema is None or not _can_join(spec, parts) or (text := _joined(spec, parts, store)) is None:
        return None
    wanted = [name for name in spec.schema.names if name in text.columns]
    parsed = FastCsv(spec.csv, text.columns, wanted).parse(text.body)
    if parsed is None:
        return None
    marks = [row.number for row in parsed.bad if row.raw == text.mark]
    if len(marks) != len(parts):
        return None
    rows = [
        FileRows(file=part.name, uri=store.uri_of(part.key), path_values=values, records=end - begin - 1)
        for (part, values), begin, end in zip(files, [0, *marks[:-1]], marks, strict=True)
    ]
    shaper = ManyShaper(spec.schema, rows, tells=spec.tells)
    bad = _without_marks(parsed.bad, text.mark)
    found: list[pa.RecordBatch] = []
    if count := len(parsed.columns[0]):
        columns = dict(zip(wanted, parsed.columns, strict=True))
        nothing = pa.nulls(count, pa.string())
        picked = [columns.get(name, nothing) for name in spec.schema.names]
        found += shaper.good(picked, without=[row.number for row in bad])
    if bad:
        found.append(shaper.bad(bad))
    return found


def _can_join(spec: FilesSpec, parts: Sequence[FilePart]) -> bool:
    # A file may end within a longer delimiter, which its mark would then be part of.
    return spec.csv.line_delimiter in ("\n", "\r\n") and all(
        compression_of(part.key, spec) is Compression.PLAIN for part in parts
    )


def _without_marks(bad: Sequence[BadRow], mark: bytes) -> list[BadRow]:
    """What the files have of bad records, each with its place among all records."""
    found, marks = [], 0
    for row in bad:
        if row.raw == mark:
            marks += 1
        else:
            found.append(BadRow(row.number - marks - 1, row.raw, row.reason))
    return found


def _joined(spec: FilesSpec, parts: Sequence[FilePart], store: Fetched) -> _Text | None:
    delimiter = spec.csv.line_delimiter.encode()
    contents = [store.contents[part.key] for part in parts]
    try:
        for part, content in zip(parts, contents, strict=True):
            check_is_text(content, store.uri_of(part.key))
        first = next((part for part in parts if part.size), parts[0])
        text = open_text(_Content(store.contents[first.key]), first, spec, store.uri_of(first.key))
    except SourceError:
        return None  # It is said of the file, by who reads it alone.
    names = spec.schema.names if spec.schema is not None else []
    if not text.header and spec.format.header_lines:
        return None
    if text.header and spec.missing_columns is MissingColumns.ERROR and not {*names} <= {*text.header}:
        return None
    head = store.contents[first.key][: text.stream.received]
    has_head = bool(spec.format.header_lines or spec.csv.skip_lines)
    if not _begin_alike(head, contents, delimiter, has_head=has_head):
        return None
    columns = text.header or tuple(names)
    mark = _mark(spec.csv, is_alone=len(columns) != 1)
    pieces: list[bytes] = []
    for content in contents:
        body = content[len(head) :]
        pieces.append(body)
        if body and not body.endswith(delimiter):
            pieces.append(delimiter)
        pieces.append(mark + delimiter)
    whole = b"".join(pieces)
    return _Text(columns, whole, mark) if whole.count(mark) == len(parts) else None


def _begin_alike(head: bytes, contents: Sequence[bytes], delimiter: bytes, *, has_head: bool) -> bool:
    """Whether the same bytes, which are whole lines, stand before the rows of all files that are not empty."""
    if has_head:
        return head.endswith(delimiter) and all(content.startswith(head) for content in contents if content)
    return not any(content.startswith(BOM) for content in contents)


def _mark(options: CsvOptions, *, is_alone: bool) -> bytes:
    """A record that has another number of fields than those of the files."""
    signs = options.column_separator + options.enclose + options.escape
    letters = [letter for letter in _LETTERS if letter not in signs]
    word = "".join(secrets.choice(letters) for _ in range(24))
    return (word if is_alone else f"{word}{options.column_separator}{word}").encode()
