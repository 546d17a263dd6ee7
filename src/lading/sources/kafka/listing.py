"""What the brokers tell about a topic. One request for all partitions, and a bounded time for each question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lading.clock import Clock
from lading.errors import ListingError
from lading.net.resolve import Names
from lading.sources.kafka.client import Complaints, open_admin, without_secrets
from lading.sources.kafka.epochs import check_not_cut
from lading.sources.kafka.errors import closed_broker, topic_missing, unreachable
from lading.sources.kafka.spec import KafkaSpec

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""How brokers that know no topic ids write one."""
_SLACK_S = 1.0
_AGAIN_S = 0.1
_PASSING = frozenset(
    (
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PART",
        "_UNKNOWN_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
    )
)
_LATEST, _EARLIEST = -1, -2
"""Places that Kafka's protocol has numbers for, where others are milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as it is now."""

    incarnation: str
    """Its id, which no other topic ever has. Empty: the brokers are too old to have ids."""
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Offsets that can be read, per partition."""

    low: Mapping[int, int]
    """The first that is left."""
    end: Mapping[int, int]
    """The next after the last that is decided: behind it are open transactions, or nothing yet."""
    epoch: Mapping[int, int] = field(default_factory=dict)
    """Which leader said so, counted in elections. Brokers before 2.1 do not tell."""


class Cluster:
    """Asks about one topic. The connection is kept between questions."""

    def __init__(self, spec: KafkaSpec, clock: Clock, *, timeout_s: float = 10.0) -> None:
        self._spec = spec
        self._clock = clock
        self._timeout_s = timeout_s
        self._admin: AdminClient | None = None
        self._complaints: Complaints | None = None
        self._names = Names(clock)
        self._is_checked = False

    def topic(self) -> Topic:
        """Id and partitions. Raises ListingError."""
        from confluent_kafka import TopicCollection

        self._check_cluster()
        names = TopicCollection([self._spec.topic])
        asked = self._client().describe_topics(names, request_timeout=self._timeout_s)
        told = self._answer(asked[self._spec.topic])
        self._check_brokers(told)
        identity = str(told.topic_id) if told.topic_id is not None else ""
        return Topic(
            incarnation="" if identity == _NO_ID else identity,
            partitions=tuple(sorted(part.id for part in told.partitions)),
        )

    def bounds(self, partitions: Iterable[int]) -> Bounds:
        """Lows and ends of partitions, asked at the same time."""
        numbers = tuple(partitions)
        low, end = self._answers(dict.fromkeys(numbers, _EARLIEST), dict.fromkeys(numbers, _LATEST))
        epochs = {number: told.leader_epoch for number, told in end.items()}
        return Bounds(
            low=_offsets(low),
            end=_offsets(end),
            epoch={number: epoch for number, epoch in epochs.items() if epoch is not None and epoch >= 0},
        )

    def high_watermarks(self, partitions: Iterable[int]) -> dict[int, int]:
        """Ends of partitions, open transactions included."""
        (ends,) = self._answers(dict.fromkeys(partitions, _LATEST), committed=False)
        return _offsets(ends)

    def at_times(self, times: Mapping[int, datetime]) -> dict[int, int | None]:
        """The first offset at or after a time, per partition; None when no record is that new."""
        (found,) = self._answers({number: int(time.timestamp() * 1000) for number, time in times.items()})
        return {number: None if offset < 0 else offset for number, offset in _offsets(found).items()}

    def check_not_cut(self, places: Mapping[int, tuple[int, int]]) -> None:
        """By partition, an offset and the epoch of the leader that had everything before it. Raises SourceError."""
        check_not_cut(self._spec, self._clock, places, self._timeout_s)

    def _check_cluster(self) -> None:
        """The same of all brokers, as those that the statement names tell: the next question goes to the controller."""
        if self._is_checked:
            return
        from confluent_kafka import KafkaException

        try:
            told = self._client().list_topics(self._spec.topic, timeout=self._timeout_s)
        except KafkaException:
            return  # Nobody was told of, so nobody else is asked; the question that follows says what is wrong.
        self._check_hosts(str(broker.host) for broker in told.brokers.values())
        self._is_checked = True

    def _check_brokers(self, described: Any) -> None:
        """Refuse brokers that the cluster tells of and that the job must not reach, before one of them is read from."""
        nodes = [node for part in described.partitions for node in (part.leader, *part.replicas, *part.isr) if node]
        self._check_hosts(str(node.host) for node in nodes if node.host)

    def _check_hosts(self, hosts: Iterable[str]) -> None:
        for host in sorted(set(hosts)):
            if self._spec.addresses.refusal(host, self._names.addresses(host)) is not None:
                raise closed_broker(self._spec.topic, host)

    def close(self) -> None:
        """Let go of the connection, which others may share; another question takes it again."""
        self._admin = None

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin, self._complaints = open_admin(self._spec)
        return self._admin

    def _answers(self, *questions: Mapping[int, int], committed: bool = True) -> list[dict[int, Any]]:
        """What is told of places. A leader that is just being chosen is asked again while there is time."""
        until_s = self._clock.monotonic_s() + self._timeout_s
        while True:
            asked = [self._ask(wanted, committed=committed) for wanted in questions]
            try:
                return [
                    {number: self._answer(future, number) for number, future in futures.items()} for futures in asked
                ]
            except ListingError as error:
                if error.facts.get("reason") not in _PASSING or self._clock.monotonic_s() >= until_s:
                    raise
                self._clock.sleep(_AGAIN_S)

    def _ask(self, wanted: Mapping[int, int], *, committed: bool) -> dict[int, Future[Any]]:
        from confluent_kafka import IsolationLevel, TopicPartition, admin

        if not wanted:
            return {}
        offset_spec: Any = vars(admin)["OffsetSpec"]
        asked = self._client().list_offsets(
            {TopicPartition(self._spec.topic, number): offset_spec(place) for number, place in wanted.items()},
            isolation_level=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
            request_timeout=self._timeout_s,
        )
        return {place.partition: future for place, future in asked.items()}

    def _answer(self, future: Future[Any], partition: int | None = None) -> Any:
        from confluent_kafka import KafkaException

        spec = self._spec
        place = "" if partition is None else f"partition {partition}: "
        try:
            return future.result(timeout=self._timeout_s + _SLACK_S)
        except FutureTimeoutError as error:
            raise unreachable(spec.topic, spec.brokers, self._explain(f"{place}no answer in time")) from error
        except KafkaException as error:
            reason = error.args[0]
            if partition is None and reason.name() == "UNKNOWN_TOPIC_OR_PART":
                raise topic_missing(spec.topic, spec.brokers) from error
            told = self._explain(f"{place}{without_secrets(spec, reason.str())}")
            raise unreachable(spec.topic, spec.brokers, told, reason.name()) from error

    def _explain(self, what: str) -> str:
        # Complaints are delivered only when the client is polled.
        self._client().poll(0)
        return self._complaints.explain(what) if self._complaints is not None else what


def _offsets(answers: Mapping[int, Any]) -> dict[int, int]:
    return {number: told.offset for number, told in answers.items()}
