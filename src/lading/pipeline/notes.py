"""Notes beside rows: made by the task's reader, passed through by Spark, taken up by the task's writer.

Rows stay in their order between the two, so where a row is from need not travel with it: one note says it for all rows
that follow, up to the next such note.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from lading.model.rows import ERROR, FILE, RAW, ROW
from lading.pipeline.mapping import END, PLACE, SIZE_DIGITS, UNREAD


def binaries(values: Sequence[bytes]) -> pa.Array:
    """An array made from buffers: `pa.array` would import pandas, which costs each worker a second."""
    offsets = array("i", accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    )


def nullable_texts(values: Sequence[str | None]) -> pa.Array:
    """Strings and nulls, the same way."""
    filled = binaries([b"" if value is None else value.encode() for value in values]).view(pa.string())
    bits = "".join("0" if value is None else "1" for value in reversed(values)) or "0"
    valid = pa.py_buffer(int(bits, 2).to_bytes((len(values) + 7) // 8, "little"))
    return pa.Array.from_buffers(pa.string(), len(values), [valid, *filled.buffers()[1:]])


def rescued_at(text: str, file: str, row: int) -> str:
    """A JSON object of what fits nowhere, with the place of its row. Fields of these names keep them: a key that stands
    twice would hide their values from every reader."""
    taken = json.loads(text, parse_int=str, parse_float=str) if '"_file"' in text or '"_row"' in text else {}
    names = [_free_name(name, taken) for name in ("_file", "_row")]
    told = json.dumps(dict(zip(names, (file, row), strict=True)), ensure_ascii=False, separators=(",", ":"))
    return f"{text[:-1]},{told[1:]}"


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def place_note(batch: pa.RecordBatch) -> bytes:
    """Where the rows of a batch are from: a file and its first row, the same for each run of them, or for each row."""
    files, rows = batch.column(FILE), batch.column(ROW)
    starts = _starts(files, rows)
    if len(starts) == 1:
        return f"{PLACE}1{json.dumps([files[0].as_py(), rows[0].as_py()])}".encode()
    if 0 < len(starts) <= len(rows) // _WORTH_A_RUN:
        first = [column.take(whole_numbers(starts)).to_pylist() for column in (files, rows)]
        return f"{PLACE}r{json.dumps([*first, starts])}".encode()
    return f"{PLACE}n{json.dumps([files.to_pylist(), rows.to_pylist()])}".encode()


def bad_notes(batch: pa.RecordBatch) -> pa.Array:
    """A note for each row that could not be read, null for the others."""
    errors = batch.column(ERROR)
    if errors.null_count == batch.num_rows:
        return pa.nulls(batch.num_rows, pa.binary())
    reasons = errors.cast(pa.binary())
    sizes = pc.utf8_lpad(pc.binary_length(reasons).cast(pa.string()), SIZE_DIGITS, "0").cast(pa.binary())
    letters = pa.repeat(binaries([UNREAD.encode()])[0], batch.num_rows)
    nothing = binaries([b""])[0]
    return pc.binary_join_element_wise(letters, sizes, reasons, pc.fill_null(batch.column(RAW), nothing), nothing)


def parse_bad(note: bytes) -> tuple[str, bytes]:
    """The reason and the record of a bad row."""
    start = 1 + SIZE_DIGITS
    end = start + int(note[1:start])
    return note[start:end].decode(), note[end:]


def end_note(told: object) -> bytes:
    """What the reader says at the end of a split."""
    return (END + json.dumps(told)).encode()


class Place:
    """Where rows are from, as a note said it."""

    def __init__(self, note: bytes) -> None:
        files, rows, *starts = json.loads(note[2:])
        if note[1:2] == b"1":
            files, rows, starts = [files], [rows], [[0]]
        self._files, self._rows = files, rows
        self._starts: Sequence[int] = starts[0] if starts else range(len(files))
        """Where runs begin, counted from the note: files and rows are theirs."""

    def of(self, number: int) -> tuple[str, int]:
        """File and row of a row, counted from the note."""
        run = bisect_right(self._starts, number) - 1
        return self._files[run] or "", (self._rows[run] or 0) + number - self._starts[run]

    def of_rows(self, numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The same for many rows."""
        if len(self._starts) == 1:
            files = pa.repeat(pa.scalar(self._files[0] or "", pa.string()), len(numbers))
            return files, pc.add(numbers.cast(pa.int64()), pa.scalar(self._rows[0], pa.int64()))
        told = [self.of(number) for number in numbers.to_pylist()]
        lines = array("q", (row for _, row in told))
        files = binaries([file.encode() for file, _ in told]).view(pa.string())
        return files, pa.Array.from_buffers(pa.int64(), len(told), [None, pa.py_buffer(lines)])


def _starts(files: pa.Array, rows: pa.Array) -> list[int]:
    """Where runs of rows begin that are of one file and follow each other there; none where some have no number."""
    if rows.null_count:
        return []
    ends = pc.run_end_encode(files).run_ends.to_pylist()
    gaps = pc.indices_nonzero(pc.fill_null(pc.not_equal(pc.pairwise_diff(rows), _ONE), False))
    return sorted({0, *ends[:-1], *gaps.to_pylist()}) if len(ends) + len(gaps) <= len(rows) // 2 + 1 else []


def whole_numbers(values: Sequence[int]) -> pa.Array:
    """int64, no nulls."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


_ONE = whole_numbers([1])[0]
_WORTH_A_RUN = 4
"""So many rows a run has to have, or it is shorter to tell the place of each row."""
