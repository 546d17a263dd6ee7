"""The verifier: reads the table and the bills, compares them with what the source had and what users were told.

It shares no code with the coordinator. A user was told two kinds of things: "the job is open from here" and "the
position was moved". Everything else must follow from the bills of the lineage, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lading.errors import LadingError
from lading.model.batch import GONE
from lading.model.bill import Bill, BillKind, Head
from lading.model.job import WatermarkRule
from lading.model.positions import BEGINNING, PartitionState
from lading.model.state import StateRef
from lading.model.tally import RowCounts, Tally
from lading.testing.listeners import Told, check_told
from lading.testing.merger import Kept, keys_of
from lading.testing.replayed import Replays, taken_up
from lading.testing.source import Row, ScriptedSource, offset_of
from lading.testing.verdict import CORRUPT, DUP, LOSS, PROGRESS_MISMATCH, REORDER, STUCK, Findings
from lading.testing.watermarks import check_watermark
from lading.testing.window_counter import check_written_once, due_results


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the table: whose files, whose head."""

    files: frozenset[str]
    head: Head | None
    restored: bool = False


@dataclass(slots=True, kw_only=True)
class Promises:
    """What users were told."""

    created: Mapping[str, PartitionState] | None = None
    """Where CREATE said that the job begins. None: the store was lost before the table had it, and the job with it."""
    opened: Mapping[str, PartitionState] | None = None
    edits_asked: dict[str, Mapping[str, str | None]] = field(default_factory=dict)
    """By the reason text, which names the request."""
    edits_done: set[str] = field(default_factory=set)
    accepted: dict[str, tuple[Mapping[str, PartitionState], StateRef | None]] = field(default_factory=dict)
    """Where and with which state a job was to go on after a rollback, by the reason text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the verifier may look at."""

    versions: Sequence[Version]
    read_bill: Callable[[Head], Bill]
    file_rows: Callable[[str], Sequence[Row] | None]
    source: ScriptedSource
    promises: Promises
    shown_totals: Tally | None = None
    """What the statistics view shows."""
    followed: tuple[int, ...] = ()
    """The bills that reached the views, in order."""
    oldest_bill: int = 0
    """Bills below this seq were removed by the retention policy."""
    cleaned: frozenset[int] = frozenset()
    """Bills of these seqs were removed by other engines: views that had not followed them never will."""
    watermark: WatermarkRule | None = None
    horizon: int | None = None
    window: int | None = None
    state_rows: Callable[[StateRef | None], list[Kept] | None] = lambda state: []
    told: Sequence[Told] = ()
    bad_rows: Callable[[str], Sequence[Row] | None] = lambda place: None
    """What a file of quarantine holds."""


def verify(evidence: Evidence) -> Findings:
    """Everything that is wrong with the table."""
    findings = Findings()
    head = evidence.versions[-1].head
    if head is None:
        opened = evidence.promises.opened is not None
        findings.expect(not opened, LOSS, "the job was opened, but the table has no head")
        return findings
    try:
        lineage = read_lineage(evidence, head)
    except LadingError as error:
        findings.add(CORRUPT, f"a bill of the lineage cannot be read: {error}")
        return findings
    _Walk(evidence, findings).run(lineage)
    _check_content(evidence, findings, lineage)
    _check_versions(evidence, findings)
    _check_followed(evidence, findings, lineage)
    check_told(evidence.told, lineage, findings)
    is_shown = evidence.shown_totals in (None, lineage[-1].totals)
    findings.expect(is_shown, PROGRESS_MISMATCH, "statistics are not those of the head")
    return findings


def read_lineage(evidence: Evidence, head: Head) -> list[Bill]:
    """The bills that made the table what it is, oldest first."""
    bills = [evidence.read_bill(head)]
    while (old := bills[-1].continues) is not None and old.seq >= evidence.oldest_bill:
        bills.append(evidence.read_bill(old))
    return bills[::-1]


