"""Mutants of planning and reading: positions, partitions, attempts, gaps."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lading.commit import check
from lading.errors import ListingError
from lading.model import positions as positions_module
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.positions import Listing, PartitionState, Positions, merge_listing
from lading.plan import planner
from lading.plan.planner import Planner
from lading.testing.mutants import Patch, mutant
from lading.testing.source import ScriptedSource
from lading.testing.stager import Reading, ScriptedStager


@mutant("position-counts-fetched", "a position counts rows handed to the writer, never rows fetched")
def _position_counts_fetched(patch: Patch) -> None:
    def eager(self: ScriptedStager, start: int, reading: Reading) -> int:
        return start + reading.fetched

    patch(ScriptedStager, "_end", eager)


@mutant("failed-attempt-committed", "output of a failed attempt is never committed together with its replacement")
def _failed_attempt_committed(patch: Patch) -> None:
    def hoarding(self: ScriptedStager, reports: list[Report], report: Report, *, accepted: bool) -> list[Report]:
        failed = [old for old in reports if old.split == report.split]
        others = [old for old in reports if old.split != report.split]
        for old in failed:
            extra = replace(old.rows, unselected=0, error=0, total=old.rows.loaded)
            report = replace(report, files=old.files + report.files, rows=report.rows + extra)
        return [*others, report]

    patch(ScriptedStager, "_collected", hoarding)


@mutant("file-names-reused", "file names are unique per attempt")
def _file_names_reused(patch: Patch) -> None:
    def plain(self: ScriptedStager) -> str:
        self._attempts += 1  # a mutant replaces the inside of what it breaks
        return f"data/{self._attempts:06d}.rows"

    patch(ScriptedStager, "_file_name", plain)


@mutant("child-before-parent", "a partition is read only after its parents are finished and that is committed")
def _child_before_parent(patch: Patch) -> None:
    def impatient(base: Positions, merged: Positions) -> dict[str, PartitionState]:
        return {name: state for name, state in merged.partitions.items() if not state.finished}

    patch(planner, "ready_partitions", impatient)


@mutant("finished-parent-forgotten", "a finished partition is not added again while the source still lists it")
def _finished_parent_forgotten(patch: Patch) -> None:
    def tidy(positions: Positions, listing: Listing, now: datetime) -> Positions:
        unfinished = {name: state for name, state in positions.partitions.items() if not state.finished}
        return merge_listing(replace(positions, partitions=unfinished), listing, now)

    patch(planner, "merge_listing", tidy)


@mutant("finished-flag-lost", "that a partition is finished is stored as its own fact")
def _finished_flag_lost(patch: Patch) -> None:
    moved = check._moved  # noqa: SLF001

    def forgetful(state: PartitionState, report: Report) -> PartitionState:
        return replace(moved(state, report), finished=False)

    patch(check, "_moved", forgetful)


@mutant("new-partition-at-latest", "a partition found after the start is read from its beginning")
def _new_partition_at_latest(patch: Patch) -> None:
    whole = Planner.plan

    def hasty(self: Planner, base: Positions, limits: Limits) -> BatchPlan:
        plan = whole(self, base, limits)
        latest = self._source.open("LATEST").partitions
        new = {n: replace(s, at=latest[n].at) for n, s in plan.positions.partitions.items() if n not in base.partitions}
        kept = [split for split in plan.splits if split.partition not in new]
        splits = tuple(replace(split, number=number) for number, split in enumerate(kept))
        positions = replace(plan.positions, partitions={**plan.positions.partitions, **new})
        return replace(plan, positions=positions, splits=splits)

    patch(Planner, "plan", hasty)


@mutant("left-out-is-idle", "a partition that has rows and is left out of a batch is not idle")
def _left_out_is_idle(patch: Patch) -> None:
    patch(Planner, "_with_waiting", lambda self, positions, waiting: positions)


@mutant("read-to-its-end-is-active", "a partition that was read to its end becomes idle, also when rows come later")
def _read_to_its_end_is_active(patch: Patch) -> None:
    whole = Planner._with_waiting  # noqa: SLF001

    def patient(self: Planner, positions: Positions, waiting: set[str]) -> Positions:
        there = {name for name, state in positions.partitions.items() if not state.finished}
        return whole(self, positions, waiting | there)

    patch(Planner, "_with_waiting", patient)


@mutant("gap-not-written", "rows that the source no longer has are written down when the user chose to go on")
def _gap_not_written(patch: Patch) -> None:
    whole = Planner.plan

    def silent(self: Planner, base: Positions, limits: Limits) -> BatchPlan:
        return replace(whole(self, base, limits), gaps=())

    patch(Planner, "plan", silent)


@mutant("trimmed-read-as-empty", "a trimmed position stops the job; it is never an empty answer")
def _trimmed_read_as_empty(patch: Patch) -> None:
    def unaware(self: ScriptedSource, ready: dict[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        horizons = {name: shard.horizon for name, shard in self.shards.items()}
        for shard in self.shards.values():
            shard.horizon = 0
        try:
            return whole(self, ready, limits)
        finally:
            for name, horizon in horizons.items():
                self.shards[name].horizon = horizon

    whole = ScriptedSource.plan
    patch(ScriptedSource, "plan", unaware)
    patch(ScriptedStager, "_first_row", lambda self, shard, start: max(start, shard.horizon))


@mutant("listing-error-is-empty", "an error is never an empty answer")
def _listing_error_is_empty(patch: Patch) -> None:
    whole = ScriptedSource.list_partitions

    def calm(self: ScriptedSource) -> Listing:
        try:
            return whole(self)
        except ListingError:
            return Listing(incarnation=self.incarnation)

    patch(ScriptedSource, "list_partitions", calm)


@mutant("old-listing-believed", "a partition that one listing lacks is asked for again before it is given up")
def _old_listing_believed(patch: Patch) -> None:
    patch(planner, "CONFIRM_AFTER_S", ())


@mutant("finished-forgotten-at-once", "a finished partition is forgotten only when listings have lacked it for long")
def _finished_forgotten_at_once(patch: Patch) -> None:
    patch(positions_module, "FORGET_AFTER", timedelta(0))
    patch(planner, "CONFIRM_AFTER_S", ())
