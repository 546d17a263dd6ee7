"""Records in, Arrow batches out: source columns, metadata columns, hidden columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lading.errors import ConfigError
from lading.sources.fields import FieldNotes
from lading.sources.files.arrays import repeated, strings, whole_numbers
from lading.sources.files.rows import MAX_ROWS
from lading.sources.hidden import HIDDEN
from lading.sources.records.columns import column_of, sparse
from lading.sources.records.parsed import Decoder, Flaw, Taken
from lading.sources.records.passed import MAX_PASSED_BYTES
from lading.sources.records.spec import RecordFormat, RecordKind

_JOINED_ROWS = 16 * 1024
"""Small batches are put together up to this: each one costs its readers something."""


@dataclass(slots=True)
class RecordBlock:
    """Records that are taken apart together: a few megabytes of them."""

    values: list[bytes]
    """Never None and never empty: the sources skip and count those."""
    places: list[str] | str
    """Where each record is from, or one text for all of them. Goes to `__file`."""
    numbers: Sequence[int]
    """The number of each record at its place. Goes to `__row`."""
    meta: Mapping[str, Sequence[Any] | pa.Array]
    """The metadata columns, one value per record. Numbers stand for times, in the unit of their column."""


class RecordParser:
    """Turns blocks into batches.

    Laws: rows come in the order of their records and within a record in its own order, bad ones at their places; every
    row carries the place, number and metadata of its record; no batch has more than `MAX_ROWS` rows or none at all.
    """

    def __init__(self, format: RecordFormat, meta: pa.Schema, *, fast: bool = True) -> None:
        self._meta = meta
        self._max_bytes = format.max_record_bytes
        self.notes = FieldNotes(format.watch) if format.watch is not None else None
        """What is seen of fields that the job does not know."""
        self._decoder = _decoder(format, self.notes, fast=fast)
        self._columns = len(format.columns)
        self.without_rows = 0
        """Records so far that hold no row: white space, an array without elements. The reader counts them."""
        self.schema = pa.schema([*(pa.field(name, pa.string()) for name in format.columns), *meta, *HIDDEN])

    def fields(self) -> dict[str, str]:
        """Columns that the table lacks for what was parsed since this was last asked."""
        return self.notes.drain() if self.notes is not None else {}

    def parse(self, block: RecordBlock) -> Iterator[pa.RecordBatch]:
        """The rows of a block. Each record gives none, one or several."""
        waiting, rows = list[pa.RecordBatch](), 0
        for batch in self._pieces(block):
            if self.notes is not None:
                self.notes.see_batch(batch)
            if waiting and rows + batch.num_rows > _JOINED_ROWS:
                yield _joined(waiting)
                waiting, rows = [], 0
            waiting.append(batch)
            rows += batch.num_rows
        if waiting:
            yield _joined(waiting)

    def pass_over(self, block: RecordBlock, reason: str) -> Iterator[pa.RecordBatch]:
        """A bad row for each record of a block, without a look at what is in it."""
        count = len(block.values)
        nothing = [pa.nulls(count, pa.string())] * self._columns
        flaws = {at: Flaw(_short(value), reason) for at, value in enumerate(block.values)}
        yield from self._batches(Taken(records=count, rows=count, columns=nothing, flaws=flaws), self._beside(block))

    def _pieces(self, block: RecordBlock) -> Iterator[pa.RecordBatch]:
        """Batches as they come; they are small."""
        beside = self._beside(block)
        at = 0
        for taken in self._taken(block.values):
            self.without_rows += taken.records - (taken.rows if taken.owners is None else len(set(taken.owners)))
            yield from self._batches(taken, [column.slice(at, taken.records) for column in beside])
            at += taken.records

    def _taken(self, values: Sequence[bytes]) -> Iterator[Taken]:
        """Records that are too long are no business of a decoder."""
        first = 0
        longest = max(map(len, values), default=0)
        for at in _places(values, self._max_bytes) if longest > self._max_bytes else ():
            if first < at:
                yield from self._decoder.take(values[first:at])
            reason = f"The record has {len(values[at])} bytes, max_record_bytes is {self._max_bytes}"
            nothing = [pa.nulls(1, pa.string())] * self._columns
            yield Taken(records=1, rows=1, columns=nothing, flaws={0: Flaw(values[at], reason)})
            first = at + 1
        if first < len(values):
            yield from self._decoder.take(values[first:] if first else values)

    def _beside(self, block: RecordBlock) -> list[pa.Array]:
        """Metadata, place and number of each record."""
        count = len(block.values)
        metas = [column_of(field.type, block.meta[field.name]) for field in self._meta]
        places = repeated(block.places, count) if isinstance(block.places, str) else strings(block.places)
        columns = [*metas, places, whole_numbers(block.numbers)]
        if any(len(column) != count for column in columns):
            msg = f"A block of {count} records came with columns of {[len(column) for column in columns]} values"
            raise ConfigError(msg, left="Nothing was read.", todo="Report this, with the format of the job.")
        return columns

    def _batches(self, taken: Taken, beside: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
        for at in range(0, taken.rows, MAX_ROWS):
            count = min(MAX_ROWS, taken.rows - at)
            if taken.owners is None:
                near = [column.slice(at, count) for column in beside]
            else:
                owners = whole_numbers(taken.owners[at : at + count])
                near = [column.take(owners) for column in beside]
            flaws = {place - at: flaw for place, flaw in taken.flaws.items() if at <= place < at + count}
            raw = sparse(count, {place: flaw.raw for place, flaw in flaws.items()}, pa.binary())
            error = sparse(count, {place: flaw.reason.encode() for place, flaw in flaws.items()}, pa.string())
            columns = [column.slice(at, count) for column in taken.columns]
            yield pa.RecordBatch.from_arrays([*columns, *near, raw, error], schema=self.schema)


def parse_record(format: RecordFormat, record: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of one record alone."""
    yield from RecordParser(format, pa.schema([])).parse(RecordBlock([record], "", [0], {}))


def stands_alone(format: RecordFormat, meta: pa.Schema) -> bool:
    """Whether a record that could not be taken apart is one row, of which the stream tells nothing beside it."""
    is_row = format.kind is RecordKind.CSV or (format.kind is RecordKind.JSON and not format.json.strip_outer_array)
    return is_row and not len(meta) and format.watch is None


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _short(value: bytes) -> bytes:
    """A record that is kept for people. What killed workers may be its length."""
    return value if len(value) <= MAX_PASSED_BYTES else b""


def _places(values: Sequence[bytes], max_bytes: int) -> list[int]:
    return [place for place, value in enumerate(values) if len(value) > max_bytes]


def _decoder(format: RecordFormat, notes: FieldNotes | None, *, fast: bool) -> Decoder:
    """Only what a job needs is imported: this runs in Spark's workers."""
    if format.kind is RecordKind.JSON:
        from lading.sources.records.json_records import JsonRecords

        return JsonRecords(format.json, format.columns, fast=fast)
    if format.kind is RecordKind.CSV:
        from lading.sources.records.csv_records import CsvRecords

        return CsvRecords(format.csv, format.columns, max_record=format.max_record_bytes, fast=fast)
    from lading.sources.records.registry import RegistryRecords

    return RegistryRecords(format, notes)
