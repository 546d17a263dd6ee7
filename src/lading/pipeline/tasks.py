"""What runs in Spark's Python workers: what tasks are given, and the one that writes. `reading` has the other.

Imports are light, and nothing happens at import: every worker pays for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lading.errors import StageError
from lading.model.batch import Report, Split
from lading.model.codec import encode
from lading.model.rows import FILE, SplitEnd
from lading.model.tally import RowCounts
from lading.pipeline.kept_rows import RowForm
from lading.pipeline.mapping import BAD, END, EVENT, LATE, LINE, NOTE, PLACE, RECORD, UNREAD, UNSELECTED
from lading.pipeline.notes import Place, binaries, nullable_texts, parse_bad, rescued_at

MAX_RECORDS = 64 * 1024
"""Rows in one batch from Spark to the writer, if they are not long."""
MAX_BYTES = 64 * 1024 * 1024
"""About what such a batch may take."""


ReadSplits = Callable[[Sequence[Split]], Iterator[pa.RecordBatch | SplitEnd]]
"""For each split in turn: Arrow batches with hidden columns, then exactly one SplitEnd."""


class Writer(Protocol):
    """A table's writer."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> tuple[Any, ...]:
        """What it has written: staged files, or those of a spool."""
        ...

    def abort(self) -> None: ...


