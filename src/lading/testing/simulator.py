"""A seeded simulator: real coordinator, real planner, and one bad day after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from lading.testing.files_world import run_files_schedule
from lading.testing.verdict import CLASSES, Findings
from lading.testing.world import Setting, World

MAX_ACTORS = 3
FILES_EVERY = 10
"""One seed of so many is also that of a schedule over files."""


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
    def is_clean(self) -> bool:
        return self.first_failure is None


def run_schedule(seed: int) -> tuple[World, Findings]:
    """One schedule, from its seed alone."""
    rng = Random(seed)
    world = World(rng, _setting(rng))
    events = _events(world)
    weights = [weight for weight, _ in events]
    for _, event in rng.choices(events, weights, k=rng.randint(40, 160)):
        event()
    return world, world.finish()


def simulate(seeds: Iterable[int], *, stop_at_first: bool = False) -> Summary:
    """Many schedules, added up."""
    summary = Summary()
    for seed, (world, findings) in _schedules(seeds):
        summary.schedules += 1
        summary.commits += world.counts.commits
        summary.crashes += world.counts.crashes
        summary.edits += world.counts.edits
        summary.classes.update(finding.kind for finding in findings.found)
        if findings.found and summary.first_failure is None:
            summary.first_failure = (seed, findings)
            if stop_at_first:
                break
    return summary


def _schedules(seeds: Iterable[int]) -> Iterator[tuple[int, tuple[World, Findings]]]:
    """A stream for every seed, and files for some besides."""
    for seed in seeds:
        yield seed, run_schedule(seed)
        if seed % FILES_EVERY == 0:
            yield seed, run_files_schedule(seed)


def _setting(rng: Random) -> Setting:
    return Setting(
        start=rng.choice(["LATEST", "LATEST", "TRIM_HORIZON"]),
        on_data_loss=rng.choice(["PAUSE", "CONTINUE"]),
        faults=rng.choice([0.0, 0.05, 0.2, 0.4]),
        trims=rng.random() < 0.4,
        rolls_back=rng.random() < 0.25,
        prunes=rng.random() < 0.25,
        cleans=rng.random() < 0.25,
    )


def _events(world: World) -> list[tuple[int, Callable[[], None]]]:
    rng, setting = world.rng, world.setting

    def with_actor(event: Callable[..., None]) -> Callable[[], None]:
        def happen() -> None:
            if world.actors:
                event(rng.choice(world.actors))
            else:
                world.spawn()

        return happen

    def run_on() -> None:
        if world.actors:
            actor = rng.choice(world.actors)
            for _ in range(rng.randint(1, 14)):
                if actor in world.actors:
                    world.step(actor)
        else:
            world.spawn()

    def spawn() -> None:
        if len(world.actors) < MAX_ACTORS:
            world.spawn()

    def expire_read() -> None:
        bill = next((actor.coordinator.bill for actor in world.actors if actor.coordinator.bill), None)
        if bill is not None:
            world.clock.sleep(rng.choice((60.0, 3600.0, 7200.0)))
            world.source.expire_read(bill.positions)

    def fail_listing() -> None:
        world.source.listing_fails += 1

    def stranger() -> None:
        world.table.append_unrelated(f"stranger/{rng.getrandbits(48):012x}", [])

    return [
        (24, run_on),
        (14, with_actor(world.step)),
        (8, lambda: world.source.produce(rng.randint(1, 6))),
        (3, with_actor(world.kill)),
        (2, spawn),
        (2, with_actor(world.edit)),
        (2, world.source.split),
        (2, world.source.merge),
        (1, with_actor(world.say_goodbye)),
        (1, world.lose_store),
        (1, fail_listing),
        (1, world.source.list_old),
        (1, stranger),
        (1, expire_read),
        (2, world.table.deliver_pending),
        (1 if setting.trims else 0, world.source.trim),
        (1 if setting.rolls_back else 0, world.roll_back),
        (1 if setting.prunes else 0, world.prune),
        # What a rollback goes back to is history, which is gone after a clean-up.
        (1 if setting.cleans and not setting.rolls_back else 0, world.clean_up),
    ]
