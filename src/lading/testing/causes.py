"""Whether a job of the simulator stopped for a reason that was so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.errors import (
    WORKER_LOST,
    ConfigError,
    FencedError,
    JobStateError,
    RolledBackError,
    StageError,
    TrimmedError,
)
from lading.testing.verdict import STOPPED

if TYPE_CHECKING:
    from lading.testing.runner_world import RunnerWorld
    from lading.testing.simulated_runner import Runner


def check_cause(world: RunnerWorld, runner: Runner, error: Exception) -> None:
    """What a job says when it stops must be so."""
    was_restored = any(version.restored for version in world.table.versions)
    head = world.table.read_head_unchecked(world.job_id)
    match error:
        case FencedError() if head is not None and not was_restored:
            other = world.bills.read_ever(world.job_id, head).incarnation
            told = f"{runner.incarnation} says that it was fenced, by its own commit {head.bill_name}"
            world.causes.expect(other != runner.incarnation, STOPPED, told)
        case TrimmedError() if error.facts["horizon"] is None:
            shard = world.source.shards[error.facts["partition"]]
            world.causes.expect(shard.expired, STOPPED, f"{shard.name} was called lost, and the source has it")
        case RolledBackError():
            told = "the job says that the table was rolled back, and it never was"
            world.causes.expect(was_restored, STOPPED, told)
    is_meant = isinstance(error, TrimmedError | RolledBackError | JobStateError | ConfigError)
    is_meant = is_meant or (world.setting.has_poison and isinstance(error, StageError) and error.code == WORKER_LOST)
    world.causes.expect(is_meant or not world.is_quiet, STOPPED, f"nothing is wrong, and the job says: {error}")
