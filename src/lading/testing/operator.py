"""What an operator does with a job that waits for one, in the steps in which the service does it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING

from lading.commit.rollback import RollbackSight, newest_proved
from lading.commit.steps import Steps
from lading.errors import ConfigError, HeadLostError, JobStateError, LadingError, TrimmedError, UnknownOutcomeError
from lading.jobs.events import Altered, Event, PausedByUser, Resumed, RollbackAccepted, Tick
from lading.jobs.pace import MOST_PASSED
from lading.jobs.record import JobRecord, JobState
from lading.model.bill import Bill, Head
from lading.service.runtime.interrupted import BEGUN_PREFIX, last_change
from lading.service.runtime.job_loop import save_event
from lading.service.runtime.starting import created_positions
from lading.testing.simulated_runner import Runner, WatchedStager

if TYPE_CHECKING:
    from lading.testing.runner_world import RunnerWorld

Work = Generator[str, None, None]


def attend(world: RunnerWorld, runner: Runner, record: JobRecord) -> Work:
    """A PAUSED job goes on: by itself when that is due, or by the word of somebody who has looked why it stopped."""
    if record.pace.passed >= MOST_PASSED:
        # It goes on trying, and asks for somebody who looks at the machines: here all is well, so it is the records.
        yield from resume(world, runner)
        return
    if record.reason is not None and not record.reason.needs_attention:
        next_at = record.auto_resume.next_at
        if next_at is not None:
            world.clock.sleep(max(0.0, (next_at - world.clock.now()).total_seconds()))
        # Somebody who reads why it stops sees that an ALTER was cut off, and finishes it.
        yield from _finish_begun(world, runner)
        yield from _apply(world, runner, Tick(at=world.clock.now()))
        return
    cause = world.cause
    if world.table.is_behind(world.job_id) or _is_astray(world):
        yield from accept_rollback(world, runner)
    elif isinstance(cause, TrimmedError):
        with suppress(ConfigError):  # It was never taken in and is gone now: RESUME goes on without it.
            yield from move(world, runner, {cause.facts["partition"]: cause.facts["horizon"]})
    elif isinstance(cause, JobStateError):
        yield from _alter_again(world, runner)
    yield from resume(world, runner)


def edit(world: RunnerWorld, runner: Runner) -> Work:
    """An operator pauses the job, moves one partition to a random place, and resumes it."""
    head = world.table.read_head_unchecked(world.job_id)
    if head is None or world.record.is_final:
        return
    if world.record.state is not JobState.PAUSED:
        yield from _apply(world, runner, PausedByUser(user="ann", at=world.clock.now()))
    partitions = world.bills.read_ever(world.job_id, head).positions.partitions
    if partitions and not world.table.is_behind(world.job_id):
        name = world.rng.choice(sorted(partitions))
        shard = world.source.shards[name]
        yield from move(world, runner, {name: str(world.rng.randint(shard.horizon, len(shard.rows)))})
    yield from resume(world, runner)


def move(world: RunnerWorld, runner: Runner, changes: dict[str, str | None]) -> Work:
    """ALTER: keep what was begun, commit the move, write it into the record."""
    yield from _finish_begun(world, runner)
    reason, key = f"edit-{world.rng.getrandbits(32):08x}", BEGUN_PREFIX + world.job_id
    world.promises.edits_asked[reason] = changes
    world.counts.edits += 1
    yield from runner.loop.goodbye()
    runner.forget()
    record, world.clean_end = world.record, None
    world.records.write_setting(key, reason)
    yield "edit.kept"
    coordinator = world.new_coordinator(runner, WatchedStager(world.source, world.table.write_file, world.rng))
    created = created_positions(world.records, record)
    try:
        yield from coordinator.start(last_seen=record.last_seen, said_goodbye=record.goodbye, created_at=created)
        bill = yield from coordinator.edit(changes, reason=reason)
    except UnknownOutcomeError:
        raise  # It may have landed, and is finished then.
    except LadingError:
        if _landed(world, reason) is None:
            world.records.drop_setting(key)
        raise
    yield from _write_down(world, runner, bill)


def resume(world: RunnerWorld, runner: Runner) -> Work:
    """RESUME; an ALTER that was cut off after its commit is finished first."""
    yield from _finish_begun(world, runner)
    if world.record.state is JobState.PAUSED:
        yield from _apply(world, runner, Resumed(at=world.clock.now()))


def _alter_again(world: RunnerWorld, runner: Runner) -> Work:
    """One of two ALTERs landed, and the note of the other is left. The same ALTER again ends it."""
    yield from _finish_begun(world, runner)
    reason, head = (
        world.records.read_setting(BEGUN_PREFIX + world.job_id),
        world.table.read_head_unchecked(world.job_id),
    )
    if reason is None or head is None or not _has_bill(world, head):
        return
    edited = last_change(world.bills, world.bills.read(world.job_id, head))
    if edited is not None and edited.reason != reason:
        yield from move(world, runner, dict(world.promises.edits_asked[edited.reason]))


def _finish_begun(world: RunnerWorld, runner: Runner) -> Work:
    """As every statement that changes a job does first."""
    reason = world.records.read_setting(BEGUN_PREFIX + world.job_id)
    if reason is not None and reason not in world.promises.edits_done and world.record.state is JobState.PAUSED:
        edited = _landed(world, reason)
        if edited is not None:
            yield from _write_down(world, runner, edited)


def accept_rollback(world: RunnerWorld, runner: Runner) -> Work:
    """ACCEPT ROLLBACK: keep the position, or go back with the table."""
    head, restored = world.table.read_head_unchecked(world.job_id), world.table.ends_with(world.job_id)
    if head is None or restored is None or not _has_bill(world, restored):
        return
    above = [other for other in world.bills.heads(world.job_id) if other.seq > head.seq]
    newest = newest_proved(head, world.record.last_seen, [world.bills.read(world.job_id, other) for other in above])
    newest = newest or head
    goes_on = newest if world.rng.random() < 0.5 and _has_bill(world, newest) else restored
    sight = RollbackSight(head=head, restored=restored, goes_on=goes_on, version=world.table.version())
    reason = f"accept-{world.rng.getrandbits(32):08x}"
    known = world.bills.read(world.job_id, goes_on)
    world.promises.accepted[reason] = (known.positions.partitions, known.state)
    runner.loop.let_go()
    runner.forget()
    coordinator = world.new_coordinator(runner, WatchedStager(world.source, world.table.write_file, world.rng))
    bill = yield from coordinator.accept_rollback(sight, reason=reason)
    at = world.clock.now()
    accepted = RollbackAccepted(head=bill.head, totals=bill.totals, current_offset="", message="meant", at=at)
    yield from _apply(world, runner, accepted)


def _apply(world: RunnerWorld, runner: Runner, event: Event) -> Steps[JobRecord]:
    """As a statement changes a job: the record first, and then what is to be done."""
    yield "statement.before"
    record, actions = save_event(world.records, world.job_id, event)
    if isinstance(event, Resumed):
        # It is resumed from here on, also when what follows fails or the process ends.
        world.cause, world.tries, world.paused_s = None, 0, None
    yield from runner.loop.execute(actions)
    return record


def _write_down(world: RunnerWorld, runner: Runner, bill: Bill) -> Work:
    event = Altered(moved=bill.head, current_offset=str(bill.seq), at=world.clock.now())
    yield from _apply(world, runner, event)
    world.promises.edits_done.add(bill.reason)
    yield "edit.recorded"
    world.records.drop_setting(BEGUN_PREFIX + world.job_id)


def _landed(world: RunnerWorld, reason: str) -> Bill | None:
    """The bill of an edit that is the last change of the job."""
    head = world.table.read_head_unchecked(world.job_id)
    if head is None or not _has_bill(world, head):
        return None
    edited = last_change(world.bills, world.bills.read(world.job_id, head))
    return edited if edited is not None and edited.reason == reason else None


def _is_astray(world: RunnerWorld) -> bool:
    """Whether the table went back together with its heads."""
    head, seen = world.table.read_head_unchecked(world.job_id), world.record.last_seen
    above = [other for other in world.bills.heads(world.job_id) if head is not None and other.seq > head.seq]
    proofs = [world.bills.read(world.job_id, other) for other in above]
    newest = newest_proved(head, seen, proofs) if head is not None else None
    return head is not None and newest is not None and newest.seq > head.seq


def _has_bill(world: RunnerWorld, head: Head) -> bool:
    try:
        world.bills.read(world.job_id, head)
    except HeadLostError:
        return False
    return True
