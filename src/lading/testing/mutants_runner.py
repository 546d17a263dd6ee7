"""Mutants of the runner and of the transitions that it executes: pace, halting, goodbyes, tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lading.commit import coordinator
from lading.commit.coordinator import Coordinator
from lading.commit.steps import Steps
from lading.jobs import batches, pace, transition
from lading.jobs.actions import Action, Halt, LetGo, Rest, Run
from lading.jobs.batches import Change
from lading.jobs.events import Fenced, RolledBack
from lading.jobs.record import JobRecord, JobState
from lading.model.batch import Limits, Split
from lading.model.positions import PartitionState, Positions, move_positions
from lading.service.runtime.job_loop import JobLoop
from lading.testing.mutants import Patch, mutant
from lading.testing.simulated_runner import SimulatedJob
from lading.testing.source import ScriptedSource


@mutant("fenced-job-goes-on", "a job that was fenced waits for a person")
def _fenced_job_goes_on(patch: Patch) -> None:
    def stubborn(record: JobRecord, event: Fenced | RolledBack) -> Change:
        ended, actions = batches.end_failed_task(record, event.message, event.at)
        return ended, (*actions, LetGo(), Rest())

    patch(transition, "_halt_for_good", stubborn)


@mutant("halt-forgotten", "a job that is halted stops and says goodbye")
def _halt_forgotten(patch: Patch) -> None:
    whole = JobLoop.execute

    def deaf(self: JobLoop[SimulatedJob], actions: Iterable[Action]) -> Steps[None]:
        yield from whole(self, [action for action in actions if not isinstance(action, Halt)])

    patch(JobLoop, "execute", deaf)


@mutant("paused-job-runs", "a job that is paused runs no batch")
def _paused_job_runs(patch: Patch) -> None:
    patch(transition, "_begin_turn", lambda record: (record, (Run(scale=record.batch_scale),)))
    begin = batches.on_batch_started
    patch(
        batches,
        "on_batch_started",
        lambda record, event: begin(replace(record, state=JobState.RUNNING, reason=None), event),
    )


@mutant("goodbye-lost", "a process that ended cleanly is not fenced by the next start")
def _goodbye_lost(patch: Patch) -> None:
    def silent(self: JobLoop[SimulatedJob]) -> Steps[None]:
        self.let_go()
        yield "goodbye.after"

    patch(JobLoop, "goodbye", silent)


@mutant("no-back-off", "an attempt that failed is followed by a wait that grows")
def _no_back_off(patch: Patch) -> None:
    patch(batches, "retry_delay_s", lambda failures: 0.0)


@mutant("never-halved", "a batch that died twice is planned half as large")
def _never_halved(patch: Patch) -> None:
    patch(pace, "after_death", lambda old: replace(old, deaths=old.deaths + 1))


@mutant("deadly-batch-not-cut", "a batch that killed its worker is planned half as large, down to one record")
def _deadly_batch_not_cut(patch: Patch) -> None:
    patch(pace, "after_worker_death", lambda old: replace(old, deaths=old.deaths + 1))


@mutant("first-record-condemned", "only a record that was alone in its batch is called poison")
def _first_record_condemned(patch: Patch) -> None:
    whole = ScriptedSource.plan

    def hasty(self: ScriptedSource, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        return tuple(replace(split, least="the first", is_record=True) for split in whole(self, ready, limits))

    patch(ScriptedSource, "plan", hasty)


@mutant("poison-read-again", "a record that was called poison is not read again")
def _poison_read_again(patch: Patch) -> None:
    patch(pace, "condemned", lambda old, place, reason: replace(old, suspects=()))


@mutant("scale-not-executed", "a job is opened again when its batches are to be smaller")
def _scale_not_executed(patch: Patch) -> None:
    whole = JobLoop.execute

    def same(self: JobLoop[SimulatedJob], actions: Iterable[Action]) -> Steps[None]:
        kept = [replace(action, scale=self._scale) if isinstance(action, Run) else action for action in actions]
        yield from whole(self, kept)

    patch(JobLoop, "execute", same)


@mutant("attempts-begin-again", "opening a job for its next attempt keeps the count of attempts")
def _attempts_begin_again(patch: Patch) -> None:
    opened = batches.on_opened
    patch(batches, "on_opened", lambda record, event: opened(record, replace(event, is_retry=False)))


@mutant("views-followed-twice", "views follow every bill once")
def _views_followed_twice(patch: Patch) -> None:
    def again(self: Coordinator) -> Steps[None]:
        yield "follow.before"
        for bill in self._missed_bills():
            for follower in self._world.followers:
                follower.follow(bill)
        yield "follow.after"

    patch(Coordinator, "_follow", again)


@mutant("commit-not-in-record", "a commit that landed is in the record of the job")
def _commit_not_in_record(patch: Patch) -> None:
    patch(batches, "_take_in", lambda record, event: record)


@mutant("own-head-fences-a-start", "a start is not fenced by a commit of its own incarnation")
def _own_head_fences_a_start(patch: Patch) -> None:
    patch(Coordinator, "_is_own", lambda self, head: False)
    patch(coordinator, "MAX_RACES", 0)  # A start that looks again finds its own commit.


@mutant("given-up-forgotten", "a partition that was given up stays known for ever")
def _given_up_forgotten(patch: Patch) -> None:
    def forgetful(positions: Positions, changes: Mapping[str, str | None]) -> Positions:
        moved = move_positions(positions, changes)
        twice = {name for name, at in changes.items() if at is None and positions.partitions[name].given_up}
        kept = {
            name: replace(state, given_up=state.given_up and name not in twice)
            for name, state in moved.partitions.items()
        }
        return replace(moved, partitions=kept)

    patch(coordinator, "move_positions", forgetful)
