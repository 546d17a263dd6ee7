"""Edits that meet other statements, batches, ticks and the end of the process."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.errors import JobChangedError, JobStateError, StorageError, StoreError
from lading.ids import Incarnation, new_token
from lading.jobs.events import Tick
from lading.jobs.record import JobState
from lading.model.batch import BatchPlan, Report, Split
from lading.model.tally import RowCounts
from lading.plan.planner import Planner
from lading.service.edits import edit
from lading.service.edits.undo import prepare_undo
from lading.service.runtime.interrupted import check_not_cut_off
from tests.service.edit_rig import (
    ALTER,
    MOVE,
    NEW,
    OLD,
    OTHER,
    UNDO,
    Killed,
    actions,
    at,
    during_the_edit,
    job,
    kill_during,
    password,
    pause_by_itself,
)
from tests.service.routine_fakes import Desk, FakeKafka, bench

__all__ = ["bench", "job"]


# Other statements, batches and ticks.


def test_a_batch_that_lands_after_undo_looked_is_not_loaded_again(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job.sql(MOVE)

    def plan(self: FakeKafka, ready: Any, limits: Any) -> tuple[Split, ...]:
        return tuple(
            Split(number=number, partition=name, start=state.at, end="90")
            for number, (name, state) in enumerate(sorted(ready.items()))
        )

    class Stager:
        def stage(self, plan: BatchPlan) -> list[Report]:
            return [
                Report(
                    split=split.number,
                    partition=split.partition,
                    start=split.start,
                    end=split.end or "",
                    rows=RowCounts(total=5, unselected=5),
                )
                for split in plan.splits
            ]

    monkeypatch.setattr(FakeKafka, "plan", plan)
    lading, record = job.lading, job.lading.any_job("shop.j")
    compiled, table = lading.compile(record)
    world = CoordinatorPorts(
        table=table,
        bills=table.bills,
        planner=Planner(compiled.source.driver, lading.clock),
        stager=Stager(),
        clock=lading.clock,
        new_token=new_token,
    )
    batch = Coordinator(compiled.job, world, Incarnation("before"))
    run_steps(batch.start())
    steps = batch.run_batch()
    while next(steps) != "commit.before":
        pass
    looked = prepare_undo(lading.session("bob", "shop"), record)
    run_steps(steps)
    with pytest.raises(JobChangedError, match="has loaded 10 rows since it was looked at"):
        edit.commit_edit(lading.session("bob", "shop"), looked)
    assert at(job) == {"0": "90", "1": "90"}
    assert actions(job)[0] == "ALTER"


def test_an_edit_of_what_another_one_changed_meanwhile_is_refused(job: Desk) -> None:
    session, record = job.lading.session("bob", "shop"), job.lading.any_job("shop.j")
    with pytest.raises(JobStateError, match="There is no change"):
        prepare_undo(session, record)
    job.sql(MOVE)
    looked = prepare_undo(session, record)
    job.sql(f'{ALTER} PROPERTIES("max_error_number"="3")')
    with pytest.raises(JobChangedError, match="was altered since it was looked at"):
        edit.commit_edit(session, looked)
    assert at(job)["0"] == "40"


def test_resume_waits_until_an_alter_is_whole(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = job.lading.session("bob", "shop", is_trusted=True)
    resume = threading.Thread(target=bob.sql, args=("RESUME ROUTINE LOAD FOR j",))

    def happens() -> None:
        resume.start()
        resume.join(0.2)
        assert resume.is_alive()

    during_the_edit(monkeypatch, happens)
    job.sql(OTHER)
    resume.join()
    assert actions(job)[:2] == ["RESUME", "ALTER"]
    job.run()
    assert job.show()["State"] == "RUNNING"


def test_a_job_that_would_go_on_by_itself_does_not_while_it_is_edited(
    job: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause_by_itself(job)
    states = []

    def happens() -> None:
        runner = job.lading.runner(job.lading.any_job("shop.j").job_id)
        states.append(runner.apply(Tick(at=job.lading.clock.now())).state)

    during_the_edit(monkeypatch, happens)
    job.sql(OTHER)
    assert states == [JobState.PAUSED]
    assert (password(job), at(job), actions(job)[:2]) == (NEW, {"0": "7"}, ["ALTER", "PAUSE"])


def test_a_pause_is_kept_by_a_job_that_would_go_on_by_itself(job: Desk) -> None:
    pause_by_itself(job)
    job.sql("PAUSE ROUTINE LOAD FOR j")
    runner = job.lading.runner(job.lading.any_job("shop.j").job_id)
    assert runner.apply(Tick(at=job.lading.clock.now())).state is JobState.PAUSED


def test_a_record_that_cannot_be_saved_is_told_as_it_is(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save = job.lading.store.save_job

    def fails(*parts: Any, **more: Any) -> Any:
        if (entry := more.get("audit")) is not None and entry.action == "ALTER":
            msg = "The disk is full"
            raise StoreError(msg)
        return save(*parts, **more)

    with monkeypatch.context() as patch:
        patch.setattr(job.lading.store, "save_job", fails)
        with pytest.raises(JobStateError, match=r"position of job shop.j was moved, but .*The disk is full") as caught:
            job.sql(OTHER)
    assert "Nothing was changed" not in str(caught.value)
    assert password(job) == OLD
    job.sql("RESUME ROUTINE LOAD FOR j; PAUSE ROUTINE LOAD FOR j")
    assert (password(job), at(job)) == (NEW, {"0": "7"})
    assert actions(job)[:3] == ["PAUSE", "RESUME", "ALTER"]
    job.sql(UNDO)
    assert (password(job), at(job)) == (OLD, {"0": "0", "1": "0"})


# The end of the process.


@pytest.mark.parametrize(("statement", "there"), [(MOVE, {"0": "40", "1": "0"}), (OTHER, {"0": "7"})])
def test_an_alter_that_was_cut_off_is_finished_at_the_next_start_and_can_be_taken_back(
    job: Desk, monkeypatch: pytest.MonkeyPatch, statement: str, there: dict[str, str]
) -> None:
    kill_during(job, monkeypatch, statement)
    assert (actions(job)[0], at(job)) == ("ALTER", there)
    assert password(job) == (NEW if statement is OTHER else OLD)
    entry = job.lading.store.list_audit(job_id=job.lading.any_job("shop.j").job_id)[0]
    assert (entry.user, entry.facts["epoch"]) == ("ann", "1")
    assert "finished at the next start" in entry.facts["finished"]
    assert not [key for key in job.lading.store.list_settings() if key.startswith("edit/")]
    job.sql(UNDO)
    assert (password(job), at(job)) == (OLD, {"0": "0", "1": "0"})
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    assert job.show()["State"] == "RUNNING"


def test_an_alter_whose_commit_could_not_be_indexed_is_finished(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit has landed, and what comes after it fails in a process that lives on."""
    with monkeypatch.context() as patched:
        patched.setattr(type(job.lading.store), "follow", _no_follow)
        with pytest.raises(StoreError):
            job.sql(MOVE)
    assert actions(job)[:1] != ["ALTER"]
    job.sql("RESUME ROUTINE LOAD FOR j; PAUSE ROUTINE LOAD FOR j")
    assert "ALTER" in actions(job)
    job.sql(UNDO)


