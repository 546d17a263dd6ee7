"""What is shown of a job is the same whichever of several services is asked, and after a restart of each."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer

from lading.service.views.jobs import JobViews
from tests.console.local import LocalLading
from tests.service.lease_rig import Shared, holders, until, use_postgres
from tests.service.lease_rig import shared as shared
from tests.store.conftest import postgres as postgres
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

pytestmark = pytest.mark.long

OF_ALL = (
    'SELECT * FROM jobs("type"="insert")',
    'SELECT * FROM tasks("type"="insert")',
    "SELECT * FROM information_schema.routine_load_jobs",
    "SHOW JOBS",
    "SHOW ALL ROUTINE LOAD",
    "SHOW TABLES FROM shop",
    "SHOW SERVICES",
)
OF_ONE = (
    "SHOW LOAD ERRORS FOR {job}",
    "SHOW LOAD GAPS FOR {job}",
    "SHOW LOAD AUDIT FOR {job}",
    "EXPLAIN JOB {job}",
)
CLOCKS = {"loadRowsRate", "receivedBytesRate", "taskExecuteTimeMs"}
"""Figures of the moment in which somebody asks."""


def answers(lading: LocalLading, job: str, *more: str) -> dict[str, Any]:
    """Everything that statements and the API tell of a job."""
    views = JobViews(lading)
    told: dict[str, Any] = {
        text: [_lasting(row) for row in lading.sql(f"USE shop; {text.format(job=job)}")[-1].dicts()]
        for text in (*OF_ALL, *OF_ONE, *more)
    }
    told["verified"] = lading.verify(job)
    told["bills"] = views.bills(job)
    told["each bill"] = [views.bill_or_none(job, bill.seq) for bill in views.bills(job)]
    told["batches"] = views.batches(job)
    told["bad rows"] = views.errors(job)
    told["audit"] = views.audit(job)
    told["definition"] = views.definition(job)
    detail = views.one_job(job)
    told |= {"positions": detail.positions, "epoch": detail.epoch, "totals": detail.job.totals}
    told |= {"service": detail.job.service, "batch counts": detail.job.batches, "fault": detail.positions_fault}
    return told


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    row = {name: value for name, value in row.items() if name != "IsThis"}
    if "Statistic" in row:
        row["Statistic"] = {name: value for name, value in json.loads(row["Statistic"]).items() if name not in CLOCKS}
    return {name: value for name, value in row.items() if name != "STATISTIC"}


def without_service(told: dict[str, Any]) -> dict[str, Any]:
    """What must outlive a restart: who runs the job may be another one then."""
    changing = {"SHOW SERVICES", "EXPLAIN JOB {job}", "service"}
    kept = {name: value for name, value in told.items() if name not in changing}
    for rows in kept.values():
        for row in rows if isinstance(rows, list) else []:
            for name in ("JobRuntimeMsg", "OtherMsg"):
                if isinstance(row, dict) and row.get(name):
                    row[name] = row[name].partition("runs in")[0].removesuffix("; ")
    return kept


def compare(shared: Shared, job: str, *more: str) -> dict[str, Any]:
    """Two services, one of which has loaded the job; then each of them is ended and begun again."""
    one, first = shared.serve("one")
    two, second = shared.serve("two")
    until(lambda: len(two.store.list_services()) == 2, "they know each other")
    until(lambda: set(holders(one).values()) & {one.leases.service_id, two.leases.service_id} != set(), "one has it")
    runner = next(each for each in (one, two) if each.leases.service_id in holders(one).values())
    until(runner.runner(one.any_job(job).job_id).is_idle, "it rests")
    told = answers(one, job, *more)
    assert answers(two, job, *more) == told
    assert told["service"].startswith(f"service {runner.leases.service_id} on ")
    for scheduler, lading, name in ((first, one, "one"), (second, two, "two")):
        scheduler.close()
        lading.close()
        again, _ = shared.serve(name)
        until(lambda again=again: len(holders(again)) == 1, "the job has a service")  # type: ignore[misc]
        holder = again if again.leases.service_id in holders(again).values() else None
        if holder is not None:
            until(holder.runner(holder.any_job(job).job_id).is_idle, "it rests")
        assert without_service(answers(again, job, *more)) == without_service(told)
    return told


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_of_a_job_that_loads_files(shared: Shared, kind: str, request: pytest.FixtureRequest) -> None:
    if kind == "postgresql":
        use_postgres(shared, request)
    shared.make("a")
    worker = shared.worker("elsewhere")
    for number in range(3):
        shared.put("a", f"{number}.csv", 2 * number, 2, f"bad {number}")
        until(lambda number=number: shared.ids("a") == [*range(2 * number + 2)], "a batch")  # type: ignore[misc]
    worker.sql("PAUSE JOB WHERE jobName='a'")
    worker.sql("RESUME JOB WHERE jobName='a'")
    worker.close()
    told = compare(shared, "a", "SHOW CREATE JOB a")
    assert [row["Raw"] for row in told["SHOW LOAD ERRORS FOR {job}"]] == ["bad 2", "bad 1", "bad 0"]
    assert [row["Action"] for row in told["SHOW LOAD AUDIT FOR {job}"]] == ["RESUME", "PAUSE", "CREATE"]
    assert len(told['SELECT * FROM tasks("type"="insert")']) == 3
    assert told["totals"].rows.error == 3
    assert told["verified"].is_clean
    assert not list(shared.path.glob("*/quarantine/*/*")), "a home is seen by one service only"


def test_of_a_routine_load(shared: Shared, request: pytest.FixtureRequest, broker: KafkaBroker) -> None:
    use_postgres(shared, request)
    topic = f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(topic, 2)
    with shared.home("maker") as lading:
        lading.sql(f"CREATE DATABASE shop; CREATE TABLE shop.a (id BIGINT) USING delta LOCATION '{shared.path}/lake/a'")
        lading.sql(
            "USE shop; CREATE ROUTINE LOAD a ON a "
            'PROPERTIES("max_batch_interval"="5", "max_error_number"="9", "strict_mode"="true") '
            f'FROM KAFKA("kafka_broker_list"="{broker.bootstrap}", "kafka_topic"="{topic}", '
            '"property.kafka_default_offsets"="OFFSET_BEGINNING")'
        )
    worker = shared.worker("elsewhere")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number, value in enumerate(("0", "bad", "1", "2")):
        producer.produce(topic, value.encode(), partition=number % 2)
    assert producer.flush(30) == 0
    until(lambda: shared.ids("a") == [0, 1, 2], "the records")
    worker.close()
    told = compare(shared, "shop.a", "SHOW CREATE ROUTINE LOAD FOR a", "SHOW ROUTINE LOAD TASK WHERE JobName = 'a'")
    (shown,) = told["SHOW ALL ROUTINE LOAD"]
    assert json.loads(shown["Progress"]) == {"0": "1", "1": "1"}
    assert (shown["Statistic"]["loadedRows"], shown["Statistic"]["errorRows"]) == (3, 1)
    assert [row["Raw"] for row in told["SHOW LOAD ERRORS FOR {job}"]] == ["bad"]


def test_bad_rows_from_before_the_store_was_shared_are_shown_by_the_service_that_has_them(shared: Shared) -> None:
    shared.make("a")
    with shared.home("one") as lading:
        lading._is_alone = True  # As it was then.
        shared.put("a", "1.csv", 0, 1, "old")
        lading.run(["a"])
    with shared.home("one") as lading:
        shared.put("a", "2.csv", 1, 1, "new")
        lading.run(["a"])
        assert bad_rows(lading) == ["new", "old"]
        lading.sql("ADMIN CLEAN ORPHANS")
    with shared.home("two") as lading:
        assert bad_rows(lading) == ["new", ""]
        assert "is not in this home" in str(lading.sql("SHOW LOAD ERRORS FOR a")[-1].rows)


def test_a_link_beside_the_table_does_not_lead_to_files_of_the_machine(shared: Shared) -> None:
    shared.make("a")
    shared.put("a", "1.csv", 0, 1, "bad")
    foreign = shared.path / "foreign.jsonl"
    foreign.write_text('{"file": "x", "row": 1, "reason": "y", "raw": "of somebody else"}\n')
    with shared.home("one") as lading:
        lading.run(["a"])
        (place,) = (shared.path / "lake" / "a" / "_lading").glob("*/quarantine/*.jsonl")
        assert bad_rows(lading) == ["bad"]
        place.unlink()
        place.symlink_to(foreign)
        told = str(lading.sql("SHOW LOAD ERRORS FOR a")[-1].rows)
        assert "leads elsewhere" in told
        assert "somebody else" not in told
        place.unlink()
        assert "is gone" in str(lading.sql("SHOW LOAD ERRORS FOR a")[-1].rows)


def bad_rows(lading: LocalLading) -> list[str]:
    return [row["Raw"] for row in lading.sql("SHOW LOAD ERRORS FOR a")[-1].dicts()]
