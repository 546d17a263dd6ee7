"""An installation in memory whose bad rows are taken up again: moves, kills, rollbacks and replays in any order.

From time to time the definition is changed so that more rows are good when they are taken up. What a source gives stays
bad, so that each reading puts its bad rows into quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from lading.commit.protocols import Stager
from lading.commit.replays import QUARANTINE, SourceOrder
from lading.commit.steps import Steps
from lading.errors import JobStateError, LadingError
from lading.model.batch import BatchPlan, Report, Split
from lading.model.bill import Bill
from lading.model.moves import direction_of, plain_way
from lading.model.positions import PartitionState
from lading.model.tally import RowCounts
from lading.testing.source import Row, offset_of
from lading.testing.stager import ScriptedStager
from lading.testing.verdict import LOSS, Findings
from lading.testing.verifier import Evidence
from lading.testing.world import Actor, Setting, World

MAX_ACTORS = 2
Quarantined = dict[str, list[Row]]


def way(old: PartitionState, new: PartitionState) -> str:
    """Offsets are counted."""
    return plain_way(old, new) or direction_of(offset_of(new.at) - offset_of(old.at))


class ReplayStager(ScriptedStager):
    """Keeps bad rows, and reads those that were kept. `heals` are the keys whose rows are good when taken up."""

    quarantine: Quarantined
    heals: set[int]

    def _attempt(self, split: Split) -> Report:
        if split.partition != QUARANTINE:
            report = super()._attempt(split)
            rows = self._source.rows(split.partition, report.start, report.end)
            return self._kept(report, [row for row in rows if row.fate == "error"])
        rows = self.quarantine[split.payload]
        good = [row for row in rows if row.key in self.heals]
        bad = [row for row in rows if row.key not in self.heals]
        counts = RowCounts(total=len(rows), loaded=len(good), error=len(bad))
        files = (self._staged(good),) if good else ()
        place = split.payload
        report = Report(split=split.number, partition=QUARANTINE, start=place, end=place, files=files, rows=counts)
        return self._kept(report, bad)

    def _kept(self, report: Report, bad: list[Row]) -> Report:
        if not bad:
            return report
        place = f"quarantine/{self._file_name()}"
        self.quarantine[place] = bad
        return replace(report, quarantine=(place,))

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return super().stage(plan)


@dataclass(slots=True)
class ReplaysWorld(World):
    """The installation."""

    quarantine: Quarantined = field(default_factory=dict)
    heals: set[int] = field(default_factory=set)
    gives_up: int | None = None
    """What the last replay was refused for, when the operator has read it."""

    def make_stager(self) -> Stager:
        stager = ReplayStager(self.source, self.table.write_file, self.rng, faults=self.setting.faults / 3)
        stager.quarantine, stager.heals = self.quarantine, self.heals
        return stager

    def evidence(self, *, with_views: bool = True) -> Evidence:
        return replace(World.evidence(self, with_views=with_views), bad_rows=self.quarantine.get)

    def change_definition(self) -> None:
        """More rows are good from now on."""
        self.heals.add(self.rng.randrange(self.source.keys))

    def replay(self, actor: Actor) -> None:
        """An operator has them taken up, and gives up what he was told to."""
        if actor.work is not None or actor.coordinator.bill is None:
            return
        self._begin(actor, self._replayed(actor), None)

    def _replayed(self, actor: Actor) -> Steps[Bill | None]:
        after, self.gives_up = self.gives_up, None
        reason = "replay" if after is None else f"replay after {after}"
        try:
            return (yield from actor.coordinator.replay(SourceOrder(way=way), reason=reason, after=after))
        except JobStateError as error:
            self.gives_up = error.facts.get("seq") if self.rng.random() < 0.5 else None
            raise

    def finish(self) -> Findings:
        """Quiet time; then all rows become good, and what waits is taken up, or given up as the job says."""
        findings = World.finish(self)
        if findings.found or not self.actors:
            return findings
        self.heals |= set(range(self.source.keys))
        actor, self.gives_up = self.actors[0], None
        for _ in range(1000):
            self.replay(actor)
            while actor.work is not None:
                self.step(actor)
            if self.gives_up is None:
                break
        again = World.finish(self)
        for finding in again.found:
            findings.add(finding.kind, finding.text)
        return findings


def run_replays_schedule(seed: int) -> tuple[ReplaysWorld, Findings]:
    """One schedule with replays, from its seed alone."""
    rng = Random(seed)
    setting = Setting(
        start="TRIM_HORIZON",
        faults=rng.choice([0.0, 0.05, 0.2, 0.4]),
        rolls_back=rng.random() < 0.25,
        cleans=rng.random() < 0.25,
    )
    world = ReplaysWorld(rng, setting)
    world.source.bad_share = 0.3
    events = replay_events(world)
    findings = Findings()
    try:
        for _, event in rng.choices(events, [weight for weight, _ in events], k=rng.randint(40, 160)):
            event()
        findings.found += world.finish().found
    except LadingError as error:
        findings.add(LOSS, f"what must be there could not be read: {error}")
    return world, findings


def replay_events(world: ReplaysWorld) -> list[tuple[int, Callable[[], None]]]:
    """What may happen, each with how often."""
    rng = world.rng

    def with_actor(event: Callable[[Actor], None]) -> Callable[[], None]:
        def happen() -> None:
            if not world.actors:
                world.spawn()
            event(rng.choice(world.actors))

        return happen

    def run_on(actor: Actor) -> None:
        for _ in range(rng.randint(1, 25)):
            if actor in world.actors:
                world.step(actor)

    def spawn() -> None:
        if len(world.actors) < MAX_ACTORS:
            world.spawn()

    return [
        (24, with_actor(run_on)),
        (8, lambda: world.source.produce(rng.randint(1, 6))),
        (8, with_actor(world.replay)),
        (3, world.change_definition),
        (3, with_actor(world.edit)),
        (3, with_actor(world.kill)),
        (2, spawn),
        (1, with_actor(world.say_goodbye)),
        (1, world.lose_store),
        (1, world.source.split),
        (2, world.table.deliver_pending),
        (2 if world.setting.rolls_back else 0, world.roll_back),
        (1 if world.setting.cleans and not world.setting.rolls_back else 0, world.clean_up),
    ]
