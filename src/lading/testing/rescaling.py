"""Rescaling: seven tasks merge the rows of a job, then two, then any number, and something fails in every phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from lading.errors import LadingError
from lading.model.job import WatermarkRule
from lading.testing.simulator import Summary
from lading.testing.verdict import CORRUPT, Findings
from lading.testing.world import Setting, World

FIRST, THEN = 7, 2
STEPS = 40


@dataclass(slots=True)
class Rescaled(Summary):
    """What many runs came to."""

    in_flight: int = 0
    """Changes of the number of tasks while a batch was on its way."""


def rescale(seeds: Iterable[int], *, stop_at_first: bool = False) -> Rescaled:
    """A run for each seed."""
    summary = Rescaled()
    for seed in seeds:
        world, findings, in_flight = run_rescaling(seed)
        summary.add(seed, world, findings)
        summary.in_flight += in_flight
        if findings.found and stop_at_first:
            break
    return summary


def run_rescaling(seed: int) -> tuple[World, Findings, int]:
    """One run: three phases, each with rows, a kill somewhere in them, and other faults. Also how often in flight."""
    rng = Random(seed)
    setting = Setting(
        start="TRIM_HORIZON",
        faults=rng.choice((0.05, 0.2)),
        watermark=WatermarkRule(delay_us=rng.choice((2, 10)), idle_s=rng.choice((None, 1.0))),
        horizon=rng.choice((5, 40, 400)),
    )
    world, in_flight = World(rng, setting), 0
    world.tasks = FIRST
    findings = Findings()
    try:
        for tasks in (FIRST, THEN, rng.randint(1, 16)):
            in_flight += tasks != world.tasks and any(actor.work is not None for actor in world.actors)
            world.tasks = tasks
            _run_phase(world)
        findings.found += world.finish().found
    except LadingError as error:
        findings.add(CORRUPT, f"what must be there could not be read: {error}")
    return world, findings, in_flight


def _run_phase(world: World) -> None:
    """Forty steps; the process is killed before one of them and started again."""
    killed_at = world.rng.randrange(STEPS)
    for step in range(STEPS):
        if step % 8 == 0:
            world.source.produce(world.rng.randint(1, 8))
        if step == killed_at and world.actors:
            world.kill(world.actors[0])
        if world.rng.random() < 0.1:
            world.table.deliver_pending()
        if not world.actors:
            world.spawn()
        world.step(world.actors[0])
