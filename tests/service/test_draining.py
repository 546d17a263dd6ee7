"""`lading run` ends on a stream that never does, and makes no more commits than it must."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import pytest

from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.positions import PartitionState
from lading.model.tally import RowCounts
from lading.sources.kafka import kind as kafka_kind
from tests.service.routine_fakes import Desk, FakeKafka, World
from tests.service.routine_fakes import bench as bench

CREATE = (
    'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json", "max_batch_interval"="5", "max_batch_rows"="200000") '
    'FROM KAFKA("kafka_broker_list"="h:1", "kafka_topic"="clicks", "property.kafka_default_offsets"="OFFSET_BEGINNING")'
)


class LiveKafka(FakeKafka):
    """A topic with something to read whenever it is asked."""

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        ends = self._ends()
        unread = [(name, state) for name, state in sorted(ready.items()) if int(state.at) < ends[name]]
        return tuple(
            Split(number=number, partition=name, start=state.at, end=str(ends[name]), limits=limits)
            for number, (name, state) in enumerate(unread)
        )


class Producing:
    """Reads what is planned, while others write more."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.staged = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        self.staged += 1
        for name in self._world.topics["clicks"]:
            self._world.topics["clicks"][name] += 7
        self.meanwhile()
        return [_report(split) for split in plan.splits]

    def cancel(self) -> None:
        pass


def _report(split: Split) -> Report:
    count = int(split.end or 0) - int(split.start)
    rows = RowCounts(total=count, unselected=count)
    return Report(
        split=split.number, partition=split.partition, start=split.start, end=split.end or split.start, rows=rows
    )


@pytest.fixture
def live(bench: Desk, monkeypatch: pytest.MonkeyPatch) -> Producing:
    stager = Producing(bench.world)
    monkeypatch.setattr(kafka_kind, "make_source", lambda spec, clock: LiveKafka(bench.world, spec))
    monkeypatch.setattr("lading.service.runtime.stagers.LazyStager", lambda spark, stage, *told: stager)
    return stager


def at(desk: Desk) -> dict[str, str]:
    bill = desk.lading.bills(desk.lading.any_job("shop.j"), 1)[0]
    return {name: state.at for name, state in bill.positions.partitions.items()}


def test_a_run_loads_what_was_there_when_it_began_and_ends(bench: Desk, live: Producing) -> None:
    bench.sql(CREATE)
    bench.lading.run(timeout=20)
    assert live.staged == 1
    assert at(bench) == {"0": "100", "1": "50"}
    bench.lading.run(timeout=20)
    assert (live.staged, at(bench)) == (2, {"0": "107", "1": "57"})


def test_a_run_that_is_stopped_ends_after_the_commit_that_is_running(bench: Desk, live: Producing) -> None:
    bench.sql(CREATE)
    stop = threading.Event()
    live.meanwhile = stop.set
    bench.world.topics["clicks"]["0"] = 10**9
    bench.lading.run(stop=stop)
    assert live.staged == 1
    assert bench.lading.any_job("shop.j").task is None, "the batch was committed, not cut off"
    assert at(bench)["0"] == "1000000000"
