"""JSON files as Arrow batches: lines as records of a stream are taken apart, everything else document by document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lading.model.row_formats import JsonOptions
from lading.sources.files.arrays import strings, whole_numbers
from lading.sources.files.blocks import SLOW_BYTES, Lines, line_blocks, quarters
from lading.sources.files.json_reference import BadDocument, JsonText, Value
from lading.sources.files.json_scan import JsonScanner
from lading.sources.files.rows import BadRow, RowShaper
from lading.sources.files.unpack import Read
from lading.sources.records.json_records import JsonRecords
from lading.sources.records.parsed import Taken

_BATCH_BYTES = 1024 * 1024
_SMALLEST_BYTES = 32 * 1024
"""Calling pyarrow for less costs more than it saves."""

Judged = tuple[bytes, list[Value] | BadDocument]
"""The text of a row, and its values or why it has none."""


def records_of(options: JsonOptions, names: Sequence[str], *, fast: bool = True) -> JsonRecords:
    """Takes lines of files apart, and learns from each what the next may have."""
    return JsonRecords(options, names, fast=fast, of_file=True)


class JsonReader:
    """Reads one file, or a part of one, from where its documents start."""

    def __init__(
        self,
        options: JsonOptions,
        lines: Lines,
        shaper: RowShaper,
        *,
        fast: bool = True,
        records: JsonRecords | None = None,
    ) -> None:
        """`records` has read files of the same columns before, and knows what values they have."""
        names = shaper.schema.names
        self._options = options
        self._lines = lines
        self._shaper = shaper
        self._text = JsonText(options, names)
        self._records = records or records_of(options, names, fast=fast)
        self._next = 1

    def batches(self, read: Read) -> Iterator[pa.RecordBatch]:
        """Good rows and bad rows in batches of their own."""
        if not self._options.read_by_line:
            yield from self._scanned(read)
            return
        for block in line_blocks(read, self._lines):
            yield from self._block(block)

    def _block(self, block: bytes) -> Iterator[pa.RecordBatch]:
        """Whole lines. Where the fast way fails, only the small piece with the trouble goes the slow way."""
        taken = self._records.take_lines(block)
        if taken is not None:
            yield from self._shaped(taken)
        elif self._is_worth_cutting(block) and len(pieces := self._cut(block)) > 1:
            for piece in pieces:
                yield from self._block(piece)
        else:
            lines = (line.strip(b" \t\r") for line in block.split(self._lines.delimiter))
            yield from self._shaped(self._records.take_documents([line for line in lines if line]))

    def _is_worth_cutting(self, block: bytes) -> bool:
        return len(block) > SLOW_BYTES or self._records.knows_types

    def _cut(self, block: bytes) -> list[bytes]:
        return quarters(block, self._lines, smallest=_SMALLEST_BYTES)

    def _shaped(self, taken: Taken) -> Iterator[pa.RecordBatch]:
        bad = [BadRow(self._next + place, flaw.raw, flaw.reason) for place, flaw in sorted(taken.flaws.items())]
        columns = taken.columns
        if bad:
            good = whole_numbers(place for place in range(taken.rows) if place not in taken.flaws)
            columns = [column.take(good) for column in columns]
        if taken.rows > len(bad):
            yield from self._shaper.good(columns, self._next, without=[row.number for row in bad])
        if bad:
            yield self._shaper.bad(bad)
        self._next += taken.rows

    def _scanned(self, read: Read) -> Iterator[pa.RecordBatch]:
        opens_array = self._options.strip_outer_array and not self._options.json_root
        waiting, size = list[Judged](), 0
        for raw, flaw in JsonScanner(read, self._lines, opens_array=opens_array).documents():
            if flaw:
                waiting.append((raw, BadDocument(flaw)))
            elif opens_array:
                waiting.append((raw, self._text.element(raw)))
            else:
                waiting.extend((raw, row) for row in self._text.rows(raw))
            size += len(raw)
            if size > _BATCH_BYTES:
                yield from self._emit(waiting)
                waiting, size = [], 0
        yield from self._emit(waiting)

    def _emit(self, judged: Iterable[Judged]) -> Iterator[pa.RecordBatch]:
        good: list[list[Value]] = []
        numbers: list[int] = []
        bad: list[BadRow] = []
        for raw, row in judged:
            if isinstance(row, BadDocument):
                bad.append(BadRow(self._next, raw, row.reason))
            else:
                good.append(row)
                numbers.append(self._next)
            self._next += 1
        if good:
            yield self._shaper.numbered([strings(column) for column in zip(*good, strict=True)], numbers)
        if bad:
            yield self._shaper.bad(bad)
