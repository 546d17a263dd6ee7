"""Topics to write to, and a loader that moves positions as the coordinator would."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer, TopicPartition

from lading.clock import SystemClock
from lading.model.batch import Limits, Split
from lading.model.positions import Positions
from lading.model.rows import SplitEnd
from lading.plan.planner import Planner
from lading.sources.kafka.listing import Cluster
from lading.sources.kafka.payload import Payload, render_payload
from lading.sources.kafka.reader import read_splits
from lading.sources.kafka.source import KafkaSource
from lading.sources.kafka.spec import METADATA, KafkaSpec
from lading.sources.kafka.starts import OFFSET_BEGINNING, render_start
from lading.sources.records.spec import RecordFormat, RecordKind
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

FORMAT = RecordFormat(kind=RecordKind.JSON, columns=("k", "n"))
FROM_BEGINNING = render_start(OFFSET_BEGINNING)


def new_name() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


def row(key: object, number: int) -> bytes:
    return json.dumps({"k": str(key), "n": number}).encode()


def spec_of(bootstrap: str, topic: str, **more: Any) -> KafkaSpec:
    return KafkaSpec(brokers=bootstrap, topic=topic, **{"format": FORMAT, "patience_s": 20.0, **more})


def split_of(partition: int, start: int, end: int, number: int = 0, **limits: Any) -> Split:
    return Split(
        number=number,
        partition=str(partition),
        start=str(start),
        end=str(end),
        limits=Limits(**limits),
        payload=render_payload(Payload(first=start)),
    )


class Topic:
    """A topic on the real broker."""

    def __init__(self, broker: KafkaBroker, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self.broker = broker
        self.name = new_name()
        self._topics = Topics(broker)
        self._admin = broker.admin()
        self.create(partitions, config)

    def create(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self._topics.create(self.name, partitions, config)

    def delete(self) -> None:
        self._topics.delete(self.name)

    def grow(self, partitions: int) -> None:
        self._topics.grow(self.name, partitions)

    def trim(self, before: int, partition: int = 0) -> None:
        for future in self._admin.delete_records([TopicPartition(self.name, partition, before)]).values():
            future.result(timeout=20)

    def spec(self, **more: Any) -> KafkaSpec:
        return spec_of(self.broker.bootstrap, self.name, **more)

    def write(self, rows: Iterable[tuple[object, bytes | None]], partition: int = 0, compression: str = "none") -> None:
        """Records with their keys, in one go."""
        producer = Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "message.max.bytes": 20_000_000,
                "linger.ms": 5,
                "compression.type": compression,
            }
        )
        self._produce(producer, rows, partition)
        assert producer.flush(20) == 0

    def count_up(self, start: int, stop: int, partition: int = 0, compression: str = "none") -> None:
        self.write(((number, row(partition, number)) for number in range(start, stop)), partition, compression)

    def begin(self, start: int, stop: int) -> Producer:
        """Rows in a transaction that is left open."""
        producer = Producer(
            {"bootstrap.servers": self.broker.bootstrap, "transactional.id": uuid.uuid4().hex, "log_level": 0}
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        self._produce(producer, ((number, row("t", number)) for number in range(start, stop)), 0)
        assert producer.flush(20) == 0
        return producer

    def commit(self, producer: Producer) -> None:
        """End a transaction, and wait until readers are told so."""
        producer.commit_transaction(20)
        self._wait_until_settled()

    def abort(self, producer: Producer) -> None:
        """The same without its rows."""
        producer.abort_transaction(20)
        self._wait_until_settled()

    def _wait_until_settled(self) -> None:
        # The broker answers before the marks of the transaction are in all partitions.
        clock = SystemClock()
        cluster = Cluster(self.spec(), clock)
        until_s = clock.monotonic_s() + 20
        while cluster.bounds([0]).end != cluster.high_watermarks([0]):
            assert clock.monotonic_s() < until_s, "the transaction did not end"
            clock.sleep(0.01)

    def _produce(self, producer: Producer, rows: Iterable[tuple[object, bytes | None]], partition: int) -> None:
        for key, value in rows:
            while True:
                try:
                    producer.produce(self.name, value, key=str(key), partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)


@dataclass
class Read:
    """What a reader gave."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    ends: list[SplitEnd] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        return [int(one["n"]) for one in self.rows]

    def take(self, item: pa.RecordBatch | SplitEnd) -> None:
        if isinstance(item, SplitEnd):
            self.ends.append(item)
        else:
            self.rows += item.to_pylist()


def read(spec: KafkaSpec, splits: Iterable[Split]) -> Read:
    result = Read()
    for item in read_splits(spec, list(splits)):
        result.take(item)
    return result


class Loader:
    """Plans, reads and moves on, batch by batch."""

    def __init__(self, spec: KafkaSpec, *, on_data_loss: str = "PAUSE") -> None:
        self.spec = replace(spec, metadata=tuple(METADATA.names))
        self.source = KafkaSource(self.spec, SystemClock())
        self.planner = Planner(self.source, SystemClock(), on_data_loss=on_data_loss)
        self.positions = Positions()
        self.rows: list[dict[str, Any]] = []
        self.gaps: list[str] = []
        self.batches = 0

    def open(self, start: str = FROM_BEGINNING) -> Loader:
        self.positions = self.planner.open(start)
        return self

    def batch(self, limits: Limits | None = None) -> bool:
        """One batch; False when there was nothing to read."""
        plan = self.planner.plan(self.positions, limits or Limits())
        self.gaps += [f"{gap.partition}:{gap.start}-{gap.end}" for gap in plan.gaps]
        got = read(self.spec, plan.splits)
        partitions = dict(plan.positions.partitions)
        for split, end in zip(plan.splits, got.ends, strict=True):
            assert split.start == partitions[split.partition].at
            assert int(end.end) <= int(split.end or 0)
            assert end.rows + end.skipped <= int(end.end) - int(split.start or 0)
            before = partitions[split.partition]
            partitions[split.partition] = replace(before, at=end.end, marks={**before.marks, **end.marks})
        self.positions = replace(plan.positions, partitions=partitions)
        self.rows += got.rows
        self.batches += 1
        return bool(plan.splits)

    def drain(self, limits: Limits | None = None) -> Loader:
        while self.batch(limits):
            pass
        return self

    @property
    def at(self) -> dict[str, str]:
        return {name: state.at for name, state in self.positions.partitions.items()}

    @property
    def numbers(self) -> list[int]:
        return [int(one["n"]) for one in self.rows]
