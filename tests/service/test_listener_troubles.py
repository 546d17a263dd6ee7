"""Telling the listeners of one job: what fails is tried after the others, and files do not go back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from lading.commit.partitions import partition_name
from lading.errors import UnavailableError
from lading.model.bill import Bill
from lading.model.notices import Notice, PartitionField
from lading.service.runtime.listener_types import DonePartition, SuccessFile
from lading.service.runtime.listeners import JobListeners
from lading.tables.base import LakeTable
from lading.testing.clock import ManualClock
from tests.tables.drive import SPEC, START, driver, new_job
from tests.tables.rig_delta import delta_local


@pytest.fixture
def told(tmp_path: Path) -> tuple[LakeTable, Bill]:
    """A table, and the bill after its first batch."""
    rig, job = delta_local(tmp_path, None), new_job()
    table = rig.create("t", SPEC)
    made = driver(rig, table, job)
    made.start()
    bill = made.run_batch()
    assert bill is not None
    return cast("LakeTable", table), bill


def notice(city: str, seq: int = 1) -> Notice:
    name = partition_name((PartitionField(name="city"),), {"city": city})
    return Notice(listener="d", partition=name, seq=seq, rows=1, folder=f"city={city[:20]}", marked_at=START)


@dataclass(slots=True)
class Picky:
    """Takes no notice about some partitions, or none at all."""

    refused: set[str]
    is_down: bool = False
    asked: list[str] = field(default_factory=list)

    def tell(self, bill: Bill, notice: Notice) -> None:
        self.asked.append(notice.partition)
        if self.is_down or notice.partition in self.refused:
            msg = f"No answer about {notice.partition}"
            raise UnavailableError(msg, left="The notice stays pending.", todo="Check the receiver.")


def test_a_notice_that_is_never_taken_does_not_keep_others_back(told: tuple[LakeTable, Bill]) -> None:
    clock, picky = ManualClock(), Picky({"city=bad"})
    listeners, pending = JobListeners({"d": picky}, clock), [notice("bad"), notice("x"), notice("y")]
    assert listeners.tell(told[1], pending) == []
    assert (picky.asked, listeners.is_due(pending)) == (["city=bad"], False)
    clock.sleep(10)
    assert listeners.tell(told[1], pending) == [notice("x").key, notice("y").key]
    assert (picky.asked[1:], listeners.failures[0].tries) == (["city=x", "city=y", "city=bad"], 2)
    clock.sleep(10)  # The bad one waits for 20 seconds by now, and what is new does not.
    pending = [notice("bad"), notice("z")]
    assert listeners.tell(told[1], pending) == [notice("z").key]
    assert not listeners.is_due([notice("bad")])
    assert [failure.error for failure in listeners.failures] == ["No answer about city=bad"]
    listeners.tell(told[1], [notice("w")])  # A newer commit took its place, or the partition is not told of any more.
    assert listeners.failures == ()


def test_a_listener_that_is_down_is_tried_once_and_left_alone(told: tuple[LakeTable, Bill]) -> None:
    clock, picky = ManualClock(), Picky(set(), is_down=True)
    listeners, pending = JobListeners({"d": picky}, clock), [notice(str(number)) for number in range(50)]
    for tries, wait_s in ((1, 10), (2, 20), (3, 40)):
        assert listeners.tell(told[1], pending) == []
        assert (len(picky.asked), [failure.tries for failure in listeners.failures]) == (tries, [tries])
        clock.sleep(wait_s - 1)
        assert not listeners.is_due(pending)
        clock.sleep(1)
    picky.is_down = False
    clock.sleep(600)
    assert len(listeners.tell(told[1], pending)) == 50
    assert listeners.failures == ()


def test_a_long_value_has_a_done_file_too(told: tuple[LakeTable, Bill]) -> None:
    table, bill = told
    for city in ("\u4e2d" * 26, "x" * 10_000, "x"):
        DonePartition("a.b", table).tell(bill, notice(city))
        content = table.bills.storage.get(f"_done/{notice(city).partition}.done")
        assert json.loads(content or b"")["partition"] == notice(city).partition


@pytest.mark.parametrize(("kind", "key"), [(SuccessFile, "city=x/_SUCCESS"), (DonePartition, "_done/city=x.done")])
def test_a_process_that_was_stopped_for_long_does_not_put_an_older_file_in_place(
    told: tuple[LakeTable, Bill], kind: type[SuccessFile | DonePartition], key: str
) -> None:
    table, bill = told

    def seq_after(teller: Bill, seq: int) -> int:
        kind("a.b", table).tell(teller, notice("x", seq))
        return int(json.loads(table.bills.storage.get(key) or b"")["seq"])

    assert [seq_after(bill, seq) for seq in (5, 9, 7, 9, 10)] == [5, 9, 9, 9, 10]
    other = replace(bill, job_id=new_job().job_id)
    assert seq_after(other, 2) == 2  # Another job is no newer one, whatever its numbers.
    table.bills.storage.delete([key])
    table.bills.storage.put_if_absent(key, b"somebody else's")
    assert seq_after(other, 3) == 3
