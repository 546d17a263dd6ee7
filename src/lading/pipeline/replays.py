"""Rows of quarantine on their way back into the pipeline: what tasks of a replay read, and where rows go that are bad
once more.

Each line of a file becomes one row. One that cannot be read from what is kept of it stays bad, for the reason that it
had. Rows that are bad again are written to the new quarantine as they are in the old one, so that nothing of them is
lost, with the reason of now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lading.errors import SourceError
from lading.model.batch import Split
from lading.model.rows import ERROR, FILE, RAW, ROW, SplitEnd
from lading.pipeline.kept_rows import RECORD_KEPT, RowForm, kept_values
from lading.pipeline.tasks import Quarantine

_ROWS = 4096
"""Rows of one batch, unless they are long."""
_BYTES = 8 * 1024 * 1024

OpenLines = Callable[[str], Iterator[bytes]]
"""The lines of a file of bad rows. Raises when it cannot be read whole."""
ParseRecord = Callable[[bytes], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReader:
    """Reads files of bad rows in the place of the source. It pickles."""

    open_lines: OpenLines
    schema: pa.Schema
    """Source columns, without those that have one value for all rows of a batch."""
    form: RowForm
    parse: ParseRecord | None = None
    """Takes a record apart as the source does. None: those that could not be taken apart stay bad."""

    def __call__(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch | SplitEnd]:
        for split in splits:
            rows, waiting = 0, _Waiting(self.schema, split.payload)
            for line in self.open_lines(split.payload):
                rows += 1
                waiting.add(rows, *self._row(read_line(line, split.payload)), size=len(line))
                if waiting.is_full:
                    yield waiting.batch()
            if waiting.count:
                yield waiting.batch()
            yield SplitEnd(end=split.end or "", rows=rows)

    def _row(self, line: Mapping[str, Any]) -> tuple[list[Any] | None, str]:
        """Its values, or why there are none."""
        reason = str(line.get("reason", ""))
        if line.get(RECORD_KEPT) is True:
            return self._parsed(str(line.get("raw", "")).encode(), reason)
        return kept_values(line, self.form, self.schema), reason

    def _parsed(self, record: bytes, reason: str) -> tuple[list[Any] | None, str]:
        found = list(self.parse(record)) if self.parse is not None else []
        if sum(batch.num_rows for batch in found) != 1:
            return None, reason
        batch = next(batch for batch in found if batch.num_rows)
        if (error := batch.column(ERROR)[0].as_py()) is not None:
            return None, error
        return [batch.column(name)[0].as_py() for name in self.schema.names], ""


class _Waiting:
    """Rows of one batch."""

    def __init__(self, schema: pa.Schema, place: str) -> None:
        self._schema = pa.schema(
            [*schema, (FILE, pa.string()), (ROW, pa.int64()), (RAW, pa.binary()), (ERROR, pa.string())]
        )
        self._place = place
        self._rows: list[tuple[Any, ...]] = []
        self._size = 0

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= _ROWS or self._size >= _BYTES

    def add(self, number: int, values: Sequence[Any] | None, error: str, *, size: int) -> None:
        given = values if values is not None else [None] * (len(self._schema) - 4)
        self._rows.append((*given, self._place, number, None, None if values is not None else error))
        self._size += size

    def batch(self) -> pa.RecordBatch:
        columns = list(zip(*self._rows, strict=True))
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._rows, self._size = [], 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class ReplayQuarantine:
    """Where rows go that are bad once more. Each is told by its file and its line there."""

    def __init__(self, open_lines: OpenLines, open_next: Callable[[str], Quarantine], attempt: str) -> None:
        self._open_lines = open_lines
        self._next = open_next(attempt)
        self._place, self._number = "", 0
        self._lines: Iterator[bytes] = iter(())

    def add(self, *, file: str, row: int, reason: str, raw: bytes, form: Mapping[str, Any] | None = None) -> None:
        """Write one bad row: as it was kept, with the reason of now."""
        if file != self._place or row <= self._number:
            self._place, self._number, self._lines = file, 0, self._open_lines(file)
        line = b""
        while self._number < row:
            line = next(self._lines, b"")
            self._number += 1
        told = {**read_line(line, file), "reason": reason}
        self.put(json.dumps(told, ensure_ascii=False) + "\n")

    def put(self, line: str) -> None:
        """Write one bad row as it was kept."""
        self._next.put(line)

    def close(self) -> str:
        """Finish, durably. Returns where."""
        return self._next.close()


def read_line(line: bytes, place: str) -> dict[str, Any]:
    """A bad row as it is kept. Raises SourceError for anything else: it is never taken for no row."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        msg = f"The quarantine file {place} is damaged"
        raise SourceError(msg, left="Nothing was committed.", todo="Restore it, or give its rows up with AFTER.")
    return found
