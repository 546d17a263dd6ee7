"""LATEST and OFFSET_END mean the moment of CREATE, whenever the first run is and wherever a process died before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lading import failpoints
from lading.errors import ListingError, StorageError, UnknownOutcomeError
from lading.jobs.record import JobState
from lading.model.bill import BillKind
from tests.service.routine_fakes import Desk
from tests.service.routine_fakes import bench as bench

KAFKA = (
    'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json") FROM KAFKA("kafka_broker_list"="h:1", '
    '"kafka_topic"="clicks", "property.kafka_default_offsets"="OFFSET_END")'
)
KINESIS = (
    'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json") FROM KINESIS("aws.region"="eu-west-1", '
    '"kinesis_stream"="clicks", "property.kinesis_default_pos"="LATEST")'
)
AT_CREATE = {"0": "100", "1": "50"}


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


def raising(error: BaseException) -> Callable[[str], None]:
    def action(_name: str) -> None:
        raise error

    return action


def at(desk: Desk) -> dict[str, str]:
    bill = desk.lading.bills(desk.lading.any_job("shop.j"), 1)[0]
    return {name: state.at for name, state in bill.positions.partitions.items()}


def grow(desk: Desk) -> None:
    desk.world.topics["clicks"] = {"0": 140, "1": 90, "2": 5}


def test_rows_between_create_and_the_first_run_are_loaded(bench: Desk) -> None:
    bench.sql(KAFKA)
    grow(bench)
    bench.run()
    assert at(bench) == AT_CREATE
    bills = bench.lading.bills(bench.lading.any_job("shop.j"), 9)
    assert [bill.kind for bill in bills] == [BillKind.OPENING], "nobody is left to fence after CREATE"
    assert bench.show()["State"] == "RUNNING"


def test_a_stream_of_kinesis_is_opened_by_create(bench: Desk) -> None:
    bench.sql(KINESIS)
    assert at(bench) == {"a": "AFTER 900", "b": "AFTER 900", "c": "AFTER 900"}


def test_create_leaves_the_job_waiting_and_shows_where_it_begins(bench: Desk) -> None:
    bench.sql(KAFKA)
    shown = bench.show()
    assert shown["State"] == "NEED_SCHEDULE"
    assert shown["Progress"] == '{"0":"99","1":"49"}'
    assert not [key for key in bench.lading.store.list_settings() if key.startswith("created/")]


@pytest.mark.parametrize(
    "where",
    ["create.recorded", "start.before", "bill.before", "bill.after", "commit.before", "commit.after", "create.opened"],
)
def test_a_process_that_dies_inside_create_leaves_a_job_that_begins_at_create(bench: Desk, where: str) -> None:
    failpoints.arm(where, raising(Killed()))
    with pytest.raises(Killed):
        bench.sql(KAFKA)
    failpoints.disarm_all()
    bench.restart()
    grow(bench)
    bench.run()
    assert at(bench) == AT_CREATE
    assert bench.lading.any_job("shop.j").state is JobState.RUNNING
    assert [row[2] for row in bench.sql("SHOW LOAD AUDIT FOR shop.j")] == ["CREATE"]


def test_a_process_that_dies_before_the_record_leaves_no_job(bench: Desk) -> None:
    failpoints.arm("create.kept", raising(Killed()))
    with pytest.raises(Killed):
        bench.sql(KAFKA)
    failpoints.disarm_all()
    bench.restart()
    assert bench.sql("SHOW ALL ROUTINE LOAD") == []
    grow(bench)
    bench.sql(KAFKA)
    assert at(bench) == {"0": "140", "1": "90", "2": "5"}


def test_a_source_that_cannot_be_reached_makes_no_job(bench: Desk) -> None:
    bench.world.is_down = True
    with pytest.raises(ListingError, match="The broker is down"):
        bench.sql(KAFKA)
    assert bench.sql("SHOW ALL ROUTINE LOAD") == []
    assert not [key for key in bench.lading.store.list_settings() if key.startswith("created/")]
    bench.world.is_down = False
    bench.sql(KAFKA)


def test_a_table_that_refuses_the_opening_leaves_no_job(bench: Desk) -> None:
    failpoints.arm("commit.before", raising(StorageError("The bucket is gone")))
    with pytest.raises(StorageError, match="The bucket is gone"):
        bench.sql(KAFKA)
    failpoints.disarm_all()
    assert bench.sql("SHOW ALL ROUTINE LOAD") == []
    assert not [key for key in bench.lading.store.list_settings() if key.startswith("created/")]
    bench.sql(KAFKA)
    bench.run()
    assert at(bench) == AT_CREATE


def test_an_opening_of_which_nobody_knows_is_found_out_by_the_first_run(bench: Desk) -> None:
    failpoints.arm("commit.after", raising(UnknownOutcomeError("The answer was lost")))
    with pytest.raises(UnknownOutcomeError, match="begins at the positions of this moment"):
        bench.sql(KAFKA)
    failpoints.disarm_all()
    grow(bench)
    bench.run()
    assert at(bench) == AT_CREATE
    assert bench.show()["State"] == "RUNNING"