class _Walk:
    """Follows the lineage bill by bill and keeps what must be true after each."""

    def __init__(self, evidence: Evidence, findings: Findings) -> None:
        self._evidence = evidence
        self._findings = findings
        self._at: dict[str, PartitionState] = dict(evidence.promises.created or evidence.promises.opened or {})
        self._totals = Tally()
        self._last: dict[tuple[str, int], int] = {}
        self._edits_seen: set[str] = set()
        self._rewound: set[str] = set()
        if evidence.oldest_bill:  # Bills of moves may be gone.
            self._rewound |= {name for moved in evidence.promises.edits_asked.values() for name in moved}
        self._read: dict[str, list[tuple[int, int]]] = {}
        """What was read of each partition since an operator last moved it."""
        self._before: Bill | None = None
        self._results: set[tuple[int, int, int]] = set()
        self._replay = Replays(evidence.source, evidence.file_rows, evidence.bad_rows, findings)

    def run(self, lineage: list[Bill]) -> None:
        self._check_first(lineage[0])
        for before, bill in zip([None, *lineage], lineage, strict=False):
            self._before = before
            if before is not None:
                self._check_order(before, bill)
                check_watermark(self._evidence.watermark, self._evidence.source, self._findings, before, bill)
            match bill.kind:
                case BillKind.LOAD:
                    self._load(bill)
                case BillKind.EDIT:
                    self._edit(bill)
                case BillKind.REPLAY:
                    self._replay.take_up(bill)
                case BillKind.TAKEOVER | BillKind.OPENING:
                    self._same_positions(bill)
            self._replay.follow(bill)
            self._at = dict(bill.positions.partitions)
            self._check_totals(bill)
        self._check_done(lineage)

    def _check_first(self, first: Bill) -> None:
        opened = self._evidence.promises.created or self._evidence.promises.opened
        if first.kind is not BillKind.OPENING and self._evidence.oldest_bill:
            self._at, self._totals = dict(first.positions.partitions), first.totals - first.tally
            starts = {part.partition: part.start for part in first.ranges}
            starts |= {gap.partition: gap.start for gap in first.gaps}
            self._at |= {name: PartitionState(at=start) for name, start in starts.items()}
            return
        self._findings.expect(first.kind is BillKind.OPENING, LOSS, "the first bill is not an opening bill")
        if opened is None:
            self._at = dict(first.positions.partitions)

    def _check_order(self, before: Bill, bill: Bill) -> None:
        self._findings.expect(bill.seq > before.seq, PROGRESS_MISMATCH, f"seq {bill.seq} follows {before.seq}")
        raised = bill.epoch > before.epoch if bill.kind is BillKind.EDIT else bill.epoch == before.epoch
        self._findings.expect(raised, PROGRESS_MISMATCH, f"seq {bill.seq} is a {bill.kind.value} of epoch {bill.epoch}")

    def _same_positions(self, bill: Bill) -> None:
        for name, state in self._at.items():
            now = bill.positions.partitions.get(name)
            self._findings.expect(now == state, *self._moved(name, state, now, bill))
        self._findings.expect(not bill.files, DUP, f"seq {bill.seq} is a {bill.kind.value} with files")

    def _moved(self, name: str, was: PartitionState, now: PartitionState | None, bill: Bill) -> tuple[str, str]:
        ahead = now is None or offset_of(now.at) > offset_of(was.at)
        told = f"seq {bill.seq} ({bill.kind.value}) has {name} at {now and now.at!r}, expected {was.at!r}"
        return (LOSS if ahead else DUP), told

    def _edit(self, bill: Bill) -> None:
        self._last.clear()
        self._findings.expect(not bill.files, DUP, f"seq {bill.seq} is an edit with files")
        self._edits_seen.add(bill.reason)
        if bill.accepts_rollback:
            self._findings.expect(
                (bill.positions.partitions, bill.state) == self._evidence.promises.accepted.get(bill.reason),
                PROGRESS_MISMATCH,
                f"seq {bill.seq} accepts a rollback and does not go on where the operator said",
            )
            self._rewind_kept(bill)
            return
        asked = self._evidence.promises.edits_asked.get(bill.reason)
        if not self._findings.expect(asked is not None, PROGRESS_MISMATCH, f"nobody asked for edit {bill.reason!r}"):
            return
        self._rewound |= set(asked or {})
        for name in asked or {}:
            self._read.pop(name, None)
        for name, at in (asked or {}).items():
            now = bill.positions.partitions.get(name)
            self._findings.expect(
                now is not None and (now.finished if at is None else now.at == at and not now.finished),
                PROGRESS_MISMATCH,
                f"edit {bill.reason!r} did not move {name} to {at}",
            )

    def _rewind_kept(self, bill: Bill) -> None:
        """KEEP POSITION also keeps a move back that an operator had made and the rollback took away."""
        moved = {name for asked in self._evidence.promises.edits_asked.values() for name in asked}
        for name, state in bill.positions.partitions.items():
            was = self._at.get(name)
            if was is not None and offset_of(state.at) < offset_of(was.at):
                told = f"seq {bill.seq} accepts a rollback and goes back behind {was.at} of {name}"
                self._findings.expect(name in moved, DUP, told)
                self._rewound.add(name)
                self._read.pop(name, None)

    def _load(self, bill: Bill) -> None:
        for gap in bill.gaps:
            state = self._at.get(gap.partition, PartitionState(at=BEGINNING))
            self._findings.expect(gap.start == state.at, LOSS, f"seq {bill.seq} has a gap that starts elsewhere")
            self._at[gap.partition] = replace(state, finished=True) if gap.end == GONE else replace(state, at=gap.end)
        rows: list[Row] = []
        for part in bill.ranges:
            self._check_start(bill, part.partition, part.start)
            self._check_once(bill, part.partition, offset_of(part.start), offset_of(part.end))
            read = self._evidence.source.rows(part.partition, part.start, part.end)
            self._check_reading_order(bill, part.partition, read)
            rows += read
        self._check_positions(bill)
        self._check_rows(bill, rows)

    def _check_start(self, bill: Bill, name: str, start: str) -> None:
        state = self._at.get(name)
        if state is None:
            parents = self._evidence.source.shards[name].parents
            unread = [p for p in parents if p in self._at and not self._at[p].finished]
            self._findings.expect(not unread, REORDER, f"seq {bill.seq} reads {name} before its parents {unread}")
            state = PartitionState(at=BEGINNING)
        was, now = offset_of(state.at), offset_of(start)
        self._findings.expect(now <= was, LOSS, f"seq {bill.seq} reads {name} from {now}, but {was} is next")
        self._findings.expect(now >= was, DUP, f"seq {bill.seq} reads {name} from {now}, but {was} is next")
        self._findings.expect(not state.finished, DUP, f"seq {bill.seq} reads {name}, which was finished")

    def _check_once(self, bill: Bill, name: str, start: int, end: int) -> None:
        """No row is read by two bills, also when the job had forgotten its partition in between."""
        before = self._read.setdefault(name, [])
        twice = any(start < old_end and old_start < end for old_start, old_end in before)
        self._findings.expect(not twice, DUP, f"seq {bill.seq} reads {name} from {start} to {end} a second time")
        before.append((start, end))

    def _check_positions(self, bill: Bill) -> None:
        ends = {part.partition: part.end for part in bill.ranges}
        for name, state in bill.positions.partitions.items():
            was = self._at.get(name, PartitionState(at=BEGINNING))
            expected = offset_of(ends.get(name, was.at))
            text = f"seq {bill.seq} leaves {name} at {state.at!r}, expected {expected}"
            self._findings.expect(offset_of(state.at) <= expected, LOSS, text)
            self._findings.expect(offset_of(state.at) >= expected, DUP, text)
        for name, state in self._at.items():
            gone = name not in bill.positions.partitions
            self._findings.expect(not gone or state.finished, LOSS, f"seq {bill.seq} forgot {name} unfinished")

    def _check_rows(self, bill: Bill, rows: list[Row]) -> None:
        if self._before is None:
            return  # The bill that says which rows were late is gone.
        watermark = self._before.positions.watermark_us
        loadable = [row for row in rows if row.fate_at(watermark) == "loaded"]
        first = loadable if self._evidence.horizon is None else self._first_rows(self._before, bill, loadable)
        wanted = Counter(first if self._evidence.window is None else self._due(self._before, bill, loadable))
        got: Counter[Row] = Counter()
        for file in bill.files:
            held = self._evidence.file_rows(file.path)
            if self._findings.expect(held is not None, CORRUPT, f"seq {bill.seq}: file {file.path} is gone"):
                got.update(held or ())
                self._findings.expect(len(held or ()) == file.rows, CORRUPT, f"seq {bill.seq}: {file.path} differs")
        lost, extra = wanted - got, got - wanted
        self._findings.expect(not lost, LOSS, f"seq {bill.seq} lacks {sum(lost.values())} rows of its ranges")
        self._findings.expect(not extra, DUP, f"seq {bill.seq} has {sum(extra.values())} rows beyond its ranges")
        fates = Counter(row.fate_at(watermark) for row in rows)
        counted = RowCounts(
            total=len(rows),
            loaded=len(first),
            duplicate=len(loadable) - len(first),
            unselected=fates["unselected"],
            error=fates["error"],
            late=fates["late"],
        )
        self._findings.expect(bill.tally.rows == counted, PROGRESS_MISMATCH, f"seq {bill.seq} is not {counted}")

    def _due(self, before: Bill, bill: Bill, rows: list[Row]) -> list[Row]:
        kept = (self._evidence.state_rows(before.state), self._evidence.state_rows(bill.state))
        due = due_results(self._evidence.window or 1, kept, before.positions.watermark_us, rows, self._findings)
        check_written_once(self._results, bill.epoch, due, self._findings)
        return due

    def _first_rows(self, before: Bill, bill: Bill, rows: list[Row]) -> list[Row]:
        """Those whose keys were not loaded within the horizon, by what the bill before says was loaded."""
        horizon, watermark = self._evidence.horizon or 0, before.positions.watermark_us
        known, after = self._evidence.state_rows(before.state), self._evidence.state_rows(bill.state)
        told = f"seq {bill.seq} names state that is not there"
        if not self._findings.expect(known is not None and after is not None, CORRUPT, told):
            return rows
        seen, first = list(known or ()), list[Row]()
        for row in rows:
            near = [at for keys, at in seen if keys == keys_of(row) and -horizon < at - row.event < horizon]
            if not near:
                first.append(row)
                seen.append((keys_of(row), row.event))
        needed = {kept for kept in seen if watermark is None or kept[1] > watermark - horizon}
        lost, strange = needed - set(after or ()), set(after or ()) - set(seen)
        self._findings.expect(not lost, LOSS, f"seq {bill.seq} forgets {len(lost)} keys that it needs")
        self._findings.expect(not strange, CORRUPT, f"seq {bill.seq} remembers {len(strange)} keys it never saw")
        return first

    def _check_reading_order(self, bill: Bill, partition: str, rows: list[Row]) -> None:
        # Rows of a partition that an operator moved back come again after their successors, by intent; they are in
        # order among themselves.
        scope = partition if partition in self._rewound else ""
        for row in rows:
            last = self._last.get((scope, row.key), -1)
            told = f"seq {bill.seq} reads number {row.number} of key {row.key} after {last}"
            self._findings.expect(row.number > last, REORDER, told)
            self._last[scope, row.key] = row.number

    def _check_totals(self, bill: Bill) -> None:
        self._totals += bill.tally if bill.kind is not BillKind.REPLAY else taken_up(bill.tally)
        same = bill.totals == self._totals
        self._findings.expect(same, PROGRESS_MISMATCH, f"seq {bill.seq} has totals that are not the sum of its bills")

    def _check_done(self, lineage: list[Bill]) -> None:
        if any(version.restored for version in self._evidence.versions) or self._evidence.oldest_bill:
            return
        lost = self._evidence.promises.edits_done - self._edits_seen
        self._findings.expect(not lost, PROGRESS_MISMATCH, f"edits were confirmed but are not in the lineage: {lost}")


