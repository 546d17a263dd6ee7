"""Mutants of replays: what was taken up, what comes again, what is still bad."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lading.commit import coordinator, next_bill, replays
from lading.model.batch import BatchPlan
from lading.model.bill import Bill
from lading.service.runtime import bad_commits
from lading.service.runtime.errors_copy import OpenErrors
from lading.testing.mutants import Patch, mutant


@mutant("replay-forgotten", "what was taken up from quarantine is taken up once")
def _replay_forgotten(patch: Patch) -> None:
    kept = next_bill._kept_of  # noqa: SLF001  # a mutant replaces the inside of what it breaks

    def forgetful(base: Bill | None) -> dict[str, object]:
        return {name: value for name, value in kept(base).items() if name != "replayed_through"}

    patch(next_bill, "_kept_of", forgetful)


@mutant("replay-of-what-comes-again", "rows that the source brings once more are not taken up")
def _replay_of_what_comes_again(patch: Patch) -> None:
    patch(replays, "_check_comes_once", lambda job, bill, later, order: None)


@mutant("replay-drops-bad-rows", "rows that are bad once more wait on")
def _replay_drops_bad_rows(patch: Patch) -> None:
    draft = next_bill.draft_replay

    def careless(*args: Any, **options: Any) -> Bill:
        return replace(draft(*args, **options), quarantine=())

    patch(coordinator, "draft_replay", careless)


@mutant("replay-outlives-a-rollback", "rows that a rollback took away wait again")
def _replay_outlives_a_rollback(patch: Patch) -> None:
    draft = next_bill.draft_restart

    def stubborn(job: Any, restored: Bill | None, newest: Bill | None, *args: Any, **options: Any) -> Bill:
        bill = draft(job, restored, newest, *args, **options)
        return bill if newest is None else replace(bill, replayed_through=newest.replayed_through)

    patch(coordinator, "draft_restart", stubborn)


@mutant("replay-counted-as-new", "a row that is taken up was counted before")
def _replay_counted_as_new(patch: Patch) -> None:
    patch(Bill, "added", property(lambda self: self.tally))


@mutant("errors-replay-overlooked", "bad rows are found where a replay made their number smaller")
def _errors_replay_overlooked(patch: Patch) -> None:
    patch(bad_commits, "_counting", lambda bill: str(bill.epoch))


@mutant("errors-rollback-overlooked", "bad rows are found where a rollback made their number smaller")
def _errors_rollback_overlooked(patch: Patch) -> None:
    patch(bad_commits, "_counting", lambda bill: str(bill.replayed_through))


@mutant("errors-position-behind", "bad rows and how far they were copied are one commit")
def _errors_position_behind(patch: Patch) -> None:
    whole = OpenErrors.plan

    def sloppy(self: OpenErrors, *args: Any) -> BatchPlan:
        plan = whole(self, *args)
        splits = [replace(each, end=str(max(int(each.start), int(each.end or 0) - 1))) for each in plan.splits]
        return replace(plan, splits=tuple(splits))

    patch(OpenErrors, "plan", sloppy)
