"""Mutants of the commit: compare-and-set, outcomes, bills, heads, edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lading.commit import coordinator, heads, next_bill, settle
from lading.commit.check import check_reports
from lading.commit.coordinator import Coordinator
from lading.commit.heads import read_head_since
from lading.commit.next_bill import Stamp
from lading.commit.rollback import rolled_back
from lading.commit.settle import Sighting, fenced
from lading.commit.steps import Steps
from lading.errors import StorageError
from lading.ids import JobId
from lading.model.batch import BatchPlan, Report, StagedFile
from lading.model.bill import Bill, BillKind, Head
from lading.model.job import Job
from lading.model.positions import Positions, move_positions
from lading.model.state import StateChange
from lading.model.tally import RowCounts, Tally
from lading.tables.memory import MemoryBills, MemoryTable, MemoryVersion
from lading.testing.mutants import Patch, mutant


@mutant("no-compare-and-set", "a commit is accepted only if the head is the one it was planned on")
def _no_compare_and_set(patch: Patch) -> None:
    patch(MemoryTable, "_matches", lambda self, expected, head: True)


@mutant("two-commits", "rows and progress become visible in one table commit")
def _two_commits(patch: Patch) -> None:
    whole = MemoryTable._append  # noqa: SLF001  # a mutant replaces the inside of what it breaks

    def halved(self: MemoryTable, staged: Sequence[StagedFile], bill: Bill) -> None:
        now = self.versions[-1]
        if staged:
            self.versions.append(MemoryVersion(files=now.files | {f.path for f in staged}, heads=now.heads))
        whole(self, (), bill)

    patch(MemoryTable, "_append", halved)


@mutant("delete-on-unknown", "files are deleted only after a certain NotLanded")
def _delete_on_unknown(patch: Patch) -> None:
    give_up = settle.give_up

    def careless(table: Any, staged: Any, bill: Bill, *, was_unknown: bool, outcome: Any) -> Exception:
        return give_up(table, staged, bill, was_unknown=False, outcome=outcome)

    patch(settle, "give_up", careless)
    patch(settle, "may_try_again", lambda outcome: False)
    patch(settle, "look", lambda table, expected, bill: Sighting(ours=False, moved=False, head=expected))


@mutant("unknown-is-landed", "after an unknown outcome the table is asked before anything is decided")
def _unknown_is_landed(patch: Patch) -> None:
    def trusting(self: Coordinator, bill: Bill, staged: Sequence[StagedFile]) -> Steps[None]:
        world = self._world
        world.bills.put(bill)
        yield "commit.before"
        world.table.commit(bill.replaces, staged, bill)
        yield "commit.after"
        self.bill = bill
        for follower in world.followers:
            follower.follow(bill)

    patch(Coordinator, "_commit", trusting)


@mutant("bill-after-commit", "the bill is durable before the commit that names it")
def _bill_after_commit(patch: Patch) -> None:
    def late(self: Coordinator, bill: Bill, staged: Sequence[StagedFile]) -> Steps[None]:
        yield from settle.commit_and_settle(self._world.table, bill.replaces, staged, bill)
        yield "bill.before"
        self._world.bills.put(bill)
        self.bill = bill
        yield from self._follow()

    patch(Coordinator, "_commit", late)


@mutant("follow-before-commit", "what is derived from a bill follows the commit, never precedes it")
def _follow_before_commit(patch: Patch) -> None:
    whole = Coordinator._commit  # noqa: SLF001

    def early(self: Coordinator, bill: Bill, staged: Sequence[StagedFile]) -> Steps[None]:
        for follower in self._world.followers:
            follower.follow(bill)
        yield "follow.after"
        yield from whole(self, bill, staged)

    patch(Coordinator, "_commit", early)


@mutant("follow-newest-only", "followers are caught up after a crash with every bill they missed")
def _follow_newest_only(patch: Patch) -> None:
    patch(Coordinator, "_missed_bills", lambda self: [self._known()])


@mutant("latest-at-the-first-run", "LATEST means the moment of CREATE, whenever the first run is")
def _latest_at_the_first_run(patch: Patch) -> None:
    whole = Coordinator.start

    def late(
        self: Coordinator,
        *,
        last_seen: Head | None = None,
        said_goodbye: Head | None = None,
        created_at: Positions | None = None,
    ) -> Steps[Bill]:
        return whole(self, last_seen=last_seen, said_goodbye=said_goodbye)

    patch(Coordinator, "start", late)


@mutant("latest-resolved-twice", "a symbolic start is pinned and committed before the first row is read")
def _latest_resolved_twice(patch: Patch) -> None:
    whole = Coordinator._commit  # noqa: SLF001
    waiting: dict[Head, Bill] = {}

    def lazy(self: Coordinator, bill: Bill, staged: Sequence[StagedFile]) -> Steps[None]:
        if bill.kind is BillKind.OPENING:
            waiting[bill.head] = self.bill = bill
            return
        opening = waiting.pop(bill.replaces, None) if bill.replaces else None
        if opening is not None:
            yield from whole(self, opening, ())
        yield from whole(self, bill, staged)

    def unchecked(self: Coordinator) -> Bill:
        return self._known()

    patch(Coordinator, "_commit", lazy)
    patch(Coordinator, "_read_base", unchecked)


@mutant("epoch-not-raised", "every deliberate change of position raises the epoch")
def _epoch_not_raised(patch: Patch) -> None:
    patch(next_bill, "next_epoch", lambda base: base.epoch)


@mutant("edit-in-memory", "an edit goes through the same ordered log as commits")
def _edit_in_memory(patch: Patch) -> None:
    def remembered(self: Coordinator, changes: Mapping[str, str | None], *, reason: str) -> Steps[Bill]:
        yield "edit.before"
        base = self._read_base()
        known = {name: at for name, at in changes.items() if name in base.positions.partitions}
        self.bill = replace(base, positions=move_positions(base.positions, known))
        return self.bill

    patch(Coordinator, "edit", remembered)


@mutant("edit-keeps-finished", "a partition that is moved back is read again")
def _edit_keeps_finished(patch: Patch) -> None:
    def half(positions: Positions, changes: Mapping[str, str | None]) -> Positions:
        moved = move_positions(positions, changes)
        old = positions.partitions
        kept = {
            name: replace(state, finished=name in old and (old[name].finished or state.finished))
            for name, state in moved.partitions.items()
        }
        return replace(moved, partitions=kept)

    patch(coordinator, "move_positions", half)


@mutant("totals-since-restart", "totals sit in the same commit as the rows they count")
def _totals_since_restart(patch: Patch) -> None:
    def forgetful(base: Bill, tally: Tally) -> Tally:
        return tally if base.kind is BillKind.TAKEOVER else base.totals + tally

    patch(next_bill, "next_totals", forgetful)


@mutant("error-rows-not-counted", "every row has exactly one fate and is counted")
def _error_rows_not_counted(patch: Patch) -> None:
    count = next_bill.tally_of

    def blind(reports: Sequence[Report], files: Sequence[StagedFile], change: StateChange | None = None) -> Tally:
        tally = count(reports, files, change)
        return replace(tally, rows=tally.rows - RowCounts(total=tally.rows.error, error=tally.rows.error))

    patch(next_bill, "tally_of", blind)


@mutant("empty-batch-not-committed", "a batch that moved positions but loaded no rows commits without files")
def _empty_batch_not_committed(patch: Patch) -> None:
    patch(coordinator, "has_moved", lambda base, bill: bill.tally.rows.loaded > 0)


@mutant("missing-report-is-empty", "a missing report is never read as an empty one")
def _missing_report_is_empty(patch: Patch) -> None:
    def lenient(plan: BatchPlan, reports: Sequence[Report]) -> tuple[Report, ...]:
        found = {report.split: report for report in reports}
        return tuple(
            found.get(s.number)
            or Report(split=s.number, partition=s.partition, start=s.start, end=s.start if s.end is None else s.end)
            for s in plan.splits
        )

    patch(coordinator, "check_reports", lenient)


@mutant("doubled-report-accepted", "exactly one report for every planned split")
def _doubled_report_accepted(patch: Patch) -> None:
    check = check_reports

    def generous(plan: BatchPlan, reports: Sequence[Report]) -> tuple[Report, ...]:
        merged: dict[int, Report] = {}
        for report in reports:
            first = merged.get(report.split)
            both = RowCounts(total=report.rows.loaded, loaded=report.rows.loaded)
            merged[report.split] = (
                replace(first, files=first.files + report.files, rows=first.rows + both) if first else report
            )
        return check(plan, list(merged.values()))

    patch(coordinator, "check_reports", generous)


@mutant("rollback-ignored", "a table that was rolled back stops the job")
def _rollback_ignored(patch: Patch) -> None:
    patch(MemoryTable, "is_behind", lambda self, job_id, at=-1: False)
    patch(heads, "check_not_rolled_back", lambda job, head, last_seen, above: None)


@mutant("kept-position-forgotten", "after a rollback the job goes on where the operator said")
def _kept_position_forgotten(patch: Patch) -> None:
    drafted = next_bill.draft_restart

    def back(job: Job, restored: Bill, newest: Bill, goes_on: Bill, highest: int, stamp: Stamp, *, reason: str) -> Bill:
        return drafted(job, restored, newest, restored, highest, stamp, reason=reason)

    patch(coordinator, "draft_restart", back)


@mutant("prune-removes-head", "no policy can ever remove a head")
def _prune_removes_head(patch: Patch) -> None:
    def greedy(self: MemoryBills, job_id: JobId, *, head: Head, keep_commits: int) -> int:
        for old in self.heads(job_id):
            if old.seq <= head.seq:
                self.forget(job_id, old)
        return head.seq

    patch(MemoryBills, "prune", greedy)


@mutant("bill-beside-the-commit", "what a restart needs is inside the commit, out of reach of other engines' clean-up")
def _bill_beside_the_commit(patch: Patch) -> None:
    patch(MemoryTable, "resume_copy", lambda self, job_id, head: None)


@mutant("copy-of-another-commit", "what a restart needs is that of the newest commit")
def _copy_of_another_commit(patch: Patch) -> None:
    def first(self: MemoryTable, job_id: JobId, head: Head) -> Bill | None:
        copies = [version.copies[job_id] for version in self.versions if job_id in version.copies]
        old = copies[0] if copies and head == self.read_head_unchecked(job_id) else None
        if old is None or old.head == head:
            return old
        return replace(
            old, seq=head.seq, token=head.token, kind=BillKind.TAKEOVER, replaces=old.head, continues=old.head
        )

    patch(MemoryTable, "resume_copy", first)


@mutant("own-commit-is-a-stranger", "a head of our own incarnation is ours")
def _own_commit_is_a_stranger(patch: Patch) -> None:
    def suspicious(self: Coordinator) -> Bill:
        known = self._known()
        head = read_head_since(self._world.table, self.job.job_id, known.head)
        if head == known.head:
            return known
        if head is None or head.seq < known.seq:
            raise rolled_back(self.job, head, known.seq)
        raise fenced(known, head)

    patch(Coordinator, "_read_base", suspicious)
    patch(settle, "unknown", lambda bill, why: StorageError(why, left="Not known.", todo="Try again."))
