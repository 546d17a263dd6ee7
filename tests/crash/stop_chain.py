"""Jobs with state that are stopped again and again, so that each stop follows each other one.

All lives are in one process, with one session of Spark: a life opens the home, each job runs up to its stop, and
nothing says goodbye. What was under way is dropped there, as by a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from lading.commit.steps import STEP_NAMES
from lading.failpoints import arm, disarm_all
from lading.service.facade import Lading
from tests.crash.state_stories import Found, Stories

BACKLOG = 2
"""So many files wait at least, for each job: no life has nothing to do."""
IN_COMMITS = tuple(f"{step}.{side}" for step in ("bill", "commit", "settle", "follow") for side in ("before", "after"))
"""A life passes here twice: in its takeover, and in its batch."""
NOT_PASSED = ("settle.before",)
"""Only where it is not known whether a commit has landed."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A step, and whether it is that of the takeover or, later, of the batch."""

    step: str
    time: int


class Killed(BaseException):
    """The process is gone here."""


def all_stops() -> tuple[Stop, ...]:
    """In their order in a life that takes the job over and then runs a batch."""
    batch = [name for name in STEP_NAMES if not name.startswith(("edit", "start", *NOT_PASSED))]
    return (
        Stop("start.before", 1),
        *(Stop(name, 1) for name in batch if name in IN_COMMITS),
        Stop("start.after", 1),
        *(Stop(name, 2 if name in IN_COMMITS else 1) for name in batch),
    )


def every_pair(stops: Sequence[Stop]) -> list[Stop]:
    """A sequence in which each stop comes right after each, itself too: a walk over all edges between them."""
    walk = []
    for place, stop in enumerate(stops):
        walk.append(stop)
        for other in stops[place + 1 :]:
            walk += [stop, other]
    return [*walk, stops[0]]


def slices(walk: Sequence[Stop], parts: int) -> list[list[Stop]]:
    """Parts of a walk that have all its pairs between them."""
    size = -(-(len(walk) - 1) // parts)
    return [list(walk[first : first + size + 1]) for first in range(0, len(walk) - 1, size)]


class Chain:
    """Lives of the jobs of one home."""

    def __init__(self, path: Path, form: str, kind: str, spark: SparkSession, seed: str) -> None:
        counts, joins = ({"s": form} if kind == each else {} for each in ("counts", "joins"))
        self.stories, self._spark = Stories(path, counts, Random(seed), joins=joins), spark
        self._jobs = [f"{story.name}_{table}" for story in self.stories.stories for table in story.expected]
        self._sides, self._files = (2 if joins else 1), 0
        self.stops: list[Stop] = []
        self._top_up(0)
        # CREATE opened the jobs and said goodbye: the life after this one is the first to take them over.
        self.live(Stop("plan.before", 1))
        self.stops.clear()

    def live(self, stop: Stop) -> None:
        """One life, which ends at this stop, for each of the jobs."""
        with self._open() as lading:
            for name in self._jobs:
                runner = lading.runner(lading.any_job(name).job_id)
                _arm(stop)
                try:
                    runner.run_once()
                except Killed:
                    continue
                finally:
                    disarm_all()
                    runner.let_go()
                pytest.fail(f"{name} did not come to {stop}: {lading.any_job(name).reason}")
            self._top_up(min(self._loaded(lading, name) for name in self._jobs))
        self.stops.append(stop)
        self.stories.kills += len(self._jobs)

    def end(self) -> Found:
        """Load what is left, without a stop, and look."""
        found = Found(kills=self.stories.kills)
        for story in self.stories.stories:
            story.end()
        with self._open() as lading:
            lading.run()
            for story in self.stories.stories:
                found += story.find(lading)
        print(f"{len(set(pairwise(self.stops)))} pairs: {found}")
        return found

    def _open(self) -> Lading:
        return Lading(self.stories.home, session=self._spark, user="tester")

    def _loaded(self, lading: Lading, name: str) -> int:
        return lading.bills(lading.any_job(name), 1)[0].totals.source_files

    def _top_up(self, loaded: int) -> None:
        while self._files - loaded < BACKLOG:
            self.stories.put(1)
            self._files += self._sides


def _arm(stop: Stop) -> None:
    seen = 0

    def die(name: str) -> None:
        nonlocal seen
        seen += 1
        if seen == stop.time:
            raise Killed(name)

    arm(stop.step, die)
