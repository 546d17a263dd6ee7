"""A service is stopped (SIGSTOP) before its commit, another one takes its job over and commits, and the first goes on.

What it does then is tried, refused and told: it lands no row, and moves neither the record of the job, nor its bad
rows, nor a consumer group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lading.jobs.record import JobRecord, JobState
from lading.store.records import StoredJob
from tests.console.local import LocalLading
from tests.service.lease_rig import TAKEN_WITHIN_S, Shared, Worker, has, holders, until, use_postgres
from tests.service.lease_rig import shared as shared
from tests.store.conftest import postgres as postgres
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

pytestmark = pytest.mark.long

STOP_AT = ("--stop", "commit.before", "2")
"""Its first commit is that of the first batch; the second one is stopped in the middle."""


@dataclass(frozen=True)
class Seen:
    """Everything that a service could move."""

    stored: StoredJob
    bills: list[Any]
    tasks: list[Any]
    objects: list[str]
    """All files beside the table: data, log, bills, bad rows."""
    ids: list[int]


def see(shared: Shared, lading: LocalLading, record: JobRecord) -> Seen:
    return Seen(
        stored=lading.store.load_job_by_id(record.job_id),
        bills=lading.store.list_bills(record.job_id, limit=100),
        tasks=lading.store.list_tasks(record.job_id),
        objects=list(lading.open_target(record).bills.storage.keys("")),
        ids=shared.ids(record.target.partition(".")[2]),
    )


def take_over(shared: Shared, stopped: Worker, name: str, is_loaded: Callable[[], bool]) -> LocalLading:
    """Another service has the job of one that is stopped, has loaded everything, and rests."""
    stopped.wait_for("at", "commit.before")
    two, _ = shared.serve("two")
    took = until(lambda: has(two, name), "another service takes it")
    assert took < TAKEN_WITHIN_S
    until(is_loaded, "and loads it")
    (record,) = (stored.record for stored in two.store.list_jobs())
    until(two.runner(record.job_id).is_idle, "and rests")
    return two


def wake(shared: Shared, stopped: Worker, two: LocalLading, record: JobRecord) -> None:
    """It goes on with its commit, which is refused, and with its record, which is refused; nothing has moved."""
    before = see(shared, two, record)
    stopped.wake()
    until(lambda: len(stopped.logged) >= 2, "the woken service says twice that it is fenced")
    tried, lost = stopped.logged[:2]
    assert tried.startswith("fenced: "), tried
    assert "committed" in tried, tried
    assert f"service {two.leases.service_id} has it" in lost
    until(lambda: len(two.store.list_services()) == 2, "it shows that it lives")
    after = see(shared, two, record)
    assert replace(after, objects=before.objects) == before
    # It may remove what it staged itself: its commit has certainly not landed. The rows are all there still.
    assert set(after.objects) <= set(before.objects)
    removed = set(before.objects) - set(after.objects)
    assert all(each.endswith(".parquet") for each in removed), removed
    # Asked, it says who has the job now, as the other one does.
    runs_in = f"service {two.leases.service_id} on "
    told = [row["How"] for row in stopped.sql(f"EXPLAIN JOB {record.full_name}") if row["What"] == "runs in"]
    assert [each.startswith(runs_in) for each in told] == [True]
    assert holders(two) == {record.name: two.leases.service_id}


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("delta", "disk"),
        ("iceberg", "s3"),
        pytest.param("delta", "s3", marks=pytest.mark.slow),
        pytest.param("iceberg", "disk", marks=pytest.mark.slow),
    ],
)
def test_a_service_that_was_stopped_before_its_commit_lands_and_changes_nothing(
    shared: Shared, request: pytest.FixtureRequest, form: str, place: str
) -> None:
    shared.form, shared.bucket = form, request.getfixturevalue("s3") if place == "s3" else None
    use_postgres(shared, request)  # A process that is stopped while it writes would keep others out of SQLite.
    shared.make("a")
    stopped = shared.worker("one", *STOP_AT)
    shared.put("a", "1.csv", 0, 3, "bad 1")
    until(lambda: shared.ids("a") == [0, 1, 2], "the first batch")
    shared.put("a", "2.csv", 3, 3, "bad 2")
    two = take_over(shared, stopped, "a", lambda: shared.ids("a") == [*range(6)])
    wake(shared, stopped, two, two.job("a"))
    shown = 'SELECT JobRuntimeMsg, LoadStatistic, CurrentOffset FROM jobs("type"="insert")'
    (row,) = two.sql(shown)[-1].dicts()
    assert stopped.sql(shown) == [row]
    assert f"runs in service {two.leases.service_id} on " in row["JobRuntimeMsg"]
    errors = two.sql("SHOW LOAD ERRORS FOR a")[-1].dicts()
    assert stopped.sql("SHOW LOAD ERRORS FOR a") == errors
    assert [each["Raw"] for each in errors] == ["bad 2", "bad 1"]
    shared.put("a", "3.csv", 6, 3)
    until(lambda: shared.ids("a") == [*range(9)], "the next file")
    record = two.job("a")
    assert (record.state, record.counts.failed) == (JobState.RUNNING, 0)
    assert two.verify("a").is_clean
    assert holders(two) == {"a": two.leases.service_id}


class Topic:
    """A topic, the job that loads it, and the group that is told how far it is."""

    def __init__(self, shared: Shared, broker: KafkaBroker) -> None:
        self._name, group = f"t{uuid.uuid4().hex[:8]}", f"g{uuid.uuid4().hex[:8]}"
        Topics(broker).create(self._name, 2)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self._reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
        place = f"{shared.path}/lake/a"
        with shared.home("maker") as lading:
            lading.sql(f"CREATE DATABASE shop; CREATE TABLE shop.a (id BIGINT) USING delta LOCATION '{place}'")
            lading.sql(
                'USE shop; CREATE ROUTINE LOAD a ON a PROPERTIES("max_batch_interval"="5") '
                f'FROM KAFKA("kafka_broker_list"="{broker.bootstrap}", "kafka_topic"="{self._name}", '
                f'"property.group.id"="{group}", "property.kafka_default_offsets"="OFFSET_BEGINNING")'
            )

    def send(self, *ids: int) -> None:
        for each in ids:
            self._producer.produce(self._name, str(each).encode(), partition=each % 2)
        assert self._producer.flush(30) == 0

    def told(self) -> list[int]:
        """What tools that look at the group see."""
        asked = [TopicPartition(self._name, partition) for partition in (0, 1)]
        return [each.offset for each in self._reader.committed(asked, 30)]


def test_it_tells_no_consumer_group_of_kafka(
    shared: Shared, request: pytest.FixtureRequest, broker: KafkaBroker
) -> None:
    use_postgres(shared, request)
    topic = Topic(shared, broker)
    stopped = shared.worker("one", *STOP_AT)
    topic.send(0, 1, 2)
    until(lambda: topic.told() == [2, 1], "the group is told of the first batch")
    topic.send(3, 4)
    two = take_over(shared, stopped, "a", lambda: shared.ids("a") == [*range(5)] and topic.told() == [3, 2])
    record = two.any_job("shop.a")
    wake(shared, stopped, two, record)
    assert topic.told() == [3, 2]
    shown = "SHOW ROUTINE LOAD FOR shop.a"
    (mine,), (others,) = two.sql(shown)[-1].dicts(), stopped.sql(shown)
    assert f"runs in service {two.leases.service_id} on " in mine["OtherMsg"]
    assert [others[each] for each in ("OtherMsg", "Progress")] == [mine[each] for each in ("OtherMsg", "Progress")]
    topic.send(5)
    until(lambda: shared.ids("a") == [*range(6)] and topic.told() == [3, 3], "the next record")
    assert two.verify("shop.a").is_clean


def test_a_service_that_was_stopped_before_it_told_the_group_does_not_set_it_back(
    shared: Shared, request: pytest.FixtureRequest, broker: KafkaBroker
) -> None:
    """Its commit landed and is in the record; what it is about to tell was overtaken while it was stopped."""
    use_postgres(shared, request)
    topic = Topic(shared, broker)
    topic.send(0, 1, 2)
    # What is written in its first turn: that it began, that the job is open, the task, and that this was committed.
    stopped = shared.worker("one", "--stop", "record.after", "4")
    stopped.wait_for("at", "record.after")
    assert (shared.ids("a"), topic.told() == [2, 1]) == ([0, 1, 2], False)
    two, _ = shared.serve("two")
    topic.send(3, 4)
    until(lambda: shared.ids("a") == [*range(5)] and topic.told() == [3, 2], "another one loads, and tells the group")
    stopped.wake()
    until(lambda: len(two.store.list_services()) == 2, "it shows that it lives")
    stopped.sql("SHOW SERVICES")
    for _ in range(20):
        assert topic.told() == [3, 2]
    assert two.any_job("shop.a").state is JobState.RUNNING


def test_a_group_is_told_by_the_next_service_when_the_one_that_committed_was_killed(
    shared: Shared, broker: KafkaBroker
) -> None:
    """Also when no more records come: else tools would show a lag for ever."""
    topic = Topic(shared, broker)
    topic.send(0, 1, 2)
    killed = shared.worker("one", "--die", "commit.after", "1")
    killed.wait_for("at", "commit.after")
    killed.close()
    assert shared.ids("a") == [0, 1, 2]
    assert topic.told() != [2, 1], "it had no time to tell"
    shared.worker("one")
    until(lambda: topic.told() == [2, 1], "the group is told")
    assert shared.ids("a") == [0, 1, 2]


def test_a_service_that_was_stopped_while_it_opened_a_job_fences_nobody(
    shared: Shared, request: pytest.FixtureRequest
) -> None:
    """To open a job commits to its table: that would stop the service that has the job by now, until a person comes."""
    use_postgres(shared, request)
    shared.make("a")
    shared.put("a", "1.csv", 0, 3)
    stopped = shared.worker("one", "--stop", "start.before", "1")
    stopped.wait_for("at", "start.before")
    two, _ = shared.serve("two")
    until(lambda: shared.ids("a") == [*range(3)], "another one loads it")
    record = two.job("a")
    until(two.runner(record.job_id).is_idle, "and rests")
    before = see(shared, two, record)
    stopped.wake()
    until(lambda: len(two.store.list_services()) == 2, "it shows that it lives")
    until(lambda: any("has it" in each for each in stopped.logged), "it says that it lost the job")
    assert see(shared, two, record).bills == before.bills
    shared.put("a", "2.csv", 3, 3)
    until(lambda: shared.ids("a") == [*range(6)], "the next file")
    assert two.job("a").state is JobState.RUNNING
