"""Topics and streams in memory, in the place of the real sources, so that statements can be tested without a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lading.errors import ConfigError, ListingError
from lading.model.batch import Limits, Split
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.service.facade import Lading
from lading.sources.kafka import kind as kafka_kind
from lading.sources.kafka.starts import parse_start as parse_kafka_start
from lading.sources.kinesis import kind as kinesis_kind
from lading.sources.kinesis.starts import parse_start as parse_kinesis_start
from lading.sources.streams import StreamSight


@dataclass
class World:
    """What the brokers know."""

    topics: dict[str, dict[str, int]] = field(default_factory=lambda: {"clicks": {"0": 100, "1": 50}})
    """Ends of the partitions."""
    made_again: dict[str, str] = field(default_factory=dict)
    """Topics and streams that were deleted and made again, and what tells the new one from the old one."""
    shards: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"a": (), "b": (), "c": ("a",)})
    is_down: bool = False
    hangs: threading.Event | None = None
    specs: list[Any] = field(default_factory=list)

    def ask(self) -> None:
        if self.hangs is not None:
            self.hangs.wait(20)
        if self.is_down:
            msg = "The broker is down"
            raise ListingError(msg)


class FakeKafka:
    def __init__(self, world: World, spec: Any) -> None:
        self._world, self._spec = world, spec

    @property
    def _incarnation(self) -> str:
        topic: str = self._spec.topic
        return self._world.made_again.get(topic, topic)

    def _ends(self) -> dict[str, int]:
        self._world.ask()
        if self._spec.topic not in self._world.topics:
            msg = f"There is no topic {self._spec.topic}"
            raise ConfigError(msg)
        ends = self._world.topics[self._spec.topic]
        if missing := [number for number in self._spec.partitions if str(number) not in ends]:
            msg = f"custom kafka partition {missing[0]} is invalid for topic {self._spec.topic}"
            raise ConfigError(msg)
        return {
            name: end for name, end in ends.items() if not self._spec.partitions or int(name) in self._spec.partitions
        }

    def open(self, start: str) -> Positions:
        begin = parse_kafka_start(start)
        states = {}
        for name, end in self._ends().items():
            place = begin.partitions.get(int(name), begin.default)
            at = {"OFFSET_END": str(end), "OFFSET_BEGINNING": "0"}.get(place, place)
            states[name] = PartitionState(at=at if at.isdigit() else "7")
        return Positions(incarnation=self._incarnation, partitions=states)

    def list_partitions(self) -> Listing:
        return Listing(incarnation=self._incarnation, partitions=dict.fromkeys(self._ends(), ListedPartition()))

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        return ()

    def sight(self, positions: Positions) -> StreamSight:
        ends = self._ends()
        known = {name: state for name, state in positions.partitions.items() if name in ends}
        return StreamSight(lag={name: ends[name] - int(state.at) for name, state in known.items()})

    def ends(self) -> dict[str, str]:
        return {name: str(end) for name, end in self._ends().items()}

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        ends = self._ends()
        return lambda now: all(int(now.partitions[name].at or 0) >= end for name, end in ends.items())


class FakeKinesis:
    def __init__(self, world: World, spec: Any) -> None:
        self._world, self._spec = world, spec

    @property
    def _incarnation(self) -> str:
        stream: str = self._spec.stream
        return self._world.made_again.get(stream, stream)

    def _names(self) -> dict[str, tuple[str, ...]]:
        self._world.ask()
        chosen = self._spec.shards or tuple(self._world.shards)
        return {name: tuple(p for p in self._world.shards[name] if p in chosen) for name in chosen}

    def open(self, start: str) -> Positions:
        begin = parse_kinesis_start(start)
        states = {}
        for name, parents in self._names().items():
            place = begin.of(name)
            at = "AFTER 900" if place == "LATEST" else place.replace("AT_TIMESTAMP(", "TIME ").rstrip(")")
            states[name] = PartitionState(at=at, parents=parents)
        return Positions(incarnation=self._incarnation, partitions=states)

    def list_partitions(self) -> Listing:
        listed = {name: ListedPartition(parents=parents) for name, parents in self._names().items()}
        return Listing(incarnation=self._incarnation, partitions=listed)

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        return ()

    def sight(self, positions: Positions) -> StreamSight:
        unread = [name for name, state in positions.partitions.items() if not state.finished]
        return StreamSight(
            lag=dict.fromkeys(unread, 20),
            facts={"openShardNum": 2, "closedShardNum": 1, "trackedShardNum": len(unread)},
            open_partitions=("b", "c"),
            closed_partitions=("a",),
        )

    def ends(self) -> dict[str, str]:
        return {}

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        return lambda now: True


class Desk:
    """A home with a table, without Spark."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.world = World()
        self.lading = Lading(path / "home", user="ann")
        self.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT NOT NULL, city VARCHAR(10)) USING delta")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return list(self.lading.sql(text)[-1].rows)

    def show(self, name: str = "j") -> dict[str, Any]:
        return self.lading.sql(f"SHOW ALL ROUTINE LOAD FOR {name}")[-1].dicts()[-1]

    def restart(self) -> None:
        self.lading.close()
        self.lading = Lading(self.path / "home", user="ann")
        self.sql("USE shop")

    def run(self) -> None:
        """Open the jobs; there is nothing to read, so Spark is not needed."""
        self.lading.run()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    made = Desk(tmp_path)
    monkeypatch.setattr(kafka_kind, "make_source", lambda spec, clock: _noted(made.world, FakeKafka, spec))
    monkeypatch.setattr(kinesis_kind, "make_source", lambda spec, clock: _noted(made.world, FakeKinesis, spec))
    monkeypatch.setattr("lading.sources.kafka.acknowledger.KafkaAcknowledger.follow", lambda self, bill: None)
    made.lading.engine.begin = lambda: None  # type: ignore[method-assign]  # No other process can read these.
    yield made
    made.lading.close()


def _noted(world: World, kind: Any, spec: Any) -> Any:
    world.specs.append(spec)
    return kind(world, spec)
