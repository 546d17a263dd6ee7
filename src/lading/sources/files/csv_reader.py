"""Csv files as Arrow batches: the fast way block by block, and by the letter where a block needs it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import pyarrow as pa

from lading.model.row_formats import CsvOptions
from lading.sources.files.arrays import strings
from lading.sources.files.blocks import SLOW_BYTES, Lines, line_blocks, quarters
from lading.sources.files.csv_fast import FastBlock, FastCsv
from lading.sources.files.csv_reference import NOT_CLOSED, NOT_UTF8, CsvText, Record, count_mismatch
from lading.sources.files.errors import lines_in_field
from lading.sources.files.rows import BadRow, RowShaper
from lading.sources.files.unpack import Read

_PIECE_BYTES = 16 * 1024


class CsvReader:
    """Reads one file, or a part of one, from where its records start.

    Parts of a file are cut at lines. That is right as long as each record is one line: the part in which the first
    longer one begins starts where a record does, so that its reader sees it, and refuses (`lines_in_field`).
    """

    def __init__(
        self,
        options: CsvOptions,
        lines: Lines,
        shaper: RowShaper,
        file_columns: Sequence[str],
        *,
        fast: bool = True,
        is_part: bool = False,
    ) -> None:
        self._is_part = is_part
        wanted = [name for name in shaper.schema.names if name in file_columns]
        self._lines = lines
        self._shaper = shaper
        self._text = CsvText(options)
        self._fast = FastCsv(options, file_columns, wanted) if fast else None
        self._enclose = options.enclose.encode()
        self._expected = len(file_columns)
        places = {name: number for number, name in enumerate(file_columns)}
        self._places = [places.get(name) for name in shaper.schema.names]
        self._next = 1

    def batches(self, read: Read) -> Iterator[pa.RecordBatch]:
        """Good rows and bad rows in batches of their own, block after block."""
        if self._enclose:
            yield from self._enclosed(read)
            return
        for block in line_blocks(read, self._lines):
            yield from self._block(block)

    def _block(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """Whole lines. Where the fast way fails, only the small piece with the trouble goes the slow way."""
        parsed = self._fast.parse(block) if self._fast else None
        if parsed:
            yield from self._emit_fast(parsed)
        elif self._is_worth_cutting(block) and len(pieces := quarters(block, self._lines)) > 1:
            for piece in pieces:
                yield from self._block(piece)
        else:
            records, _ = self._text.records(block, self._lines, at_end=True)
            yield from self._emit_slow(records)

    def _is_worth_cutting(self, block: bytes) -> bool:
        return len(block) > SLOW_BYTES or (self._fast is not None and not self._fast.is_hopeless)

    def _enclosed(self, read: Read) -> Iterator[pa.RecordBatch]:
        rest, at_end = b"", False
        while not at_end:
            chunk = read(self._lines.block_bytes)
            at_end = not chunk
            text = rest + chunk if rest else chunk
            end = len(text) if at_end else self._lines.last_end(text)
            parsed = self._parse_lines(text[:end])
            if parsed:
                self._check_lines(text[:end], parsed)
                yield from self._emit_fast(parsed)
                rest = text[end:]
            else:
                rest = yield from self._enclosed_pieces(text, at_end=at_end)

    def _enclosed_pieces(self, text: bytes, *, at_end: bool) -> Generator[pa.RecordBatch, None, bytes]:
        """Take records from the start of a text in small pieces; returns what is left of it."""
        at, size = 0, _PIECE_BYTES
        while at < len(text):
            piece = text[at : at + size]
            is_last = at + size >= len(text)
            end = len(piece) if at_end and is_last else self._lines.last_end(piece)
            parsed = self._parse_lines(piece[:end])
            if parsed:
                self._check_lines(piece[:end], parsed)
                yield from self._emit_fast(parsed)
            else:
                records, end = self._text.records(piece, self._lines, at_end=at_end and is_last)
                if self._is_part and any(not each.is_closed or self._lines.delimiter in each.raw for each in records):
                    raise lines_in_field(self._lines.uri)
                yield from self._emit_slow(records)
            if not end and is_last:
                break
            at, size = at + end, _PIECE_BYTES if end else size * 4
        return text[at:]

    def _check_lines(self, block: bytes, parsed: FastBlock) -> None:
        if not self._is_part or self._enclose not in block:
            return
        lines = [line for line in block.split(self._lines.delimiter) if self._text.trimmed(line)]
        if parsed.rows != len(lines):
            raise lines_in_field(self._lines.uri)

    def _parse_lines(self, block: bytes) -> FastBlock | None:
        # A block longer than the longest record could hold one that the slow way would not allow.
        return self._fast.parse(block) if self._fast and len(block) <= self._lines.max_record else None

    def _emit_fast(self, parsed: FastBlock) -> Iterator[pa.RecordBatch]:
        first = self._next
        self._next += parsed.rows
        bad = [BadRow(first + row.number - 1, row.raw, row.reason) for row in parsed.bad]
        columns = iter(parsed.columns)
        count = parsed.rows - len(bad)
        if count:
            picked = [next(columns) if place is not None else pa.nulls(count, pa.string()) for place in self._places]
            yield from self._shaper.good(picked, first, without=[row.number for row in bad])
        if bad:
            yield self._shaper.bad(bad)

    def _emit_slow(self, records: Sequence[Record]) -> Iterator[pa.RecordBatch]:
        good: list[list[str | None]] = []
        numbers: list[int] = []
        bad: list[BadRow] = []
        for record in records:
            if not record.raw:
                continue
            taken = self._take(record)
            if isinstance(taken, str):
                bad.append(BadRow(self._next, record.raw, taken))
            else:
                good.append(taken)
                numbers.append(self._next)
            self._next += 1
        if good:
            columns = list(zip(*good, strict=True))
            picked = [
                strings(columns[place]) if place is not None else pa.nulls(len(good), pa.string())
                for place in self._places
            ]
            yield self._shaper.numbered(picked, numbers)
        if bad:
            yield self._shaper.bad(bad)

    def _mismatch(self, record: Record, actual: int) -> str:
        return count_mismatch(actual, self._expected, record.raw, self._text.options)

    def _take(self, record: Record) -> list[str | None] | str:
        """The values of a record, or why there are none."""
        if not record.is_closed:
            return NOT_CLOSED
        try:
            line = record.raw.decode()
        except UnicodeDecodeError:
            return NOT_UTF8
        values = self._text.fields(line)
        return values if len(values) == self._expected else self._mismatch(record, len(values))
