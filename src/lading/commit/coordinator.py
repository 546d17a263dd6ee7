"""One incarnation of one job, and its seven steps.

1. plan: read the head from the table; from its positions and the limits of the job choose the splits. Nothing
   durable happens.
2. stage: one Spark job. Each task reads its split, maps the rows, writes data files under names no other attempt can
   have, and returns one report. Files of attempts that were not accepted are orphans.
3. check: there is exactly one report for every planned split; the error budget holds.
4. bill: write the bill, immutable, put-if-absent, beside the table.
5. commit: one commit of the table that adds the files and moves the head from exactly the head that was read in
   step 1 to this bill.
6. settle: the outcome is Landed, NotLanded or Unknown. After Unknown, read the table and look for the token; decide
   only then. Files are deleted only after a certain NotLanded. If the head moved without us, the incarnation is
   fenced: it stops the job and says why.
7. follow: update what is derived from bills, and tell listeners. May be repeated, and is caught up after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lading.commit.check import advance, check_budget_of, check_fields, check_reports, note_refused
from lading.commit.heads import read_head_since, read_start_head
from lading.commit.joins import newer_tables
from lading.commit.next_bill import (
    Stamp,
    draft_edit,
    draft_load,
    draft_opening,
    draft_refresh,
    draft_replay,
    draft_restart,
    draft_takeover,
    has_moved,
    rows_of,
)
from lading.commit.ports import CoordinatorPorts
from lading.commit.replays import SourceOrder, check_all_there, plan_of_replay, waiting_bills
from lading.commit.rollback import RollbackSight, check_accounts_for, epoch_above, rolled_back
from lading.commit.settle import commit_and_settle, fenced
from lading.commit.steps import Steps
from lading.commit.telling import Teller, has_due_state
from lading.commit.unchanged import check_unchanged
from lading.commit.watermark import advance_watermark, latest_time
from lading.errors import BudgetError, FencedError, HeadLostError, JobStateError, StageError
from lading.ids import Incarnation
from lading.model.batch import BatchPlan, Report, StagedFile
from lading.model.bill import Bill, Head
from lading.model.job import Job
from lading.model.notices import Listening
from lading.model.positions import Positions, move_positions, reset_event_times
from lading.model.state import StateChange, StateRef

MAX_RACES = 3
"""How often a start that was overtaken looks again."""


class Coordinator:
    """Commits for one job, in one incarnation. The only state is the bill it last knew to be the head."""

    def __init__(self, job: Job, world: CoordinatorPorts, incarnation: Incarnation) -> None:
        self.job = job
        self.incarnation = incarnation
        self.bill: Bill | None = None
        self.planned: BatchPlan | None = None
        """What the last batch was to read, for those who show it. Nothing is decided by it."""
        self._world = world
        self.teller = Teller(job.listening, world.listeners)
        self.repaired: list[str] = []
        """Commits that another writer took away and that were put back, in words, for those who write it down."""
        self._tried: Head | None = None
        """The bill that a batch of a job that joins was last begun from."""

    def start(
        self, *, last_seen: Head | None = None, said_goodbye: Head | None = None, created_at: Positions | None = None
    ) -> Steps[Bill]:
        """Open the job, or take it over. Nothing else may be called before this has returned.

        `last_seen` is the newest head the metadata store remembers: a table that is behind it was rolled back.
        `said_goodbye` is the head at which the last incarnation ended cleanly: if the table still has it, nobody is
        left to fence. Both are hints that may be lost. `created_at` are the positions of the moment of CREATE: a job
        that has no head yet begins there, whenever that is, and not where its start would lead by now.
        """
        yield "start.before"
        for left in range(MAX_RACES, -1, -1):
            try:
                yield from self._start_from(self._read_start_head(last_seen), said_goodbye, created_at)
                break
            except FencedError:
                # Somebody opened it at the same moment, perhaps without knowing that it lost the job: look again.
                if not left:
                    raise
        yield "start.after"
        return self._known()

    def _read_start_head(self, last_seen: Head | None) -> Head | None:
        if last_seen is not None:
            self._repair(last_seen)
        return read_start_head(self.job, self._world.table, self._world.bills, last_seen)

    def _start_from(self, head: Head | None, said_goodbye: Head | None, created_at: Positions | None) -> Steps[None]:
        world, planned_at = self._world, self._world.clock.now()
        if head is None:
            # Dies before the commit: there is no head, the job is not open, and the next start does this again, with
            # the same positions as long as the store has those of CREATE.
            # Dies after it: the start is pinned for ever, also when no row is ever read.
            positions = world.planner.open(self.job.start) if created_at is None else created_at
            yield from self._commit(draft_opening(self.job, positions, self._stamp(planned_at)), ())
            return
        self.bill = world.bills.read(self.job.job_id, head)
        if head == said_goodbye:
            yield from self._follow()
        else:
            # Dies before the commit: the predecessor is not fenced yet, and the next start does it.
            yield from self._commit(draft_takeover(self.job, self.bill, self._stamp(planned_at)), ())

    def run_batch(self) -> Steps[Bill | None]:
        """The seven steps once. None when there was nothing to read."""
        yield "plan.before"
        world = self._world
        planned_at = world.clock.now()
        base = self._read_base()
        found = world.planner.plan(base.positions, self.job.limits)
        latest_us = latest_time(self.job.watermark, planned_at)
        plan = self.planned = replace(found, latest_us=latest_us, seq=base.seq + 1, planned_at=planned_at)
        yield "plan.after"
        if not plan.splits and not plan.gaps and not self._is_due(base, plan, planned_at):
            self.teller.tell(base)
            return None
        if world.joins is not None:
            if plan.splits and (newer := newer_tables(world.joins, base, self._tried)) is not None:
                # Dies after it: the head names the snapshots that the batch would have joined, and the next one does.
                base = draft_refresh(self.job, base, newer, self._stamp(planned_at))
                yield from self._commit(base, ())
            plan, self._tried = replace(plan, joined=base.joined, seq=base.seq + 1), base.head
        yield "stage.before"
        # Dies while staging: files may exist that nobody names; they are orphans. The position is unchanged.
        reports = world.stager.stage(plan) if plan.splits else ()
        yield "stage.after"
        yield "check.before"
        checked = self._checked(plan, reports)
        yield "check.after"
        change = None
        if world.merger is not None:
            yield "merge.before"
            # Dies while merging: spool, state and data files exist that nobody names; they are orphans. Rows come from
            # the spool of accepted reports: a task that runs twice never sees another range of the source.
            change = world.merger.merge(plan, checked, base.state)
            self._check_merged(plan, checked, change)
            yield "merge.after"
        bill = self._load_bill(base, plan, checked, change, planned_at)
        if not has_moved(base, bill):
            world.table.discard(bill.files)
            return None
        yield from self._commit(bill, bill.files)
        return bill

    def plan_facts(self) -> dict[str, Any]:
        """What is kept of a batch before it is staged: how full it is, and whether it can be made smaller."""
        return {} if self.planned is None else self.planned.facts(self.job.limits)

    def edit(
        self, changes: Mapping[str, str | None], *, reason: str, seen: Head | None = None, resets_state: bool = False
    ) -> Steps[Bill]:
        """Move positions by an operator's word: a commit without files that raises the epoch.

        A batch that was planned before it cannot land after it, because its compare-and-set fails. A batch that landed
        after the operator looked, at `seen`, makes it fail with JobChangedError: what was looked at is no longer true.
        """
        yield "edit.before"
        planned_at = self._world.clock.now()
        base = self._read_unchanged(seen)
        known = base.positions
        if changes.keys() - known.partitions.keys():
            known = self._world.planner.take_in(known)
        moved = known.partitions if resets_state else [name for name, at in changes.items() if at is not None]
        positions = reset_event_times(move_positions(known, changes), moved)
        bill = draft_edit(self.job, base, positions, self._stamp(planned_at), reason=reason)
        bill = replace(bill, state=None) if resets_state else bill
        yield from self._commit(bill, ())
        yield "edit.after"
        return bill

    def reopen(self, *, reason: str, seen: Head | None = None) -> Steps[Bill]:
        """Start again at the job's start by an operator's word: another stream, another topic. Raises the epoch.

        Nothing of the old positions and of the state is left; rows that were loaded stay loaded, and the totals go on.
        For `seen`, see `edit`.
        """
        yield "edit.before"
        planned_at = self._world.clock.now()
        base = self._read_unchanged(seen)
        positions = self._world.planner.open(self.job.start)
        bill = replace(draft_edit(self.job, base, positions, self._stamp(planned_at), reason=reason), state=None)
        yield from self._commit(bill, ())
        yield "edit.after"
        return bill

    def restore(self, positions: Positions, *, reason: str, seen: Head, state: StateRef | None = None) -> Steps[Bill]:
        """Put back positions and state of an earlier commit, by an operator's word. Raises the epoch.

        The caller has looked at the bills up to `seen`: nothing was loaded since that edit. What landed after
        `seen` nobody has looked at, so it makes this fail with JobChangedError.
        """
        yield "edit.before"
        planned_at = self._world.clock.now()
        base = self._read_unchanged(seen)
        bill = replace(draft_edit(self.job, base, positions, self._stamp(planned_at), reason=reason), state=state)
        yield from self._commit(bill, ())
        yield "edit.after"
        return bill

    def replay(self, order: SourceOrder, *, reason: str, after: int | None = None) -> Steps[Bill | None]:
        """Take up again what is in quarantine: a commit without ranges, on the head that was read. None when none of
        those rows can be loaded now; nothing is changed then.

        The stager of this coordinator reads the files of bad rows. Dies before the commit: files exist that nobody
        names. Dies after it: the bill says that those rows were taken up, and no later replay takes them.
        """
        yield "plan.before"
        planned_at = self._world.clock.now()
        base = self._read_base()
        waiting = waiting_bills(self.job, self._world.bills, base, order, after=after)
        plan = replace(plan_of_replay(base, waiting), planned_at=planned_at)
        yield "plan.after"
        if not plan.splits:
            return None
        yield "stage.before"
        reports = self._world.stager.stage(plan)
        yield "stage.after"
        try:
            ordered = check_all_there(self.job, waiting, check_reports(plan, reports))
        except StageError:
            self._world.table.discard([file for report in reports for file in report.files])
            raise
        bill = draft_replay(self.job, base, ordered, self._stamp(planned_at), reason=reason)
        if bill.tally.rows.error == bill.tally.rows.total:
            self._world.table.discard(bill.files)
            return None
        yield from self._commit(bill, bill.files)
        return bill

    def accept_rollback(self, sight: RollbackSight, *, reason: str) -> Steps[Bill]:
        """Go on from a table that was rolled back on purpose, by an operator's word.

        The word holds for the table the operator saw: if it has moved since, in any direction, nothing lands. The
        seq and the epoch go on above every bill that was ever written, so that none is used twice.
        """
        yield "edit.before"
        bills, job_id = self._world.bills, self.job.job_id
        planned_at = self._world.clock.now()
        newest = bills.read(job_id, sight.head) if sight.head is not None else None
        restored = bills.read(job_id, sight.restored) if sight.restored is not None else None
        goes_on = bills.read(job_id, sight.goes_on)
        if sight.restored is not None:
            check_accounts_for(self.job, bills, goes_on, sight.restored)
        highest = max(head.seq for head in (*bills.heads(job_id), sight.head, sight.goes_on) if head is not None)
        stamp = replace(self._stamp(planned_at), table_version=sight.version)
        bill = draft_restart(self.job, restored, newest, goes_on, highest, stamp, reason=reason)
        bill = replace(bill, epoch=max(bill.epoch, epoch_above(bills, job_id, highest)))
        yield from self._commit(bill, ())
        yield "edit.after"
        return bill

    def _checked(self, plan: BatchPlan, reports: Sequence[Report]) -> tuple[Report, ...]:
        try:
            ordered = check_reports(plan, reports)
            check_fields(ordered)
            first = next((report.first_error for report in ordered if report.first_error), "")
            check_budget_of(self.job.budget, plan, rows_of(ordered, None), first)
            advance(plan, ordered)
        except (StageError, BudgetError) as error:
            note_refused(error, self._known().head, reports)
            # No commit was attempted, so these files can never become part of the table.
            self._world.table.discard([file for report in reports for file in report.files])
            raise
        return ordered

    def _check_merged(self, plan: BatchPlan, reports: Sequence[Report], change: StateChange) -> None:
        try:
            check_budget_of(self.job.budget, plan, rows_of(reports, change), change.first_error)
        except BudgetError as error:
            note_refused(error, self._known().head, reports, change.quarantine)
            self._world.table.discard(change.files)
            raise

    def _load_bill(
        self,
        base: Bill,
        plan: BatchPlan,
        reports: Sequence[Report],
        change: StateChange | None,
        planned_at: datetime,
    ) -> Bill:
        positions = advance(plan, reports)
        positions = advance_watermark(self.job.watermark, base.positions, positions, reports, planned_at)
        stamp = self._stamp(planned_at)

        def listening(files: Sequence[StagedFile]) -> Listening | None:
            is_written = change is not None or not has_due_state(base)
            return self.teller.listening(base, files, stamp.billed_at, positions, is_written=is_written)

        return draft_load(self.job, base, plan, reports, positions, stamp, change, listening)

    def would_commit(self, plan: BatchPlan) -> bool:
        """Whether a batch with this plan would commit something, also when there is nothing to read."""
        return bool(plan.splits or plan.gaps) or self._is_due(self._known(), plan, self._world.clock.now())

    def _is_due(self, base: Bill, plan: BatchPlan, now: datetime) -> bool:
        """Whether a commit without rows is due: for what is kept, for listeners, or because partitions became idle and
        let the watermark go."""
        after = advance_watermark(self.job.watermark, base.positions, plan.positions, (), now)
        is_moved = after.watermark_us != base.positions.watermark_us
        return is_moved or has_due_state(base) or self.teller.is_news(base, now)

    def _commit(self, bill: Bill, staged: Sequence[StagedFile]) -> Steps[None]:
        yield "bill.before"
        # Dies after the bill was put: it names a commit that never happened. No head names it, so nobody reads it.
        self._world.bills.put(bill)
        yield "bill.after"
        yield from commit_and_settle(self._world.table, bill.replaces, staged, bill, self._is_own)
        # Dies from here on: the commit is part of the table; the next start finds it as the head and catches up.
        self.bill = bill
        yield "settle.after"
        yield from self._follow()

    def _is_own(self, head: Head) -> bool:
        return self._world.bills.read(self.job.job_id, head).incarnation == self.incarnation

    def _read_base(self) -> Bill:
        known = self._known()
        self._repair(known.head)
        head = read_head_since(self._world.table, self.job.job_id, known.head)
        if head == known.head:
            return known
        if head is None or head.seq < known.seq:
            raise rolled_back(self.job, head, known.seq)
        newest = self._world.bills.read(self.job.job_id, head)
        if newest.incarnation != self.incarnation:
            raise fenced(known, head)
        # A commit of this very incarnation, whose answer was lost: nobody else is there.
        self.bill = newest
        return newest

    def _repair(self, seen: Head) -> None:
        """Dies in here: a commit is back, or the next start puts it back."""
        if said := self._world.table.repair(self.job.job_id, seen):
            self.repaired.append(said)

    def _read_unchanged(self, seen: Head | None) -> Bill:
        base = self._read_base()
        if seen is not None:
            check_unchanged(self.job, self._world.bills, base, seen)
        return base

    def _known(self) -> Bill:
        if self.bill is None:
            msg = f"Job {self.job.name} ({self.job.job_id}) has no head in its table"
            raise JobStateError(msg, left="Nothing was read.", todo="Start the job first.")
        return self.bill

    def _stamp(self, planned_at: datetime) -> Stamp:
        return Stamp(
            token=self._world.new_token(),
            incarnation=self.incarnation,
            planned_at=planned_at,
            billed_at=self._world.clock.now(),
            table_version=self._world.table.version(),
        )

    def _follow(self) -> Steps[None]:
        """Step 7. Usually one bill; after a crash also those that it kept from the followers, oldest first."""
        yield "follow.before"
        for bill in self._missed_bills():
            for follower in self._world.followers:
                seen = follower.followed_seq(bill.job_id)
                if seen is None or seen < bill.seq:
                    follower.follow(bill)
        self.teller.tell(self._known())
        yield "follow.after"

    def _missed_bills(self) -> list[Bill]:
        missed = [self._known()]
        seen = [follower.followed_seq(self.job.job_id) for follower in self._world.followers]
        oldest = min((-1 if seq is None else seq for seq in seen), default=missed[0].seq)
        while (old := missed[-1].replaces) is not None and old.seq > oldest:
            try:
                missed.append(self._world.bills.read(self.job.job_id, old))
            except HeadLostError:
                break  # Bills older than the retention are gone; the totals of the oldest one left stand for them.
        return missed[::-1]
