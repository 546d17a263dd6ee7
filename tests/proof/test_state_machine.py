"""The same world, driven by Hypothesis: it looks for short stories that end badly."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lading.testing.verifier import verify
from lading.testing.world import JOB_ID, Actor, Setting, World
from tests.support.examples import examples


class LoadMachine(RuleBasedStateMachine):
    """Produce, plan, stage, commit, crash, alter, reshard, second driver, rollback."""

    @initialize(
        seed=st.integers(0, 2**32),
        start=st.sampled_from(["LATEST", "TRIM_HORIZON"]),
        loss=st.sampled_from(["PAUSE", "CONTINUE"]),
        faults=st.sampled_from([0.0, 0.1, 0.4]),
    )
    def create(self, seed: int, start: str, loss: str, faults: float) -> None:
        self.world = World(Random(seed), Setting(start=start, on_data_loss=loss, faults=faults))

    def _actor(self, choice: int) -> Actor:
        return self.world.actors[choice % len(self.world.actors)]

    @rule(count=st.integers(1, 6))
    def produce(self, count: int) -> None:
        self.world.source.produce(count)

    @rule()
    def split(self) -> None:
        self.world.source.split()

    @rule()
    def merge(self) -> None:
        self.world.source.merge()

    @rule()
    def trim(self) -> None:
        self.world.source.trim()

    @precondition(lambda self: len(self.world.actors) < 3)
    @rule()
    def start_incarnation(self) -> None:
        self.world.spawn()

    @precondition(lambda self: self.world.actors)
    @rule(choice=st.integers(0, 2), steps=st.integers(1, 20))
    def run(self, choice: int, steps: int) -> None:
        actor = self._actor(choice)
        for _ in range(steps):
            if actor in self.world.actors:
                self.world.step(actor)

    @precondition(lambda self: self.world.actors)
    @rule(choice=st.integers(0, 2))
    def crash(self, choice: int) -> None:
        self.world.kill(self._actor(choice))

    @precondition(lambda self: self.world.actors)
    @rule(choice=st.integers(0, 2))
    def alter(self, choice: int) -> None:
        self.world.edit(self._actor(choice))

    @precondition(lambda self: self.world.actors)
    @rule(choice=st.integers(0, 2))
    def say_goodbye(self, choice: int) -> None:
        self.world.say_goodbye(self._actor(choice))

    @rule()
    def lose_the_metadata_store(self) -> None:
        self.world.lose_store()

    @rule()
    def late_request_arrives(self) -> None:
        self.world.table.deliver_pending()

    @rule()
    def restore_older_version(self) -> None:
        self.world.roll_back()

    @rule()
    def stranger_appends(self) -> None:
        self.world.table.append_unrelated(f"stranger/{self.world.table.version()}", [])

    @invariant()
    def no_version_of_the_table_breaks_a_law(self) -> None:
        if not hasattr(self, "world") or self.world.table.is_behind(JOB_ID):
            return
        evidence = self.world.evidence(with_views=False)
        assert verify(evidence).found == []

    def teardown(self) -> None:
        if hasattr(self, "world"):
            assert self.world.finish().found == []


TestLoad = LoadMachine.TestCase
TestLoad.settings = settings(
    max_examples=examples(100),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
