"""The verifier's eye on replays: which rows wait in quarantine, told from ranges alone.

A row that was bad waits from the commit that read it on, until a replay loads it or somebody gives it up. One whose
range is going to be read again must not be taken up: it would be there twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from lading.model.bill import Bill, BillKind
from lading.model.tally import Tally
from lading.testing.source import Row, ScriptedSource, offset_of
from lading.testing.verdict import CORRUPT, DUP, LOSS, PROGRESS_MISMATCH, Findings

ReadRows = Callable[[str], Sequence[Row] | None]


def taken_up(tally: Tally) -> Tally:
    """What totals grow by: a row that is loaded later was counted before, as a bad one."""
    rows = tally.rows
    return replace(tally, rows=replace(rows, total=0, error=rows.error - rows.total))


class Replays:
    """Follows a lineage, and knows after each commit which rows wait."""

    def __init__(self, source: ScriptedSource, file_rows: ReadRows, bad_rows: ReadRows, findings: Findings) -> None:
        self._source = source
        self._file_rows = file_rows
        self._bad_rows = bad_rows
        self._findings = findings
        self._waiting: dict[Row, tuple[str, int, int]] = {}
        """Where each is: partition and offset; and the seq of the commit that put it into quarantine."""
        self._positions: dict[str, int] = {}

    def follow(self, bill: Bill) -> None:
        """One more bill of the lineage."""
        if bill.kind is BillKind.LOAD and bill.quarantine:
            for part in bill.ranges:
                first = offset_of(part.start)
                for at, row in enumerate(self._source.rows(part.partition, part.start, part.end), first):
                    if row.fate == "error":
                        self._waiting[row] = (part.partition, at, bill.seq)
        self._positions = {name: offset_of(state.at) for name, state in bill.positions.partitions.items()}

    def take_up(self, bill: Bill) -> None:
        """Every row that waits is loaded or waits on, none besides, and none that comes again."""
        loaded = Counter(row for file in bill.files for row in self._file_rows(file.path) or ())
        still = Counter(row for place in bill.quarantine for row in self._bad_rows(place) or ())
        seq = bill.seq
        gone = [file.path for file in bill.files if self._file_rows(file.path) is None]
        self._findings.expect(not gone, CORRUPT, f"seq {seq}: files of a replay are gone: {gone}")
        twice = [row for row, count in (loaded + still).items() if count > 1 or row not in self._waiting]
        self._findings.expect(not twice, DUP, f"seq {seq} takes up rows that do not wait, or twice: {twice[:3]}")
        given_up = {row for row, (_, _, since) in self._waiting.items() if since <= self._given_up_to(bill)}
        left = self._waiting.keys() - loaded.keys() - still.keys() - given_up
        self._findings.expect(not left, LOSS, f"seq {seq} leaves out {len(left)} rows that wait")
        again = [row for row in loaded if row in self._waiting and self._comes_again(row)]
        self._findings.expect(not again, DUP, f"seq {seq} takes up {len(again)} rows that are going to be read again")
        rows = bill.tally.rows
        counts = (rows.loaded, rows.error) == (loaded.total(), still.total())
        self._findings.expect(counts, PROGRESS_MISMATCH, f"seq {seq} counts other rows than it took up")
        self._waiting = {row: (*self._waiting[row][:2], seq) for row in still if row in self._waiting}

    def _given_up_to(self, bill: Bill) -> int:
        """Replays of this proof say in their reason what they give up."""
        _, _, seq = bill.reason.partition(" after ")
        return int(seq) if seq else -1

    def _comes_again(self, row: Row) -> bool:
        name, at, _ = self._waiting[row]
        return at >= self._positions.get(name, at + 1)
