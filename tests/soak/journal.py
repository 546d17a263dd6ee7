"""Reads along: every commit once, before others rewrite its files; and at the end the whole table, as others read it.

It knows what was sent and what was asked for. From Lading it takes the bills and the names of files; rows come from
the files themselves, and the table from another reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from lading.errors import LadingError
from lading.ids import JobId
from lading.model.bill import Bill, BillKind
from lading.tables.base import LakeTable
from tests.soak.counts import Counts
from tests.soak.lakes import Lake

Row = tuple[str, int]


class Journal:
    """Of one job that loads keys which count from 0. `by_place`: rows say their partition and offset."""

    def __init__(self, job_id: JobId, lake: Lake, counts: Counts, *, by_place: bool = False) -> None:
        self._job_id, self._lake, self._counts, self._by_place = job_id, lake, counts, by_place
        self._last: Bill | None = None
        self._newest: dict[str, int] = {}
        self._loaded: Counter[Row] = Counter()
        self._again: Counter[Row] = Counter()
        """How often a row must be there besides once, because somebody moved the job back."""
        self._places: dict[tuple[str, int], Row] = {}
        self.asked: dict[str, Mapping[str, str]] = {}
        """Moves of the position that were asked for, by their reason. They may have been cut off by a kill."""

    @property
    def last(self) -> Bill | None:
        """The newest that was read."""
        return self._last

    def lacks(self, sent: Mapping[str, int]) -> int:
        """How many rows commits have not loaded yet of those that were sent, or that are to come again."""
        return sum(sent.values()) + self._again.total() - self._loaded.total()

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

    def end(self, sent: Mapping[str, int]) -> None:
        """The table, as another engine reads it, against all that was sent."""
        read = self._lake.read_all()
        there: Counter[Row] = Counter(zip(read["k"].to_pylist(), read["n"].to_pylist(), strict=True))
        wanted = Counter({(key, n): 1 + self._again[key, n] for key, count in sent.items() for n in range(count)})
        lost, more = wanted - there, there - wanted
        strange = sum(count for row, count in more.items() if row not in wanted)
        name, counts = self._lake.name, self._counts
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
        told = f"seq {bill.seq} ({bill.kind.value}) of {self._lake.name}"
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
                found = self._lake.read(file.path)
            except OSError as error:
                self._counts.blame("CORRUPT", f"{file.path}: {error}")
                continue
            rows += found.num_rows
            self.take(found.select(["k", "n", *(["place", "number"] if self._by_place else [])]).to_pydict())
        told = f"seq {bill.seq} of {self._lake.name} says {bill.tally.rows.loaded} rows, and its files hold {rows}"
        self._counts.expect(rows == bill.tally.rows.loaded, "PROGRESS-MISMATCH", told)

    def take(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Rows of one file, in order."""
        rows: list[Row] = list(zip(columns["k"], columns["n"], strict=True))
        self._loaded.update(rows)
        for key, n in rows:
            newest = self._newest.get(key, -1)
            self._counts.expect(n >= newest, "REORDER", f"{self._lake.name}: {n} of {key} after {newest}")
            self._newest[key] = max(n, newest)
        if self._by_place:
            places = zip(columns["place"], map(int, columns["number"]), strict=True)
            self._places |= dict(zip(places, rows, strict=True))

    def _move(self, bill: Bill) -> None:
        """Rows between the new position and the old one come again, in order."""
        # Doors put before it who asked, and how.
        asked = self.asked.get(bill.reason.rpartition(": ")[2])
        self._counts.done["edits that landed"] += 1
        self._counts.expect(asked is not None, "PROGRESS-MISMATCH", f"nobody asked for the edit {bill.reason}")
        for name, at in (asked or {}).items():
            was = self._last.positions.partitions[name].at if self._last is not None else ""
            told = f"{name} is at {bill.positions.partitions[name].at}, and {at} was asked for"
            self._counts.expect(bill.positions.partitions[name].at == at, "PROGRESS-MISMATCH", told)
            first, end = bound(at), bound(was)
            again = [row for (place, n), row in self._places.items() if place == name and first <= n < end]
            self._again.update(set(again))
            self._counts.done["rows that were to come again"] += len(set(again))
            for key in {key for key, _ in again}:
                self._newest.pop(key, None)

    def way_back(self, rng: Random, most: int = 30) -> dict[str, str]:
        """One partition that is being read, and any of the last rows that were loaded from it."""
        partitions = self._last.positions.partitions if self._last is not None else {}
        able = sorted(name for name, state in partitions.items() if not state.finished and bound(state.at))
        if not able:
            return {}
        name = rng.choice(able)
        known = sorted(
            number for place, number in self._places if place == name and number < bound(partitions[name].at)
        )
        if not known:
            return {}
        prefix = "AT " if partitions[name].at.startswith("A") else ""
        return {name: f"{prefix}{rng.choice(known[-most:])}"}


def bound(position: str) -> int:
    """The first number that is read from there: `17` of Kafka, `AT 4954…` and `AFTER 4954…` of Kinesis, or a start."""
    last = position.split(" ")[-1]
    return int(last) + position.startswith("AFTER") if last.isdigit() else 0
