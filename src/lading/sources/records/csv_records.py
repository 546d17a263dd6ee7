"""Records of csv: many at once through pyarrow where that is safe, else by the letter.

Every line of a record is a row. A record ends all its lines: an enclosed field cannot reach into the next record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lading.model.row_formats import CsvOptions
from lading.sources.files.arrays import strings, whole_numbers
from lading.sources.files.blocks import Lines
from lading.sources.files.csv_fast import FastBlock, FastCsv
from lading.sources.files.csv_reference import NOT_CLOSED, NOT_UTF8, RECORDS_SAY, CsvText, count_mismatch
from lading.sources.records.parsed import Flaw, Taken, runs

_RUN_BYTES = 1024 * 1024
_SMALL_BYTES = 16 * 1024
"""What the fast way does not take is cut down to this before it goes by the letter."""


@dataclass(frozen=True, slots=True)
class _Lines:
    texts: Sequence[bytes]
    owners: Sequence[int] | None = None
    """For each line the record it is from. None: each record is one."""
    not_closed: set[int] = field(default_factory=set)
    """Lines with an enclosed field that does not end."""


class CsvRecords:
    """Takes apart runs of records."""

    def __init__(self, options: CsvOptions, names: Sequence[str], *, max_record: int, fast: bool = True) -> None:
        self._text = CsvText(options)
        self._bounds = Lines(options.line_delimiter.encode(), max_record=max_record, uri="")
        # Lines are found before they go the fast way, so there they can end in whatever is quickest.
        self._fast = FastCsv(replace(options, line_delimiter="\n"), names, names, RECORDS_SAY) if fast else None
        self._expected = len(names)

    def take(self, values: Sequence[bytes]) -> Iterator[Taken]:
        for run in runs(values, _RUN_BYTES):
            yield from self._take(run)

    def _take(self, values: Sequence[bytes]) -> Iterator[Taken]:
        lines = self._one_line_each(values)
        parsed = self._parse(lines)
        if not parsed:
            lines = self._cut(values)
            parsed = self._parse(lines)
        if parsed:
            yield _quick(parsed, lines, len(values))
        elif self._fast and not self._fast.is_hopeless and len(values) > 1 and sum(map(len, values)) > _SMALL_BYTES:
            step = (len(values) + 3) // 4
            for at in range(0, len(values), step):
                yield from self._take(values[at : at + step])
        else:
            yield self._slow(lines, len(values))

    def _one_line_each(self, values: Sequence[bytes]) -> _Lines:
        """The records as lines; what does not hold for them shows when they are parsed."""
        end = self._text.delimiter
        # A longer delimiter can overlap with itself, so that the one at the end is not the one that counts.
        is_ended = len(end) == 1 and values[0].endswith(end)
        return _Lines([value.removesuffix(end) for value in values] if is_ended else values)

    def _cut(self, values: Sequence[bytes]) -> _Lines:
        """The lines that are not blank."""
        texts, owners, not_closed = list[bytes](), list[int](), set[int]()
        for number, value in enumerate(values):
            found, _ = self._text.records(value, self._bounds, at_end=True)
            for line in found:
                if not line.is_closed:
                    not_closed.add(len(texts))
                if line.raw:
                    texts.append(line.raw)
                    owners.append(number)
        return _Lines(texts, owners, not_closed)

    def _parse(self, lines: _Lines) -> FastBlock | None:
        if self._fast is None or self._fast.is_hopeless or not lines.texts or lines.not_closed:
            return None
        text = b"\n".join(lines.texts)
        if b"\r" in text or text.count(b"\n") != len(lines.texts) - 1 or not all(lines.texts):
            return None
        if lines.owners is None and self._text.delimiter != b"\n" and self._text.delimiter in text:
            return None
        # A row is one line or longer: as many rows as lines are one for each, and none reached into the next.
        parsed = self._fast.parse(text)
        return parsed if parsed and parsed.rows == len(lines.texts) else None

    def _slow(self, lines: _Lines, records: int) -> Taken:
        flaws: dict[int, Flaw] = {}
        taken: list[list[str | None]] = []
        for place, line in enumerate(lines.texts):
            values = NOT_CLOSED if place in lines.not_closed else self._values(line)
            if isinstance(values, str):
                flaws[place] = Flaw(line, values)
            taken.append([None] * self._expected if isinstance(values, str) else values)
        columns = [strings(column) for column in zip(*taken, strict=True)]
        return Taken(records=records, rows=len(taken), columns=columns, owners=lines.owners, flaws=flaws)

    def _mismatch(self, line: bytes, actual: int) -> str:
        return count_mismatch(actual, self._expected, line, self._text.options, RECORDS_SAY)

    def _values(self, line: bytes) -> list[str | None] | str:
        """The values of a line, or why there are none."""
        try:
            values = self._text.fields(line.decode())
        except UnicodeDecodeError:
            return NOT_UTF8
        return values if len(values) == self._expected else self._mismatch(line, len(values))


def _quick(parsed: FastBlock, lines: _Lines, records: int) -> Taken:
    columns: Sequence[pa.Array] = parsed.columns
    flaws = {row.number - 1: Flaw(lines.texts[row.number - 1], row.reason) for row in parsed.bad}
    if flaws:
        columns = [_spread(column, len(lines.texts), flaws) for column in columns]
    return Taken(records=records, rows=len(lines.texts), columns=columns, owners=lines.owners, flaws=flaws)


def _spread(column: pa.Array, count: int, flaws: dict[int, Flaw]) -> pa.Array:
    """Values at the places of good rows, nulls at those of bad ones."""
    # One more value stands behind all others: a null for the bad rows to point at.
    padded = pa.concat_arrays([column, pa.nulls(1, pa.string())])
    places, good = list[int](), 0
    for place in range(count):
        places.append(len(column) if place in flaws else good)
        good += place not in flaws
    return padded.take(whole_numbers(places))
