"""Mutants of event time and of what jobs keep between batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lading.commit import coordinator
from lading.commit.coordinator import Coordinator
from lading.commit.next_bill import draft_restart
from lading.commit.steps import Steps
from lading.commit.telling import Teller
from lading.commit.watermark import advance_watermark
from lading.model.batch import BatchPlan, Report, Split, StagedFile
from lading.model.bill import Bill
from lading.model.job import Job, WatermarkRule
from lading.model.positions import Positions
from lading.model.state import StateChange, StateRef
from lading.testing.merger import Kept, ScriptedMerger, bucket_of
from lading.testing.mutants import Patch, mutant
from lading.testing.source import offset_of
from lading.testing.stager import ScriptedStager
from lading.testing.window_counter import Window, WindowCounter

# ruff: noqa: SLF001 - a mutant replaces the inside of what it breaks


@mutant("watermark-falls", "the watermark never falls but by the word of an operator")
def _watermark_falls(patch: Patch) -> None:
    def forgetful(
        rule: WatermarkRule | None, before: Positions, after: Positions, reports: Sequence[Report], now: datetime
    ) -> Positions:
        found = advance_watermark(rule, replace(before, watermark_us=None), after, reports, now)
        return found if found.watermark_us is not None else replace(found, watermark_us=before.watermark_us)

    patch(coordinator, "advance_watermark", forgetful)


@mutant("watermark-of-the-batch-itself", "a batch judges its rows by the watermark of the bill before")
def _watermark_of_the_batch_itself(patch: Patch) -> None:
    def hasty(self: ScriptedStager, plan: BatchPlan) -> int | None:
        known = plan.positions.watermark_us
        if known is None:
            return None
        rows = [row for split in plan.splits for row in self._source.shards[split.partition].rows[_at(split) :][:8]]
        return max((row.event for row in rows), default=known)

    patch(ScriptedStager, "_watermark_of", hasty)


@mutant("late-in-two-fates", "a late row has one fate")
def _late_in_two_fates(patch: Patch) -> None:
    attempt = ScriptedStager._attempt

    def doubling(self: ScriptedStager, split: Split) -> Report:
        report = attempt(self, split)
        late = report.rows.late
        return replace(
            report, rows=replace(report.rows, total=report.rows.total + late, error=report.rows.error + late)
        )

    patch(ScriptedStager, "_attempt", doubling)


@mutant("idle-holds-the-others", "a partition that was idle for long enough does not hold the watermark back")
def _idle_holds_the_others(patch: Patch) -> None:
    def patient(
        rule: WatermarkRule | None, before: Positions, after: Positions, reports: Sequence[Report], now: datetime
    ) -> Positions:
        return advance_watermark(rule and replace(rule, idle_s=None), before, after, reports, now)

    patch(coordinator, "advance_watermark", patient)


def _at(split: Split) -> int:
    return offset_of(split.start)


@mutant("state-of-a-failed-attempt", "a batch reads the state that the head names")
def _state_of_a_failed_attempt(patch: Patch) -> None:
    merge = ScriptedMerger.merge

    def remembering(
        self: ScriptedMerger, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None
    ) -> StateChange:
        change = merge(self, plan, reports, self.__dict__.get("last", state))
        self.__dict__["last"] = change.state
        return change

    patch(ScriptedMerger, "merge", remembering)


@mutant("state-forgotten-too-early", "what a row that is not late can match is kept")
def _state_forgotten_too_early(patch: Patch) -> None:
    def hasty(self: ScriptedMerger, known: list[Kept], watermark: int | None) -> list[Kept]:
        return known if watermark is None else [kept for kept in known if kept[1] >= watermark]

    patch(ScriptedMerger, "_live", hasty)


@mutant("duplicate-after-a-restart", "a restart reads the state that the head names")
def _duplicate_after_a_restart(patch: Patch) -> None:
    known = ScriptedMerger._known

    def newborn(self: ScriptedMerger, state: StateRef | None) -> list[Kept]:
        is_first, self.__dict__["has_read"] = not self.__dict__.get("has_read"), True
        return [] if is_first else known(self, state)

    patch(ScriptedMerger, "_known", newborn)


@mutant("bucket-lost-at-a-rescale", "every bucket is somebody's, however many tasks there are now and were before")
def _bucket_lost_at_a_rescale(patch: Patch) -> None:
    known = ScriptedMerger._known

    def remembering(self: ScriptedMerger, state: StateRef | None) -> list[Kept]:
        tasks = self.tasks()
        before = self.__dict__.setdefault("before", tasks)
        found = known(self, state)
        self.__dict__["before"] = tasks
        # The task that has a bucket now looks for it where it was put when there were as many tasks as now.
        return [kept for kept in found if bucket_of(kept[0]) % tasks == bucket_of(kept[0]) % before % tasks]

    patch(ScriptedMerger, "_known", remembering)


@mutant("cut-copy-trusted", "a copy of a state file counts only when it is whole")
def _cut_copy_trusted(patch: Patch) -> None:
    patch(ScriptedMerger, "_is_whole", lambda self, copy, there: True)


@mutant("state-of-another-commit", "rows and the state that accounts for them are committed together")
def _state_of_another_commit(patch: Patch) -> None:
    merge = ScriptedMerger.merge

    def behind(self: ScriptedMerger, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        change = merge(self, plan, reports, state)
        return StateChange(state=state or change.state, files=change.files, duplicates=change.duplicates)

    patch(ScriptedMerger, "merge", behind)


@mutant("window-written-twice", "a window that was written is not kept")
def _window_written_twice(patch: Patch) -> None:
    patch(WindowCounter, "_live", lambda self, known, watermark: known)


@mutant("window-closed-too-early", "a window closes when the watermark has reached its end")
def _window_closed_too_early(patch: Patch) -> None:
    def hasty(self: WindowCounter, window: Window, watermark: int | None) -> bool:
        return watermark is not None and window[1] < watermark

    patch(WindowCounter, "_is_closed", hasty)


@mutant("window-closed-by-its-own-batch", "a window is written from what was committed before")
def _window_closed_by_its_own_batch(patch: Patch) -> None:
    merge = WindowCounter.merge

    def eager(self: WindowCounter, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        times = [report.event_us for report in reports if report.event_us is not None]
        reached = max((*times, plan.positions.watermark_us or 0))
        ahead = replace(plan, positions=replace(plan.positions, watermark_us=reached))
        return merge(self, ahead, reports, state)

    patch(WindowCounter, "merge", eager)


@mutant("results-without-their-state", "results and the state without them are committed together")
def _results_without_their_state(patch: Patch) -> None:
    merge = WindowCounter.merge

    def behind(self: WindowCounter, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        change = merge(self, plan, reports, state)
        return replace(change, state=state) if change.files else change

    patch(WindowCounter, "merge", behind)


@mutant(
    "rollback-with-another-state", "after a rollback a job goes on with the state of the position that it goes on from"
)
def _rollback_with_another_state(patch: Patch) -> None:
    def mixed(job: Job, restored: Bill | None, newest: Bill | None, *given: Any, **more: Any) -> Bill:
        return replace(draft_restart(job, restored, newest, *given, **more), state=restored.state if restored else None)

    patch(coordinator, "draft_restart", mixed)


@mutant("told-before-the-commit", "listeners are told after the commit")
def _told_before_the_commit(patch: Patch) -> None:
    commit = Coordinator._commit

    def eager(self: Coordinator, bill: Bill, staged: Sequence[StagedFile]) -> Steps[None]:
        self.teller.tell(bill)
        yield from commit(self, bill, staged)

    patch(Coordinator, "_commit", eager)


@mutant("notice-forgotten-by-a-restart", "what is pending in the bill is told after a restart")
def _notice_forgotten_by_a_restart(patch: Patch) -> None:
    tell = Teller.tell

    def forgetful(self: Teller, bill: Bill) -> None:
        if not self._told:
            self._told = frozenset(each.key for each in self._pending(bill))
        tell(self, bill)

    patch(Teller, "tell", forgetful)
