"""Opening text files: unpack, find the header, start where the first row of a part starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lading.model.rows import REST
from lading.sources.fields import FieldNotes, folded
from lading.sources.files.blocks import BOM, Lines, first_line_offset, until
from lading.sources.files.csv_reader import CsvReader
from lading.sources.files.csv_reference import CsvText
from lading.sources.files.errors import file_unreadable
from lading.sources.files.payload import FilePart
from lading.sources.files.rows import RowShaper
from lading.sources.files.spec import Compression, FilesSpec, MissingColumns, compression_of
from lading.sources.files.unpack import Read, check_is_text, unpack
from lading.storage.store import ByteFile

_HEAD_BYTES = 64 * 1024


class TextStream:
    """Unpacked bytes that can be put back, and a count of those that were taken."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._back = b""
        self.received = 0

    def read(self, size: int) -> bytes:
        content = self._back or self._read(size)
        self._back = content[size:]
        content = content[:size]
        self.received += len(content)
        return content

    def put_back(self, content: bytes) -> None:
        self._back = content + self._back
        self.received -= len(content)

    @property
    def pending(self) -> int:
        """How many bytes were put back and not taken again."""
        return len(self._back)

    def line(self, lines: Lines) -> bytes | None:
        """One line without its delimiter; None at the end."""
        text = b""
        while lines.delimiter not in text:
            if len(text) > lines.max_record:
                raise lines.too_long()
            chunk = self.read(_HEAD_BYTES)
            if not chunk:
                return text or None
            text += chunk
        line, _, rest = text.partition(lines.delimiter)
        self.put_back(rest)
        return line


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text file from where its rows start."""

    stream: TextStream
    lines: Lines
    header: tuple[str, ...]
    """Names from the file itself; empty where it has none."""
    is_part: bool = False
    """Other tasks read the rest of the file."""


def open_text(file: ByteFile, part: FilePart, spec: FilesSpec, uri: str) -> OpenText:
    """Get past everything that is not a row."""
    compression = compression_of(part.key, spec)
    stream = TextStream(unpack(file, compression, uri))
    delimiter = spec.csv.line_delimiter if spec.format.is_csv else "\n"
    lines = Lines(delimiter.encode(), max_record=spec.max_record_bytes, uri=uri)
    head = stream.read(_HEAD_BYTES)
    if compression is Compression.PLAIN:
        check_is_text(head, uri)
    stream.put_back(head.removeprefix(BOM))
    header = _header(stream, lines, spec, uri) if spec.format.is_csv else ()
    if not part.is_whole:
        stream = TextStream(_part(file, part, stream, lines))
    return OpenText(stream, lines, header, is_part=not part.is_whole)


def csv_batches(
    text: OpenText, spec: FilesSpec, shaper: RowShaper, uri: str, notes: FieldNotes | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a csv file."""
    if notes is not None:
        return _watched_csv(text, spec, shaper, notes)
    columns = text.header or tuple(shaper.schema.names)
    if text.header and spec.missing_columns is MissingColumns.ERROR:
        check_columns(shaper.schema.names, text.header, uri)
    return CsvReader(spec.csv, text.lines, shaper, columns, is_part=text.is_part).batches(text.stream.read)


def _watched_csv(text: OpenText, spec: FilesSpec, shaper: RowShaper, notes: FieldNotes) -> Iterator[pa.RecordBatch]:
    """Columns that the job does not know are told, and go into `__rest` where somebody wants them."""
    known = [name for name in shaper.schema.names if name != REST]
    extras = [name for name in text.header if name not in known and name not in spec.path_partition_keys]
    for name in extras:
        notes.see(name, "string")
    extras = extras if notes.watch.rescues else []
    wide = shaper.widened(pa.schema([pa.field(name, pa.string()) for name in (*known, *extras)]))
    reader = CsvReader(spec.csv, text.lines, wide, text.header or known, is_part=text.is_part)
    for batch in reader.batches(text.stream.read):
        yield folded(batch, shaper.whole, extras)


def is_one_line(text: OpenText, head: bytes, row: bytes, spec: FilesSpec) -> bool:
    """Whether a row that is passed over surely ends with its line, of which `head` was read; `row` is all of it, or
    empty where it is long: then no quote may be in it."""
    enclose = spec.csv.enclose.encode()
    if not enclose:
        return True
    has_quotes = enclose in head
    while chunk := text.stream.read(_HEAD_BYTES):
        has_quotes = has_quotes or enclose in chunk
    records, _ = CsvText(spec.csv).records(row, text.lines, at_end=True)
    return not has_quotes or (bool(row) and all(record.is_closed for record in records))


def check_columns(expected: list[str], found: tuple[str, ...], uri: str) -> None:
    """Refuse a file that lacks columns the job expects."""
    if missing := [name for name in expected if name not in found]:
        why = f"it has no column {', '.join(missing)}; it has {', '.join(found)}"
        raise file_unreadable(uri, f"{why} (missing_columns=null would read them as null)")


def _header(stream: TextStream, lines: Lines, spec: FilesSpec, uri: str) -> tuple[str, ...]:
    for _ in range(spec.csv.skip_lines):
        stream.line(lines)
    taken = [stream.line(lines) for _ in range(spec.format.header_lines)]
    if not taken or taken[0] is None:
        return ()
    text = CsvText(spec.csv)
    try:
        names = text.names(text.trimmed(taken[0]).decode())
    except UnicodeDecodeError as error:
        raise file_unreadable(uri, "the line with its column names is not UTF-8") from error
    if len(set(names)) < len(names) or not all(names):
        raise file_unreadable(uri, f"its first line does not hold different column names: {', '.join(names)}")
    return tuple(names)


def _part(file: ByteFile, part: FilePart, head: TextStream, lines: Lines) -> Read:
    """The rows that start in a range of bytes. The header, if there is one, was taken from the stream already."""
    start = file.tell() - head.pending
    if start < part.begin:
        before = max(0, part.begin - len(lines.delimiter))
        file.seek(before)
        offset = first_line_offset(file.read, lines)
        start = part.size if offset < 0 else before + offset
    file.seek(start)
    return until(file.read, lines, part.end - start) if start < part.end else _nothing


def _nothing(_: int) -> bytes:
    return b""