def _no_follow(*_: object) -> None:
    msg = "The store is locked"
    raise StoreError(msg)


def test_an_alter_that_died_before_its_commit_leaves_nothing(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*parts: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(edit, "_commit_move", die)
        with pytest.raises(Killed):
            job.sql(MOVE)
    job.restart()
    assert (actions(job)[0], at(job)) == ("PAUSE", {"0": "0", "1": "0"})
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    kinds = [bill.kind.value for bill in job.lading.bills(job.lading.any_job("shop.j"), 9)]
    assert kinds[0] == "takeover", "a commit that is still under way can no longer land"
    assert not [key for key in job.lading.store.list_settings() if key.startswith("edit/")]


def test_a_table_that_cannot_be_asked_at_the_start_is_asked_before_the_job_runs(
    job: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*parts: Any) -> Any:
        msg = "The bucket is gone"
        raise StorageError(msg)

    with monkeypatch.context() as patch:
        patch.setattr("lading.service.edits.begun.cut_off_edit", gone)
        kill_during(job, monkeypatch, MOVE)
        assert actions(job)[0] == "PAUSE"
        with pytest.raises(StorageError, match="The bucket is gone"):
            job.sql("RESUME ROUTINE LOAD FOR j")
    job.sql("RESUME ROUTINE LOAD FOR j")
    assert (actions(job)[:2], at(job)["0"]) == (["RESUME", "ALTER"], "40")


def test_an_alter_that_was_cut_off_is_noticed_before_the_old_definition_runs(
    job: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_during(job, monkeypatch, OTHER, is_known=False)
    lading, record = job.lading, job.lading.any_job("shop.j")
    assert (record.state, password(job), at(job)) == (JobState.PAUSED, OLD, {"0": "7"})
    coordinator, compiled = lading.coordinator(record)
    assert coordinator.bill is not None
    assert coordinator.bill.kind.value == "takeover"
    with pytest.raises(JobStateError, match=r"cut off between its commit and its record \(ALTER by ann\)"):
        check_not_cut_off(compiled.job, lading.open_target(record).bills, coordinator.bill, record.last_seen)


def test_a_job_whose_alter_was_cut_off_is_paused_until_somebody_decides(
    job: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_during(job, monkeypatch, OTHER, is_known=False)
    for _ in range(2):
        job.sql("RESUME ROUTINE LOAD FOR j")
        job.run()
        reason = job.lading.any_job("shop.j").reason
        assert reason is not None
        assert reason.needs_attention
        assert "was cut off" in reason.message
    job.sql(f"{UNDO}; RESUME ROUTINE LOAD FOR j")
    job.run()
    assert job.show()["State"] == "RUNNING"


def test_an_alter_that_was_cut_off_can_be_taken_back(job: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job.sql(MOVE)
    kill_during(job, monkeypatch, OTHER, is_known=False)
    job.sql(UNDO)
    assert (password(job), at(job)) == (OLD, {"0": "40", "1": "0"})
    assert "which was cut off" in str(job.sql("SHOW LOAD AUDIT FOR shop.j")[0][4])
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    assert job.show()["State"] == "RUNNING"


def test_an_alter_that_was_cut_off_can_be_done_again_and_then_taken_back(
    job: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_during(job, monkeypatch, OTHER, is_known=False)
    job.sql(OTHER)
    assert (password(job), at(job)) == (NEW, {"0": "7"})
    job.sql(UNDO)
    assert (password(job), at(job)) == (OLD, {"0": "0", "1": "0"})
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    assert job.show()["State"] == "RUNNING"


def test_properties_alone_are_altered_after_a_position_was_moved(job: Desk) -> None:
    job.sql(MOVE)
    job.sql(f'{ALTER} PROPERTIES("max_error_number"="3")')
    lading, record = job.lading, job.lading.any_job("shop.j")
    coordinator, compiled = lading.coordinator(record)
    assert coordinator.bill is not None
    check_not_cut_off(compiled.job, lading.open_target(record).bills, coordinator.bill, record.last_seen)


# Sources that were made again.


def test_a_topic_that_was_made_again_begins_anew_when_it_is_named(job: Desk) -> None:
    job.sql(MOVE)
    named = f'{ALTER} FROM KAFKA("kafka_topic"="clicks")'
    with pytest.raises(JobStateError, match="No properties or sql changed"):
        job.sql(named)
    job.world.topics["clicks"] = {"0": 3}
    job.world.made_again["clicks"] = "clicks again"
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    assert "made again" in str(job.show()["ReasonOfStateChanged"])
    assert [row[:4] for row in job.sql(f"EXPLAIN {named}")] == [
        ("partition 0", "40", None, "NEW SOURCE"),
        ("partition 1", "0", None, "NEW SOURCE"),
        ("partition 0", "", "0", "NEW SOURCE"),
    ]
    job.sql(named)
    job.sql("RESUME ROUTINE LOAD FOR j")
    job.run()
    assert (job.show()["State"], at(job)) == ("RUNNING", {"0": "0"})


def test_a_stream_that_was_made_again_keeps_the_shards_that_were_named(bench: Desk) -> None:
    bench.sql(
        'CREATE ROUTINE LOAD j ON t FROM KINESIS("aws.region"="eu-west-1", "kinesis_stream"="s", '
        '"kinesis_shards"="b", "kinesis_shards_pos"="5")'
    )
    bench.run()
    bench.sql("PAUSE ROUTINE LOAD FOR j")
    bench.world.made_again["s"] = "s again"
    bench.sql(f'{ALTER} FROM KINESIS("kinesis_stream"="s", "property.kinesis_default_pos"="TRIM_HORIZON")')
    assert at(bench) == {"b": "TRIM_HORIZON"}
    assert json.loads(bench.show()["DataSourceProperties"])["stream"] == "s"
