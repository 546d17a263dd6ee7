"""Reads along: every commit once, before others rewrite its files; and at the end the whole table, as others read it.

It knows what was sent and what was asked for. From Lading it takes the bills and the names of files; rows come from
the files themselves, and the table from another reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from lading.errors import LadingError
from lading.ids import JobId
from lading.model.bill import Bill, BillKind
from lading.tables.base import LakeTable
from tests.soak.counts import Counts
from tests.support.other_readers import read_elsewhere

Row = tuple[str, int]


class Journal:
    """Of one job that loads keys which count from 0. `by_place`: rows say their partition and offset, as for Kafka."""

    def __init__(self, job_id: JobId, folder: Path, counts: Counts, *, by_place: bool = False) -> None:
        self._job_id, self._folder, self._counts, self._by_place = job_id, folder, counts, by_place
        self._last: Bill | None = None
        self._newest: dict[str, int] = {}
        self._loaded: Counter[Row] = Counter()
        self._again: Counter[Row] = Counter()
        """How often a row must be there besides once, because somebody moved the job back."""
        self._places: dict[tuple[str, int], Row] = {}
        self.asked: dict[str, Mapping[str, str]] = {}
        """Moves of the position that were asked for, by their reason. They may have been cut off by a kill."""

    def read_on(self, table: LakeTable) -> None:
        """Everything that was committed since."""
        bills, head = list[Bill](), table.read_head(self._job_id)
        while head is not None and (self._last is None or head != self._last.head):
            try:
                bills.append(table.bills.read(self._job_id, head))
            except LadingError as error:
                self._counts.blame("CORRUPT", f"the bill of seq {head.seq}: {error}")
                break
            head = bills[-1].continues
        for bill in reversed(bills):
            self._check_bill(bill)
            self._read(bill)
            self._last = bill
            self._counts.done["commits"] += 1

    def end(self, form: str, sent: Mapping[str, int]) -> None:
        """The table, as another engine reads it, against all that was sent."""
        read = read_elsewhere(form, self._folder)
        there: Counter[Row] = Counter(zip(read["k"].to_pylist(), read["n"].to_pylist(), strict=True))
        wanted = Counter({(key, n): 1 + self._again[key, n] for key, count in sent.items() for n in range(count)})
        lost, more = wanted - there, there - wanted
        strange = sum(count for row, count in more.items() if row not in wanted)
        name, counts = str(self._folder), self._counts
        counts.blame("LOSS", f"{name}: {list(lost)[:3]}", lost.total())
        counts.blame("DUP", f"{name}: {list(more)[:3]}", more.total() - strange)
        counts.blame("CORRUPT", f"{name} has rows that nobody sent", strange)
        counts.expect(there == self._loaded, "PROGRESS-MISMATCH", f"{name}: the table is not what its commits loaded")
        totals = self._last.totals.rows.loaded if self._last is not None else 0
        told = f"{name}: totals say {totals} rows, and {there.total()} are there"
        counts.expect(totals == there.total(), "PROGRESS-MISMATCH", told)
        counts.done["rows"] += there.total()

    def _check_bill(self, bill: Bill) -> None:
        before = self._last
        if before is None:
            return
        told = f"seq {bill.seq} ({bill.kind.value}) of {self._folder}"
        is_edit = bill.kind is BillKind.EDIT
        holds = {
            "is not the next": bill.seq == before.seq + 1,
            "has another epoch": bill.epoch == before.epoch + is_edit,
            "has totals that do not add up": bill.totals == before.totals + bill.tally,
        }
        for part in bill.ranges:
            known, now = before.positions.partitions.get(part.partition), bill.positions.partitions.get(part.partition)
            holds[f"reads {part.partition} from elsewhere"] = known is None or known.at == part.start
            holds[f"leaves {part.partition} elsewhere"] = now is not None and now.at == part.end
        for flaw, is_right in holds.items():
            self._counts.expect(is_right, "PROGRESS-MISMATCH", f"{told} {flaw}")

    def _read(self, bill: Bill) -> None:
        if bill.kind is BillKind.EDIT:
            self._move(bill)
        rows = 0
        for file in bill.files:
            try:
                found = pq.read_table(self._folder / file.path)
            except OSError as error:
                self._counts.blame("CORRUPT", f"{file.path}: {error}")
                continue
            rows += found.num_rows
            self.take(found.select(["k", "n", *(["place", "number"] if self._by_place else [])]).to_pydict())
        told = f"seq {bill.seq} of {self._folder} says {bill.tally.rows.loaded} rows, and its files hold {rows}"
        self._counts.expect(rows == bill.tally.rows.loaded, "PROGRESS-MISMATCH", told)

    def take(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Rows of one file, in order."""
        rows: list[Row] = list(zip(columns["k"], columns["n"], strict=True))
        self._loaded.update(rows)
        for key, n in rows:
            newest = self._newest.get(key, -1)
            self._counts.expect(n >= newest, "REORDER", f"{self._folder}: {n} of {key} after {newest}")
            self._newest[key] = max(n, newest)
        if self._by_place:
            places = zip(columns["place"], map(int, columns["number"]), strict=True)
            self._places |= dict(zip(places, rows, strict=True))

    def _move(self, bill: Bill) -> None:
        """Rows between the new position and the old one come again, in order."""
        asked = self.asked.get(bill.reason)
        self._counts.done["edits that landed"] += 1
        self._counts.expect(asked is not None, "PROGRESS-MISMATCH", f"nobody asked for the edit {bill.reason}")
        for name, at in (asked or {}).items():
            was = self._last.positions.partitions[name].at if self._last is not None else "0"
            told = f"{name} is at {bill.positions.partitions[name].at}, and {at} was asked for"
            self._counts.expect(bill.positions.partitions[name].at == at, "PROGRESS-MISMATCH", told)
            again = [
                self._places[name, offset] for offset in range(int(at), int(was)) if (name, offset) in self._places
            ]
            self._again.update(set(again))
            for key in {key for key, _ in again}:
                self._newest.pop(key, None)