def _check_followed(evidence: Evidence, findings: Findings, lineage: list[Bill]) -> None:
    """Since the views began, every bill reached them, in order and once."""
    if evidence.followed and not any(version.restored for version in evidence.versions):
        first = evidence.followed[0]
        missable = evidence.cleaned - set(evidence.followed)
        due = tuple(bill.seq for bill in lineage if bill.seq >= first and bill.seq not in missable)
        got = tuple(seq for seq in evidence.followed if seq >= evidence.oldest_bill)
        findings.expect(got == due, PROGRESS_MISMATCH, f"views followed {got}, due were {due}")


def _check_content(evidence: Evidence, findings: Findings, lineage: list[Bill]) -> None:
    """The current snapshot holds exactly the files of the lineage."""
    named = {file.path for bill in lineage for file in bill.files}
    there = evidence.versions[-1].files
    findings.expect(named <= there, LOSS, f"the table lacks {len(named - there)} files of the lineage")
    if not evidence.oldest_bill:
        findings.expect(there <= named, DUP, f"the table has {len(there - named)} files that no bill names")


def _check_versions(evidence: Evidence, findings: Findings) -> None:
    """At every version: files came with the head that accounts for them, never without and never before."""
    for before, now in zip(evidence.versions, evidence.versions[1:], strict=False):
        if now.restored or now.head is None or now.head.seq < evidence.oldest_bill:
            continue
        added = now.files - before.files
        if now.head == before.head:
            findings.expect(not added, DUP, "files appeared without a move of the head")
            continue
        try:
            named = {file.path for file in evidence.read_bill(now.head).files}
        except LadingError as error:
            findings.add(CORRUPT, f"a bill that was a head cannot be read: {error}")
            continue
        findings.expect(added == named, PROGRESS_MISMATCH, f"seq {now.head.seq} added {len(added)}, not {len(named)}")


def check_all_read(source: ScriptedSource, bill: Bill, findings: Findings) -> None:
    """After a quiet time every row there is has been read."""
    for shard in source.shards.values():
        state = bill.positions.partitions.get(shard.name)
        if state is None:
            findings.expect(shard.expired or not shard.rows, STUCK, f"{shard.name} was never taken in")
            continue
        if state.given_up:
            findings.expect(shard.expired, LOSS, f"{shard.name} was given up, and the source still has it")
            continue
        read = offset_of(state.at) == len(shard.rows) and (state.finished or not shard.closed)
        findings.expect(read, STUCK, f"{shard.name} is at {state.at!r} of {len(shard.rows)}")
