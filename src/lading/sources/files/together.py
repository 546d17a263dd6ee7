"""Small files, read together: to open a parser and to map a batch costs more than the rows of one of them.

Their bytes are fetched first, from a store many at once, and become one text. Of lines of JSON each has to be one
document. Csv files have to begin alike, and get a mark behind each: a record of its own that no file holds. Where every
mark is a record again, every file began and ended where records do, so the parser gave what it gives for each of them
alone. Where that is not so (a field that is not closed, lines that end in other ways), each is read by itself.
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
from lading.sources.files.unpack import check_is_text, unpack
from lading.sources.files.watched import WatchedFile, judging
from lading.sources.records.json_records import JsonRecords
from lading.storage.store import ByteFile, ReadStore

SMALL_BYTES = 256 * 1024
"""A larger file is worth a parser of its own."""
GROUP_BYTES = 2 * 1024 * 1024
"""About what files that are read together may have."""
TEXT_BYTES = 16 * 1024 * 1024
"""What they may have once they are unpacked; more is read one by one, in blocks."""
_AT_ONCE = 8
"""Requests to a store: each of them mostly waits."""
PathValues = Mapping[str, str | None]
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
class Together:
    """The rows of many files, and the bytes of text that they were."""

    batches: list[pa.RecordBatch]
    received: int


@dataclass(frozen=True, slots=True)
class _Text:
    """The rows of many csv files, one after the other."""

    columns: tuple[str, ...]
    body: bytes
    mark: bytes


def read_together(
    spec: FilesSpec, files: Sequence[tuple[FilePart, PathValues]], store: Fetched, records: JsonRecords | None
) -> Together | None:
    """The rows of whole files, each with the values of its path. None: they have to be read one by one.

    `records` has read JSON of the same columns before.
    """
    if spec.schema is None or not spec.format.is_text:
        return None
    try:
        texts = _texts(spec, [part for part, _ in files], store)
        if texts is None:
            return None
        if spec.format.is_csv:
            batches = _csv(spec, spec.schema, files, texts, store)
        else:
            batches = _json(spec, spec.schema, files, texts, store, records)
    except (SourceError, pa.ArrowException, OSError, EOFError):
        return None  # What is wrong is said of the file, by who reads it alone.
    return None if batches is None else Together(batches, sum(map(len, texts)))


def _texts(spec: FilesSpec, parts: Sequence[FilePart], store: Fetched) -> list[bytes] | None:
    """The files unpacked, unless they are long then."""
    texts, left = list[bytes](), TEXT_BYTES
    for part in parts:
        compression, content, uri = compression_of(part.key, spec), store.contents[part.key], store.uri_of(part.key)
        if compression is Compression.PLAIN:
            check_is_text(content, uri)
        else:
            content = unpack(_Content(content), compression, uri)(left + 1)
        left -= len(content)
        if left < 0 or len(content) > spec.max_record_bytes:
            return None
        texts.append(content)
    return texts


def _json(
    spec: FilesSpec,
    schema: pa.Schema,
    files: Sequence[tuple[FilePart, PathValues]],
    texts: Sequence[bytes],
    store: Fetched,
    records: JsonRecords | None,
) -> list[pa.RecordBatch] | None:
    if not spec.json.read_by_line or records is None:
        return None
    bodies = [text.removeprefix(BOM) for text in texts]
    lines = [body if body.endswith(b"\n") or not body else body + b"\n" for body in bodies]
    # It is taken only when each line is one document, also the last of each file.
    taken = records.take_lines(b"".join(lines))
    if taken is None:
        return None
    shaper = _shaper(spec, schema, files, [text.count(b"\n") for text in lines], store)
    return list(shaper.good(taken.columns, without=()))


def _csv(
    spec: FilesSpec,
    schema: pa.Schema,
    files: Sequence[tuple[FilePart, PathValues]],
    texts: Sequence[bytes],
    store: Fetched,
) -> list[pa.RecordBatch] | None:
    text = _joined(spec, schema, files, texts, store)
    if text is None:
        return None
    wanted = [name for name in schema.names if name in text.columns]
    parsed = FastCsv(spec.csv, text.columns, wanted).parse(text.body)
    if parsed is None:
        return None
    marks = [row.number for row in parsed.bad if row.raw == text.mark]
    if len(marks) != len(files):
        return None
    counts = [end - begin - 1 for begin, end in zip([0, *marks[:-1]], marks, strict=True)]
    shaper = _shaper(spec, schema, files, counts, store)
    bad = _without_marks(parsed.bad, text.mark)
    found: list[pa.RecordBatch] = []
    if count := len(parsed.columns[0]):
        columns = dict(zip(wanted, parsed.columns, strict=True))
        nothing = pa.nulls(count, pa.string())
        found += shaper.good([columns.get(name, nothing) for name in schema.names], without=[row.number for row in bad])
    if bad:
        found.append(shaper.bad(bad))
    return found


def _shaper(
    spec: FilesSpec,
    schema: pa.Schema,
    files: Sequence[tuple[FilePart, PathValues]],
    counts: Sequence[int],
    store: Fetched,
) -> ManyShaper:
    rows = [
        FileRows(file=part.name, uri=store.uri_of(part.key), path_values=values, records=count)
        for (part, values), count in zip(files, counts, strict=True)
    ]
    return ManyShaper(schema, rows, tells=spec.tells)


def _without_marks(bad: Sequence[BadRow], mark: bytes) -> list[BadRow]:
    """What the files have of bad records, each with its place among all records."""
    found, marks = [], 0
    for row in bad:
        if row.raw == mark:
            marks += 1
        else:
            found.append(BadRow(row.number - marks - 1, row.raw, row.reason))
    return found


def _joined(
    spec: FilesSpec,
    schema: pa.Schema,
    files: Sequence[tuple[FilePart, PathValues]],
    texts: Sequence[bytes],
    store: Fetched,
) -> _Text | None:
    delimiter = spec.csv.line_delimiter.encode()
    if delimiter not in (b"\n", b"\r\n"):
        return None  # A file may end within a longer one, which its mark would then be part of.
    at = next((at for at, text in enumerate(texts) if text), 0)
    part = files[at][0]
    opened = open_text(_Content(store.contents[part.key]), part, spec, store.uri_of(part.key))
    has_names = spec.format.header_lines > 0
    is_lacking = not {*schema.names} <= {*opened.header} and spec.missing_columns is MissingColumns.ERROR
    if has_names and (not opened.header or is_lacking):
        return None
    head, lines = texts[at][: opened.stream.received], spec.csv.skip_lines + spec.format.header_lines
    # A file that ends within its head would have the others give up a shorter one than theirs.
    if head.count(delimiter) != lines or not _begin_alike(head, texts, delimiter, has_head=lines > 0):
        return None
    columns = opened.header or tuple(schema.names)
    mark = _mark(spec.csv, is_alone=len(columns) != 1)
    if not mark:
        return None
    pieces: list[bytes] = []
    for text in texts:
        body = text[len(head) :]
        pieces += [body, b"" if body.endswith(delimiter) or not body else delimiter, mark, delimiter]
    whole = b"".join(pieces)
    return _Text(columns, whole, mark) if whole.count(mark) == len(texts) else None


def _begin_alike(head: bytes, texts: Sequence[bytes], delimiter: bytes, *, has_head: bool) -> bool:
    """Whether the same bytes, which are whole lines, stand before the rows of all files that are not empty."""
    if has_head:
        return head.endswith(delimiter) and all(text.startswith(head) for text in texts if text)
    return not any(text.startswith(BOM) for text in texts)


def _mark(options: CsvOptions, *, is_alone: bool) -> bytes:
    """A record that has another number of fields than those of the files; empty when no letter is free for it."""
    signs = options.column_separator + options.enclose + options.escape
    letters = [letter for letter in _LETTERS if letter not in signs]
    if not letters:
        return b""
    word = "".join(secrets.choice(letters) for _ in range(24))
    return (word if is_alone else f"{word}{options.column_separator}{word}").encode()
