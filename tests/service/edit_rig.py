"""A routine load that is edited, and the words to do so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lading.jobs.events import BatchFailed
from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.service.edits import edit
from lading.service.runtime.interrupted import drop_begun
from lading.testing.marked import secret
from tests.service.routine_fakes import Desk

OLD, NEW = secret("old"), secret("new")

CREATE = (
    'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json") FROM KAFKA("kafka_broker_list"="h:1", '
    f'"kafka_topic"="clicks", "property.kafka_default_offsets"="OFFSET_BEGINNING", "property.sasl.password"="{OLD}")'
)
ALTER = "ALTER ROUTINE LOAD FOR j"
MOVE = f'{ALTER} FROM KAFKA("kafka_partitions"="0", "kafka_offsets"="40")'
OTHER = f'{ALTER} FROM KAFKA("kafka_topic"="orders", "property.sasl.password"="{NEW}")'
UNDO = "UNDO ALTER ROUTINE LOAD FOR j"


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def job(bench: Desk) -> Desk:
    bench.world.topics["orders"] = {"0": 7}
    bench.sql(CREATE)
    bench.run()
    bench.sql("PAUSE ROUTINE LOAD FOR j")
    return bench


def password(job: Desk) -> str:
    return str(job.lading.load_of(job.lading.any_job("shop.j")).source.properties["property.sasl.password"])


def at(job: Desk) -> dict[str, str]:
    positions = job.lading.bills(job.lading.any_job("shop.j"), 1)[0].positions
    return {name: state.at for name, state in positions.partitions.items()}


def actions(job: Desk) -> list[str]:
    return [str(row[2]) for row in job.sql("SHOW LOAD AUDIT FOR shop.j")]


def pause_by_itself(job: Desk) -> None:
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    reason = Reason(code=ReasonCode.GET_REMOTE_DATA_ERROR, message="down")
    runner = job.lading.runner(job.lading.any_job("shop.j").job_id)
    runner.apply(BatchFailed(task_id=None, failure=Failure(reason=reason), at=job.lading.clock.now()))


def during_the_edit(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Between the commit of an edit and its record."""
    commit = edit._commit_move

    def then(*parts: Any) -> Any:
        done = commit(*parts)
        happens()
        return done

    monkeypatch.setattr(edit, "_commit_move", then)


def kill_during(job: Desk, monkeypatch: pytest.MonkeyPatch, statement: str, *, is_known: bool = True) -> None:
    """The process dies between commit and record. `is_known`: the store still has what was begun."""

    def die() -> None:
        raise Killed

    with monkeypatch.context() as patch:
        during_the_edit(patch, die)
        with pytest.raises(Killed):
            job.sql(statement)
    if not is_known:
        drop_begun(job.lading.store, job.lading.any_job("shop.j").job_id)
    job.restart()
