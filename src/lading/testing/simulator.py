"""A seeded simulator: real runner, coordinator and planner, and one bad day after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from lading.errors import LadingError
from lading.model.job import WatermarkRule
from lading.testing.aside_world import run_aside_schedule
from lading.testing.errors_world import run_errors_schedule
from lading.testing.files_world import run_files_schedule
from lading.testing.operator import edit
from lading.testing.replays_world import run_replays_schedule
from lading.testing.runner_world import OTHER_JOB, RunnerWorld
from lading.testing.simulated_runner import Runner
from lading.testing.verdict import CLASSES, CORRUPT, Findings
from lading.testing.world import Setting, World

MAX_ACTORS = 3
FILES_EVERY = 10
"""One seed of so many is also that of a schedule over files."""
REPLAYS_EVERY = 10
"""And one of so many that of a schedule with replays."""
ASIDE_EVERY = 20
"""And one of so many that of files that are put aside, left out, and loaded after all."""
ERRORS_EVERY = 20
"""And one of so many that of an errors table."""


@dataclass(slots=True)
class Summary:
    """What many schedules came to."""

    schedules: int = 0
    commits: int = 0
    crashes: int = 0
    edits: int = 0
    classes: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(CLASSES, 0)))
    first_failure: tuple[int, Findings] | None = None

    @property
    def more(self) -> dict[str, int]:
        """What else was counted, by name."""
        return {}

    @property
    def is_clean(self) -> bool:
        return self.first_failure is None

    def add(self, seed: int, world: World, findings: Findings) -> None:
        """One more schedule."""
        self.schedules += 1
        self.commits += world.counts.commits
        self.crashes += world.counts.crashes
        self.edits += world.counts.edits
        self.classes.update(finding.kind for finding in findings.found)
        if findings.found and self.first_failure is None:
            self.first_failure = (seed, findings)


def run_schedule(seed: int) -> tuple[RunnerWorld, Findings]:
    """One schedule, from its seed alone."""
    rng = Random(seed)
    setting = _setting(rng)
    world = RunnerWorld(rng, setting)
    if setting.has_neighbour:
        world.beside = RunnerWorld(rng, replace(setting), job_id=OTHER_JOB, beside=world)
    events = _events(world)
    weights = [weight for weight, _ in events]
    findings = Findings()
    try:
        for _, event in rng.choices(events, weights, k=rng.randint(40, 160)):
            event()
        for job in (world.beside, world):
            findings.found += job.finish().found if job is not None else []
    except LadingError as error:
        findings.add(CORRUPT, f"what must be there could not be read: {error}")
    return world, findings


def simulate(seeds: Iterable[int], *, stop_at_first: bool = False) -> Summary:
    """Many schedules, added up."""
    summary = Summary()
    for seed, (world, findings) in _schedules(seeds):
        summary.add(seed, world, findings)
        if findings.found and stop_at_first:
            break
    return summary


def _schedules(seeds: Iterable[int]) -> Iterator[tuple[int, tuple[World, Findings]]]:
    """A stream for every seed, and files for some besides."""
    for seed in seeds:
        yield seed, run_schedule(seed)
        if seed % FILES_EVERY == 0:
            yield seed, run_files_schedule(seed)
        if seed % REPLAYS_EVERY == 0:
            yield seed, run_replays_schedule(seed)
        if seed % ASIDE_EVERY == 0:
            yield seed, run_aside_schedule(seed)
        if seed % ERRORS_EVERY == 0:
            yield seed, run_errors_schedule(seed)


def _setting(rng: Random) -> Setting:
    setting = Setting(
        start=rng.choice(["LATEST", "LATEST", "TRIM_HORIZON"]),
        on_data_loss=rng.choice(["PAUSE", "CONTINUE"]),
        faults=rng.choice([0.0, 0.05, 0.2, 0.4]),
        trims=rng.random() < 0.4,
        rolls_back=rng.random() < 0.25,
        prunes=rng.random() < 0.25,
        cleans=rng.random() < 0.25,
        has_neighbour=rng.random() < 0.3,
        watermark=(watermark := _watermark(rng)),
        horizon=rng.choice((None, 5, 40, 400)) if watermark is not None else None,
    )
    if setting.watermark is not None and setting.horizon is None and setting.on_data_loss == "PAUSE":
        setting.window = 4 if setting.trims else 30
    # Without a draw of its own, so that seeds keep their schedules.
    setting.has_poison = setting.cleans != setting.prunes
    return setting


def _watermark(rng: Random) -> WatermarkRule | None:
    if rng.random() < 0.4:
        return None
    return WatermarkRule(delay_us=rng.choice((0, 2, 10)), idle_s=rng.choice((None, 0.1, 1.0, 60.0)))


def _events(world: RunnerWorld) -> list[tuple[int, Callable[[], None]]]:
    rng, setting = world.rng, world.setting
    jobs = [world, *([world.beside] if world.beside is not None else [])]

    def with_runner(event: Callable[[RunnerWorld, Runner], None]) -> Callable[[], None]:
        def happen() -> None:
            job = rng.choice(jobs)
            if job.runners:
                event(job, rng.choice(job.runners))
            else:
                job.spawn()

        return happen

    def with_job(event: Callable[[RunnerWorld], None]) -> Callable[[], None]:
        return lambda: event(rng.choice(jobs))

    def run_on(job: RunnerWorld, runner: Runner) -> None:
        for _ in range(rng.randint(1, 20)):
            if runner in job.runners:
                job.run(runner)

    def spawn(job: RunnerWorld) -> None:
        if len(job.runners) < MAX_ACTORS:
            job.spawn()

    def move(job: RunnerWorld, runner: Runner) -> None:
        if runner.work is None:
            runner.work = edit(job, runner)

    def expire_read(job: RunnerWorld, runner: Runner) -> None:
        bill = runner.coordinator.bill if runner.coordinator is not None else None
        if bill is not None:
            world.clock.sleep(rng.choice((60.0, 3600.0, 7200.0)))
            job.source.expire_read(bill.positions)

    def rescale(job: RunnerWorld) -> None:
        job.tasks = rng.choice((1, 2, 3, 7, 16))

    def fail_listing(job: RunnerWorld) -> None:
        job.source.listing_fails += 1

    def stranger() -> None:
        world.table.append_unrelated(f"stranger/{rng.getrandbits(48):012x}", [])

    return [
        (24, with_runner(run_on)),
        (14, with_runner(RunnerWorld.run)),
        (8, with_job(lambda job: job.source.produce(rng.randint(1, 6)))),
        (3, with_runner(RunnerWorld.crash)),
        (2, with_job(spawn)),
        (2, with_runner(move)),
        (2, with_runner(RunnerWorld.pause)),
        (2, with_job(lambda job: job.source.split())),
        (2, with_job(lambda job: job.source.merge())),
        (1, with_runner(RunnerWorld.leave)),
        (1, with_job(RunnerWorld.lose_store)),
        (1, with_job(fail_listing)),
        (1, with_job(rescale)),
        (1, with_job(lambda job: job.source.list_old())),
        (1, stranger),
        (1, with_runner(expire_read)),
        (2, world.table.deliver_pending),
        (1 if setting.trims else 0, with_job(lambda job: job.source.trim())),
        (1 if setting.rolls_back else 0, world.roll_back),
        # What a rollback goes back to is history, which is gone after a clean-up.
        (1 if setting.cleans and not setting.rolls_back else 0, world.clean_up),
    ]
