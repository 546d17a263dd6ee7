"""What must be true of a job over files whose bad rows are taken up again: told from its bills, and what they name.

Every row that a batch has read is in the table or in quarantine. A row of quarantine is loaded once, by the first
replay that finds it good, and by none when the source has brought it again since, or is going to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lading.model.bill import Bill, BillKind
from lading.model.positions import Positions
from lading.testing.source import Row
from lading.testing.verdict import CORRUPT, DUP, LOSS, PROGRESS_MISMATCH, Findings

BadFiles = dict[str, list[Row]]
ReadRows = Callable[[str], Sequence[Row] | None]
Comes = Callable[[Row, Positions], bool]
LeftOut = Callable[[Positions], set[int]]
WORD = "word-"
"""How the reasons of edits begin that move no position."""


@dataclass(slots=True)
class _Walk:
    """What is known after each bill of a lineage."""

    findings: Findings
    skipped: set[int] = field(default_factory=set)
    """Files that were left out by somebody's word, which only such a word changes."""
    moved_at: int = -1
    """When an operator last moved the position."""
    waiting: dict[Row, list[tuple[int, int]]] = field(default_factory=dict)
    """For each bad row the commits whose quarantine has it, each with the batch that read it first."""
    read_at: dict[Row, int] = field(default_factory=dict)
    """The newest batch that read a row."""
    read: Counter[Row] = field(default_factory=Counter)
    loaded: Counter[Row] = field(default_factory=Counter)
    given_up: Counter[Row] = field(default_factory=Counter)
    errors: int = 0

    def load(self, bill: Bill, good: Sequence[Row], bad: Sequence[Row]) -> None:
        """A batch: rows of whole files."""
        twice = [row for row, count in Counter([*good, *bad]).items() if count > 1]
        self.findings.expect(not twice, DUP, f"seq {bill.seq} reads rows twice: {twice[:3]}")
        for row in (*good, *bad):
            told = f"seq {bill.seq} reads {row} again, and nobody moved the position since"
            self.findings.expect(row.number < 0 or self.read_at.get(row, -1) <= self.moved_at, DUP, told)
            told = f"seq {bill.seq} reads {row}, whose file is left out"
            self.findings.expect(row.key not in self.skipped, DUP, told)
            self.read_at[row] = bill.seq
            self.read[row] += 1
        for row in bad:
            self.waiting.setdefault(row, []).append((bill.seq, bill.seq))
        self.loaded.update(good)
        self.errors += len(bad)

    def edit(self, bill: Bill, left_out: LeftOut) -> None:
        """A word about a file, or a move, or a rollback that was meant."""
        if bill.reason.startswith(WORD) or bill.accepts_rollback:
            self.skipped = left_out(bill.positions)
        if bill.kind is BillKind.EDIT and not bill.reason.startswith(WORD):
            self.moved_at = bill.seq

    def replay(self, bill: Bill, good: Sequence[Row], bad: Sequence[Row], comes: Comes) -> None:
        """A replay: every row that waits, and none that comes by reading."""
        seq, wanted, still = bill.seq, Counter[Row](), Counter(bad)
        _, _, after = bill.reason.partition(" after ")
        kept = dict[Row, list[tuple[int, int]]]()
        for row, places in self.waiting.items():
            for since, origin in places:
                if since <= int(after or -1):
                    self.given_up[row] += 1
                    continue
                wanted[row] += 1
                if still[row]:
                    still[row] -= 1
                    kept.setdefault(row, []).append((seq, origin))
                    continue
                again = self.read_at[row] != origin or comes(row, bill.positions)
                self.findings.expect(not again, DUP, f"seq {seq} takes up {row}, which was or will be read again")
        taken = Counter([*good, *bad])
        self.findings.expect(not taken - wanted, DUP, f"seq {seq} takes up what does not wait: {taken - wanted}")
        self.findings.expect(not wanted - taken, LOSS, f"seq {seq} leaves out what waits: {wanted - taken}")
        self.waiting = kept
        self.loaded.update(good)
        self.errors -= len(good)


def check_lineage(
    lineage: Sequence[Bill],
    file_rows: ReadRows,
    bad_files: BadFiles,
    comes: Comes,
    left_out: LeftOut,
    findings: Findings,
) -> set[Row]:
    """Everything that is wrong. The rows that were read."""
    walk = _Walk(findings)
    for bill in lineage:
        found = [file_rows(file.path) for file in bill.files]
        findings.expect(None not in found, CORRUPT, f"seq {bill.seq} names files that are gone")
        good = [row for rows in found for row in rows or ()]
        bad = [row for place in bill.quarantine for row in bad_files[place]]
        counts = (bill.tally.rows.loaded, bill.tally.rows.error)
        findings.expect(counts == (len(good), len(bad)), PROGRESS_MISMATCH, f"seq {bill.seq} counts other rows")
        if bill.kind is BillKind.LOAD:
            walk.load(bill, good, bad)
        elif bill.kind is BillKind.REPLAY:
            walk.replay(bill, good, bad, comes)
        else:
            findings.expect(not good, DUP, f"seq {bill.seq} is a {bill.kind.value} with rows")
            walk.edit(bill, left_out)
        totals = (bill.totals.rows.loaded, bill.totals.rows.error)
        told = f"seq {bill.seq} has totals {totals}, and {(walk.loaded.total(), walk.errors)} are there"
        findings.expect(totals == (walk.loaded.total(), walk.errors), PROGRESS_MISMATCH, told)
    for row, count in walk.read.items():
        waits = len(walk.waiting.get(row, ()))
        fate = walk.loaded[row] + walk.given_up[row] + waits
        findings.expect(fate >= count, LOSS, f"{row} was read {count} times, and {fate} of it are known")
        findings.expect(fate <= count, DUP, f"{row} was read {count} times, and {fate} of it are known")
    return set(walk.read)
