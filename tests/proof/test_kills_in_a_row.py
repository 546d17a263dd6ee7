"""A service that is killed again and again still gets through its backlog: the real loop and record, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

import pytest

from lading.jobs import pace
from lading.jobs.actions import Rest
from lading.model.batch import BatchPlan, Report
from lading.testing.runner_world import ROWS, RunnerWorld
from lading.testing.simulated_runner import WatchedStager
from lading.testing.stager import ScriptedStager
from lading.testing.world import Setting

KILLS, MAX_STEPS = 50, 400


class Killed(BaseException):
    """The process is gone."""


@dataclass(slots=True)
class Lives:
    """A world whose process is killed once it has read so many rows, also in the middle of a batch."""

    world: RunnerWorld
    rows_each: int
    left: int = 0
    read: int = 0
    kills: int = 0
    again: list[int] = field(default_factory=list)
    """Rows of the batches that were running when a process was killed."""
    fruitless: int = 0
    """Lives that committed nothing."""
    too_large: int = 0
    """Batches that were as large as one that a life had ended with."""
    planned: int = 0
    """Rows that a split of the last batch could have."""
    most: int = ROWS
    """And those that the next one may have."""

    def stage(self, stager: WatchedStager, plan: BatchPlan) -> list[Report]:
        self.planned = max(split.limits.rows for split in plan.splits)
        self.too_large += self.planned > self.most
        self.most = ROWS
        reports = list(ScriptedStager.stage(stager, plan))
        rows = sum(report.rows.total for report in reports)
        self.left -= rows
        self.read += rows
        if self.left < 0 and self.kills < KILLS:
            self.again.append(rows)
            raise Killed
        return reports

    def live(self) -> bool:
        """One life. Whether it came to the end of the backlog."""
        world = self.world
        commits = world.counts.commits
        self.left = self.rows_each
        world.spawn()
        runner = world.runners[0]
        try:
            for _ in range(MAX_STEPS):
                world.run(runner)
                if runner.work is None and runner.loop.next == Rest(is_drained=True):
                    return True
        except Killed:
            self.kills += 1
            world.crash(runner)
        if world.counts.commits == commits:
            self.fruitless += 1
            self.most = max(1, self.planned // 2)
        return False


def run_lives(seed: int, rows_each: int, monkeypatch: pytest.MonkeyPatch) -> Lives:
    rng = Random(seed)
    world = RunnerWorld(rng, Setting(start="TRIM_HORIZON", faults=0.0))
    lives = Lives(world, rows_each)
    monkeypatch.setattr(WatchedStager, "stage", lambda stager, plan: lives.stage(stager, plan))
    world.source.produce(300)
    for _ in range(KILLS + 60):
        if lives.live():
            break
    findings = world.finish()
    assert findings.found == []
    assert not lives.too_large, "a life that commits nothing halves the batch"
    return lives


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rows_each", [1, 3, 7])
def test_each_life_commits_or_halves_and_fifty_kills_cost_a_batch_each(
    seed: int, rows_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = run_lives(seed, rows_each, monkeypatch)
    partitions = len(lives.world.source.shards)
    assert lives.kills == KILLS or rows_each == 7
    assert len(lives.again) == lives.kills
    assert max(lives.again) <= ROWS * partitions, "no more is read again than the batch that was running"
    assert lives.read <= sum(lives.again) + lives.world.record.totals.rows.total  # type: ignore[union-attr]


def test_without_halving_the_backlog_does_not_get_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "after_lost_process", lambda old: replace(old, deaths=old.deaths + 1))
    with pytest.raises(AssertionError, match="halves the batch"):
        run_lives(1, 1, monkeypatch)
