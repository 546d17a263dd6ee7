"""Reading files of state, in tasks: only the rows that a job needs of them go to Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lading.model.batch import StateFile
from lading.pipeline.mapping import BUCKET, BUCKETS
from lading.pipeline.state.files import ROW, TIME, StatePlace, read_state_file

RANK_BITS = 40
"""The place of a row in a batch: that of its split, and in so many bits its place in it."""
MOST_KEYS = 4_000_000
"""Keys of more rows take too much memory to be looked up in each task."""
_AT_ONCE = 4_000_000
"""Rows whose keys are looked up at once: the keys are put into a hash table each time."""
_MOST_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A file to read, and its place among others of the batch."""

    file: StateFile
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Rows of these times. They are told apart where files are read: Spark would compile its code again for each batch
    whose conditions have other numbers in them."""

    after_us: int | None = None
    until_us: int | None = None

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of some rows."""
        if self.after_us is not None:
            rows = rows.filter(pc.greater(rows.column(TIME), pa.scalar(self.after_us, pa.int64())))
        if self.until_us is not None:
            rows = rows.filter(pc.less_equal(rows.column(TIME), pa.scalar(self.until_us, pa.int64())))
        return rows


ALL_TIMES = Times()


@dataclass(frozen=True, slots=True, kw_only=True)
class Among:
    """Rows that may have the same keys as those of other files: each column has a value that is there, too."""

    files: tuple[StateFile, ...]
    columns: Mapping[str, str]
    """Column of the rows → column of those files."""

    @classmethod
    def of(cls, files: Sequence[Ranked], columns: Mapping[str, str]) -> Among | None:
        """None: there are too many of them, and all rows are read."""
        if sum(ranked.file.rows for ranked in files) > MOST_KEYS:
            return None
        return cls(files=tuple(ranked.file for ranked in files), columns=dict(columns))

    def values(self, place: StatePlace) -> dict[str, pa.Array]:
        """What is there, by the column of the rows."""
        tables = [read_state_file(place, file).select(list(self.columns.values())) for file in self.files]
        there = pa.concat_tables(tables)
        return {name: pc.unique(there.column(other)) for name, other in self.columns.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows are wanted, and which columns of them."""

    schema: pa.Schema
    buckets: int = -1
    times: Times = ALL_TIMES
    among: Among | None = None


def read_rows(place: StatePlace, files: Sequence[Ranked], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The rows of files."""
    if wanted.among is None or not files:
        for ranked in files:
            yield from _batches(_rows_of(place, ranked, wanted), wanted.schema)
        return
    values = wanted.among.values(place)
    waiting: list[pa.Table] = []
    for number, ranked in enumerate(files, 1):
        waiting.append(_rows_of(place, ranked, wanted))
        is_much = sum(table.num_rows for table in waiting) >= _AT_ONCE or sum(t.nbytes for t in waiting) >= _MOST_BYTES
        if number == len(files) or is_much:
            rows, waiting = pa.concat_tables(waiting), []
            for name, known in values.items():
                rows = rows.filter(pc.is_in(rows.column(name), value_set=known))
            yield from _batches(rows, wanted.schema)


def _rows_of(place: StatePlace, ranked: Ranked, wanted: Wanted) -> pa.Table:
    table, buckets = wanted.times.of(read_state_file(place, ranked.file)), wanted.buckets
    if ranked.file.buckets & ~buckets:
        numbers = pa.array([bucket for bucket in range(BUCKETS) if buckets >> bucket & 1], pa.int32())
        table = table.filter(pc.is_in(table.column(BUCKET), numbers))
    if ROW in wanted.schema.names and ranked.rank:
        place_of_row = table.schema.get_field_index(ROW)
        first = pa.scalar(ranked.rank << RANK_BITS, pa.int64())
        table = table.set_column(place_of_row, ROW, pc.add(table.column(ROW), first))
    return table.select(wanted.schema.names).cast(wanted.schema)


def _batches(rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    yield from rows.select(schema.names).to_batches(max_chunksize=64 * 1024)