class Quarantine(Protocol):
    """Where bad rows go."""

    def add(self, *, file: str, row: int, reason: str, raw: bytes, form: Mapping[str, Any] | None = None) -> None: ...
    def put(self, line: str) -> None: ...
    def close(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTools:
    """What a task is given, keys of sources and tables among it: sealed, so that Spark keeps none of it."""

    read: ReadSplits
    open_writer: Callable[[str], Writer]
    open_quarantine: Callable[[str], Quarantine]
    batch_id: str
    splits: tuple[Split, ...]
    columns: tuple[str, ...] = field(default=())
    """Columns of the table, in order."""
    nested: Mapping[str, pa.Field] = field(default_factory=dict)
    """Columns that come as texts of JSON, and what the table has."""
    is_strict: bool = True
    """A value inside of those that does not fit makes a bad row; else it is NULL."""
    rescued: str = ""
    """The column that takes what fits nowhere: it also says where its row is from."""
    spools: bool = False
    """The rows go to a spool and are merged with the state of the job, before anything of them is in the table."""
    of_batch: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """Source columns that have one value for all rows of a batch."""
    watermark_us: int | None = None
    """That of the bill before: rows of an earlier event time are late."""
    latest_us: int | None = None
    """Rows of a later event time do not move the watermark."""
    form: RowForm | None = None
    """In which form bad rows are kept. None: for people alone."""
    takes_up: bool = False
    """The rows are those of quarantine, and not of the source."""
    max_records: int = MAX_RECORDS
    identity: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of the service's own identity in a cloud, for what has no keys of its own."""


def write_task(tools: TaskTools, attempt: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write rows by fate and report at each split's end. A split's rows all come before its end."""
    writing = _Writing(tools, attempt)
    try:
        for batch in batches:
            yield from writing.take(batch)
        writing.check_all_ended()
    except BaseException:
        # Spark runs the task again under another attempt; the files of this one can never be committed.
        writing.abort()
        raise


_KEPT = (BAD.encode(), LATE.encode(), UNREAD.encode())


class _Writing:
    def __init__(self, tools: TaskTools, attempt: str) -> None:
        self._tools = tools
        self._attempt = attempt
        self._begun = 0
        self._place: Place | None = None
        self._since = 0
        """Rows since the note about their place."""
        self._unselected_note, self._late_note = binaries([UNSELECTED.encode(), LATE.encode()])
        self._reset()

    def _reset(self) -> None:
        self._writer: Writer | None = None
        self._quarantine: Quarantine | None = None
        self._first_error = ""
        self._seen = self._loaded = self._unselected = self._bad = self._late = self._ahead = 0
        self._event_us: int | None = None

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        notes = batch.column(NOTE)
        if notes.null_count == batch.num_rows:
            self._rows(batch)
            return
        # Rows that are left out or late and not kept may be many; all other notes are few.
        is_counted = pc.or_(pc.equal(notes, self._unselected_note), pc.equal(notes, self._late_note))
        is_told = pc.fill_null(pc.invert(is_counted), False)
        start = 0
        for at in pc.indices_nonzero(is_told).to_pylist():
            note = notes[at].as_py()
            if note[:1] in _KEPT:
                self._kept_row(note, self._since + at - start)
                continue
            self._rows(batch.slice(start, at - start))
            start = at + 1
            if note[:1] == PLACE.encode():
                self._place, self._since = Place(note), 0
            elif note[:1] == END.encode():
                yield self._finish(json.loads(note[1:]))
        self._rows(batch.slice(start))

    def check_all_ended(self) -> None:
        if self._seen:
            msg = "Rows came without the end of their split"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()

    def _rows(self, batch: pa.RecordBatch) -> None:
        """Rows, loaded or left out or bad, and no other notes among them."""
        if not batch.num_rows:
            return
        self._seen += batch.num_rows
        self._since += batch.num_rows
        notes = batch.column(NOTE)
        good = batch
        if notes.null_count < batch.num_rows:
            self._unselected += pc.sum(pc.equal(notes, self._unselected_note)).as_py() or 0
            self._late += pc.sum(pc.equal(notes, self._late_note)).as_py() or 0
            good = batch.filter(pc.is_null(notes))
        if good.num_rows:
            placed = self._rescued(self._placed(good, batch, notes), batch, notes)
            if self._tools.nested:
                placed = self._with_nested(placed, self._since - batch.num_rows, notes)
            if EVENT in placed.schema.names:
                self._note_times(placed.column(EVENT))
            if placed.num_rows:
                self._open_writer().write(placed.select(list(self._tools.columns)))
            self._loaded += placed.num_rows

    def _with_nested(self, good: pa.RecordBatch, first: int, notes: pa.Array) -> pa.RecordBatch:
        """The rows whose nested values fit, with those; the others are bad."""
        from lading.pipeline.nested import nested_values, without_rows

        reasons = dict[int, str]()
        for name, wanted in self._tools.nested.items():
            texts = good.column(name)
            values, bad = nested_values(name, wanted.type, texts, nullable=wanted.nullable)
            good = good.set_column(good.schema.get_field_index(name), pa.field(name, wanted.type), values)
            if not self._tools.is_strict:
                bad = {row: reason for row, reason in bad.items() if not wanted.nullable and not values[row].is_valid}
            reasons = {**bad, **reasons}
        if not reasons:
            return good
        numbers = pc.indices_nonzero(pc.is_null(notes)).to_pylist()
        for row in sorted(reasons):
            record = good.column(RECORD)[row].as_py() or ""
            self._keep(first + numbers[row], reasons[row], record.encode(), BAD)
        return without_rows(good, reasons)

    def _placed(self, good: pa.RecordBatch, batch: pa.RecordBatch, notes: pa.Array) -> pa.RecordBatch:
        """Rows that are judged later say where they are from, each for itself."""
        if LINE not in self._tools.columns:
            return good
        numbers = pc.indices_nonzero(pc.is_null(notes)).cast(pa.int64())
        place = self._place or Place(f"{PLACE}1{json.dumps(['', 0])}".encode())
        files, lines = place.of_rows(pc.add(numbers, pa.scalar(self._since - batch.num_rows, pa.int64())))
        return good.append_column(FILE, files).append_column(LINE, lines)

    def _rescued(self, good: pa.RecordBatch, batch: pa.RecordBatch, notes: pa.Array) -> pa.RecordBatch:
        """What fits nowhere says where it is from."""
        name = self._tools.rescued
        if not name or good.column(name).null_count == good.num_rows:
            return good
        first = self._since - batch.num_rows
        numbers = [first + at for at in pc.indices_nonzero(pc.is_null(notes)).to_pylist()]
        place = self._place or Place(f"{PLACE}1{json.dumps(['', 0])}".encode())
        texts = [
            None if text is None else rescued_at(text, *place.of(number))
            for text, number in zip(good.column(name).to_pylist(), numbers, strict=True)
        ]
        return good.set_column(good.schema.get_field_index(name), name, nullable_texts(texts))

    def _note_times(self, times: pa.Array) -> None:
        if self._tools.latest_us is not None:
            rows = len(times)
            times = times.filter(pc.less_equal(times, pa.scalar(self._tools.latest_us, pa.int64())))
            self._ahead += rows - len(times)
        latest = pc.max(times).as_py()
        if latest is not None:
            self._event_us = latest if self._event_us is None else max(latest, self._event_us)

    def _kept_row(self, note: bytes, since: int) -> None:
        """A row that goes to quarantine: it is bad, or late."""
        self._keep(since, *parse_bad(note), note[:1].decode())

    def _keep(self, since: int, reason: str, raw: bytes, letter: str) -> None:
        if self._quarantine is None:
            self._quarantine = self._tools.open_quarantine(f"{self._attempt}-{self._begun}")
        file, row = self._place.of(since) if self._place else ("", 0)
        self._quarantine.add(file=file, row=row, reason=reason, raw=raw, form=self._form(letter, raw))
        if letter == LATE:
            self._late += 1
        else:
            where = "in quarantine" if self._tools.takes_up else f"{file}, row {row}"
            self._first_error = self._first_error or f"{where}: {reason}"
            self._bad += 1

    def _form(self, letter: str, raw: bytes) -> Mapping[str, Any] | None:
        """What says whether a row can be loaded later from what is kept of it. None: it cannot."""
        form, is_passed_over = self._tools.form, any(split.poison or split.poison_at for split in self._tools.splits)
        if form is None or is_passed_over or letter == LATE:
            return None
        return form.of_values if letter == BAD else form.of_record(raw)

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = self._tools.open_writer(f"{self._attempt}-{self._begun}")
        return self._writer

    def _finish(self, told: Mapping[str, Any]) -> pa.RecordBatch:
        split = self._tools.splits[told["split"]]
        if not told["rows"] == self._seen == self._loaded + self._unselected + self._bad + self._late:
            msg = f"Split {split.number} read {told['rows']} rows, and {self._seen} came to the writer"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        # Records that can hold no row, such as a tombstone, are counted where they were read and came no further.
        skipped = told["skipped"]
        rows = RowCounts(
            total=self._seen + skipped,
            loaded=self._loaded,
            unselected=self._unselected + skipped,
            error=self._bad,
            late=self._late,
        )
        written = self._writer.close() if self._writer else ()
        report = Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=told["end"],
            finished=told["finished"],
            files=() if self._tools.spools else written,
            spool=written if self._tools.spools else (),
            rows=rows,
            received_bytes=told["received_bytes"],
            source_files=told["source_files"],
            source_bytes=told["source_bytes"],
            marks=told["marks"],
            lag_ms=told["lag_ms"],
            event_us=self._event_us,
            ahead=self._ahead,
            quarantine=(self._quarantine.close(),) if self._quarantine else (),
            first_error=self._first_error,
            fields=told["fields"],
        )
        self._begun += 1
        self._reset()
        text = json.dumps(encode(report))
        return pa.RecordBatch.from_arrays([binaries([text.encode()]).view(pa.string())], names=["report"])
