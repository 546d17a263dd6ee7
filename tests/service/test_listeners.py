"""Telling others which partitions are complete, from the statement to what they see."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lading.failpoints import arm, disarm_all
from tests.service.listener_rig import CSV, IDLE, ClockedDesk
from tests.support.hook_server import HookServer, hook_server


@pytest.fixture
def clocked(tmp_path: Path, spark: SparkSession) -> Iterator[ClockedDesk]:
    made = ClockedDesk(tmp_path, spark)
    yield made
    made.lading.close()
    disarm_all()


@pytest.fixture
def hooks() -> Iterator[HookServer]:
    with hook_server() as made:
        yield made


def test_a_partition_that_was_idle_is_done_and_marked_again_when_rows_come_later(
    clocked: ClockedDesk, hooks: HookServer
) -> None:
    desk = clocked
    desk.create_job(
        f"{IDLE}, 'listener.mark.type'='success_file', 'listener.hook.type'='http', 'listener.hook.url'='{hooks.url}'"
    )
    desk.load("a.csv", "1,x,2026-01-01 00:00:00", "2,x,2026-01-01 00:00:00", "3,y,2026-01-01 00:00:00")
    assert (desk.marks(), hooks.requests) == ({}, [])
    assert desk.statistic() | {"openPartitions": 2, "pendingNotices": 0, "partitionsMarkedDone": 0} == desk.statistic()
    desk.clock.sleep(1800)
    desk.load("b.csv", "4,y,2026-01-01 00:00:00")
    desk.restart()  # The clock of x goes on.
    desk.clock.sleep(1800)
    desk.run()
    assert desk.marks().keys() == {"dt=x"}
    first = desk.marks()["dt=x"]
    assert first | {"table": "shop.t", "partition": "dt=x", "seq": 1, "rows": 2, "again": False} == first
    assert [(body["partition"], body["rows"]) for body in hooks.bodies] == [("dt=x", 2)]
    assert hooks.keys == [f"{desk.bill().job_id}/1/dt=x/hook"]
    desk.clock.sleep(1800)
    desk.run()
    assert [(body["partition"], body["rows"]) for body in hooks.bodies] == [("dt=x", 2), ("dt=y", 2)]
    desk.load("c.csv", "5,x,2026-01-01 00:00:00")
    assert desk.statistic()["rowsAfterDone"] == 1
    desk.clock.sleep(3600)
    desk.run()
    assert [(body["partition"], body["rows"], body["again"]) for body in hooks.bodies][2:] == [("dt=x", 1, True)]
    assert (desk.marks()["dt=x"]["again"], desk.marks()["dt=x"]["rows"]) == (True, 1)
    # All is said, and the bill keeps no more than names.
    told = desk.statistic()
    assert told | {"openPartitions": 0, "partitionsMarkedDone": 3, "pendingNotices": 0} == told
    assert (desk.bill().listening.open, desk.bill().listening.notices) == ({}, ())
    desk.restart()
    desk.run()
    assert len(hooks.requests) == 3
    assert desk.ids("t") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("form", "folder"), [("delta", ""), ("iceberg", "data/"), ("paimon", "")])
def test_partitions_are_told_of_after_each_commit_that_writes_to_them(
    clocked: ClockedDesk, form: str, folder: str
) -> None:
    clocked.create_job("'partition.idle_time_to_done'='0 seconds', 'listener.mark.type'='success_file'", form)
    clocked.load("a.csv", "1,x,2026-01-01 00:00:00", "2,x y/z,2026-01-01 00:00:00", "3,x,2026-01-01 00:00:00")
    told = {(mark["partition"], mark["rows"], mark["seq"]) for mark in clocked.marks().values()}
    assert told == {("dt=x", 2, 1), ("dt=x%20y%2Fz", 1, 1)}
    assert clocked.marks()[f"{folder}dt=x"]["rows"] == 2
    assert (clocked.ids("t"), clocked.bill().listening.notices) == ([1, 2, 3], ())


def test_a_table_without_partitions_is_one(clocked: ClockedDesk) -> None:
    clocked.create_job("'partition.idle_time_to_done'='0 seconds', 'listener.mark.type'='success_file'", by="")
    clocked.load("a.csv", "1,x,2026-01-01 00:00:00")
    clocked.load("b.csv", "2,x,2026-01-01 00:00:00", "3,x,2026-01-01 00:00:00")
    mark = clocked.marks()["."]
    assert mark | {"partition": "", "rows": 2, "again": True} == mark


def test_a_listener_that_fails_is_shown_and_tried_again_and_the_load_goes_on(
    clocked: ClockedDesk, hooks: HookServer
) -> None:
    desk, hooks.status = clocked, 503
    desk.create_job(
        "'partition.idle_time_to_done'='0 seconds', 'listener.hook.type'='http', "
        f"'listener.hook.url'='{hooks.url}', 'listener.mark.type'='success_file'"
    )
    desk.load("a.csv", "1,x,2026-01-01 00:00:00")
    assert desk.statistic()["failedListeners"] == {"hook": "The answer had status 503 (try 1)"}
    assert (desk.statistic()["pendingNotices"], len(hooks.requests), desk.show("Status")) == (1, 1, "RUNNING")
    assert desk.marks().keys() == {"dt=x"}  # Others are told meanwhile, and not held up.
    runner = desk.lading.runner(desk.lading.job("j").job_id)
    assert runner.is_idle()
    desk.load("b.csv", "2,x,2026-01-01 00:00:00")
    assert (len(hooks.requests), desk.ids("t")) == (1, [1, 2])  # It is left alone for ten seconds.
    desk.clock.sleep(10)
    assert not runner.is_idle()  # A service that has nothing to read comes back for this.
    hooks.status, hooks.headers = 302, {"Location": hooks.url}
    desk.run()
    assert desk.statistic()["failedListeners"]["hook"].startswith("The answer had status 302, a redirect")
    desk.clock.sleep(19)
    desk.run()
    assert len(hooks.requests) == 2  # Twice as long now, and a redirect is not followed.
    desk.clock.sleep(1)
    hooks.status = 204
    desk.run()
    # One notice for both commits: of the newest, with the rows of both.
    assert hooks.bodies[-1] | {"seq": 3, "rows": 2} == hooks.bodies[-1]
    assert "failedListeners" not in desk.statistic()
    assert desk.statistic()["pendingNotices"] == 0


def test_partitions_are_done_when_the_watermark_has_passed_their_end(clocked: ClockedDesk) -> None:
    desk = clocked
    desk.create_job(
        "'watermark.column'='at', 'watermark.delay'='1 hour', 'partition.mark_done_mode'='watermark', "
        "'listener.mark.type'='success_file', 'listener.list.type'='done_partition', 'listener.tag.type'='tag'",
        "iceberg",
        by="PARTITIONED BY (days(at))",
    )
    desk.load("a.csv", "1,x,2026-01-01 12:00:00", "2,x,2026-01-02 00:30:00")
    assert desk.marks() == {}  # The watermark is at half past eleven.
    desk.clock.sleep(86400)
    desk.run()
    assert (desk.marks(), desk.statistic()["openPartitions"]) == ({}, 2)
    desk.load("b.csv", "3,y,2026-01-02 01:00:00", "4,y,2026-01-01 23:59:59")
    told = desk.marks()["data/at_day=2026-01-01"]
    assert told | {"partition": "at_day=2026-01-01", "rows": 2, "seq": 2, "again": False} == told
    assert desk.marks("*.done") == {"_done": told}
    refs = desk.lading.catalog.open_table("shop", "t").handle.load().metadata.refs  # type: ignore[attr-defined]
    assert refs.keys() == {"main", "lading-j-at_day=2026-01-01"}
    assert desk.statistic() | {"openPartitions": 1, "partitionsMarkedDone": 1, "pendingNotices": 0} == desk.statistic()
    desk.load("c.csv", "5,y,2026-01-05 00:00:00")  # Tags and marks are in nobody's way.
    assert (desk.ids("t"), desk.statistic()["partitionsMarkedDone"]) == ([1, 2, 3, 4, 5], 2)


def test_rows_for_a_partition_that_is_over_are_counted_and_it_is_marked_again(clocked: ClockedDesk) -> None:
    desk = clocked
    desk.create_job(
        "'watermark.column'='at', 'partition.mark_done_mode'='watermark', 'partition.time_interval'='1 day', "
        "'partition.timestamp_formatter'='yyyy-MM-dd', 'partition.time_zone'='Europe/Berlin', "
        "'listener.mark.type'='success_file', 'listener.tag.type'='tag'"
    )
    desk.load("a.csv", "1,2026-01-01,2026-01-01 22:00:00", "2,soon,2026-01-01 22:00:00")
    assert (desk.marks(), desk.statistic()["partitionsNotFollowed"]) == ({}, 1)
    desk.load("b.csv", "3,2026-01-02,2026-01-01 23:00:00")  # Midnight in Berlin.
    assert desk.marks().keys() == {"dt=2026-01-01"}
    desk.load("c.csv", "4,2026-01-01,2026-01-02 12:00:00", "5,2026-01-01,2026-01-02 12:00:00")
    told = desk.marks()["dt=2026-01-01"]
    assert (told["rows"], told["again"], desk.statistic()["rowsAfterDone"]) == (2, True, 2)
    table = DeltaTable(desk.lading.catalog.open_table("shop", "t").location)
    said = json.loads(table.metadata().configuration["lading.done.j"] or "{}")
    assert sorted(table.protocol().writer_features or []) == ["timestampNtz"]  # For the tag nothing is asked of others.
    assert {name: each["seq"] for name, each in said.items()} == {"dt=2026-01-01": told["seq"]}


def test_partitions_of_results_wait_for_the_last_window(clocked: ClockedDesk) -> None:
    desk = clocked
    desk.sql("CREATE TABLE r (d DATE, n BIGINT) USING delta PARTITIONED BY (d)")
    desk.sql(
        "CREATE JOB j PROPERTIES('file.settle_seconds'='0', 'watermark.column'='at', "
        "'partition.mark_done_mode'='watermark', 'listener.mark.type'='success_file') ON STREAMING DO "
        "INSERT INTO r SELECT cast(window_start AS DATE), count(*) "
        f"FROM FILE('uri'='{desk.inbox}/*.csv', {CSV}) GROUP BY window(at, '1 hour', '30 minutes')"
    )
    place = Path(unquote(urlsplit(desk.lading.catalog.open_table("shop", "r").location).path))
    desk.put_rows("a.csv", "1,x,2026-01-01 23:40:00")
    desk.run()
    for name, at, is_done in (("b.csv", "2026-01-02 00:30:00", False), ("c.csv", "2026-01-02 01:00:00", True)):
        desk.put_rows(name, f"2,x,{at}")
        desk.run()
        # Two windows begin on the first day. The second ends at half past midnight of the next.
        assert (place / "d=2026-01-01" / "_SUCCESS").exists() is is_done
    assert json.loads((place / "d=2026-01-01" / "_SUCCESS").read_text())["rows"] == 2


class Killed(BaseException):
    """The process is gone here."""


def die(name: str) -> None:
    raise Killed(name)


@pytest.mark.parametrize("step", ["commit.after", "follow.before", "follow.after"])
def test_a_kill_between_commit_and_listener_tells_what_is_missing_and_nothing_else(
    clocked: ClockedDesk, hooks: HookServer, step: str
) -> None:
    desk = clocked
    desk.create_job(
        f"'partition.idle_time_to_done'='0 seconds', 'listener.hook.type'='http', 'listener.hook.url'='{hooks.url}'"
    )
    desk.load("a.csv", "1,x,2026-01-01 00:00:00")
    desk.put_rows("b.csv", "2,y,2026-01-01 00:00:00")
    arm(step, die)
    with pytest.raises(Killed):
        desk.lading.runner(desk.lading.job("j").job_id).run_once()
    disarm_all()
    told = len(hooks.requests)
    assert told == (2 if step == "follow.after" else 1)
    desk.restart()
    desk.run()
    # At least once, with the same key; and of x, which the bills know to be told, never again.
    assert [body["partition"] for body in hooks.bodies] == ["dt=x", *["dt=y"] * (told)]
    assert len(set(hooks.keys)) == 2
    desk.restart()
    desk.run()
    assert (len(hooks.requests), desk.ids("t")) == (1 + told, [1, 2])


def test_the_example_of_the_page_runs(clocked: ClockedDesk, hooks: HookServer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "listeners.md").read_text().replace("/data/visits", str(clocked.inbox))
    [create] = re.findall(r"```sql\n(.*?)```", page.replace("https://etl.example.com/partitions", hooks.url), re.DOTALL)
    clocked.sql(create)
    clocked.put("a.csv", ["1,/a,2026-01-01"], header="id,page,dt")
    os.utime(clocked.inbox / "a.csv", (0, 0))  # It has settled.
    clocked.run()
    clocked.clock.sleep(15 * 60)
    clocked.run()
    [body] = hooks.bodies
    assert (body["partition"], body["rows"], body["table"]) == ("dt=2026-01-01", 1, "shop.visits")
    assert set(body) == {"job", "job_id", "table", "partition", "seq", "rows", "again", "done_at", "listener"}
