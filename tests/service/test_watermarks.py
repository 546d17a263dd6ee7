"""Event time, from the statement to the table: watermarks, late rows, and rows that come twice."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.commit.next_bill import Stamp, draft_load
from lading.commit.steps import STEP_NAMES
from lading.errors import SqlError
from lading.failpoints import arm, disarm_all
from lading.ids import Token
from lading.model.batch import BatchPlan
from tests.service.conftest import Desk

CSV = '"format"="csv_with_names", "column_separator"=","'


def create(desk: Desk, properties: str, form: str = "delta") -> None:
    desk.sql(f"CREATE TABLE t (id BIGINT, at DATETIME) USING {form}")
    desk.sql(
        f"CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO t SELECT id, at "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV})'
    )


def put(desk: Desk, name: str, *rows: str) -> None:
    desk.put(name, list(rows), header="id,at")


def ids(desk: Desk) -> list[int]:
    return sorted(desk.lading.catalog.open_table("shop", "t").scan().column("id").to_pylist())


def statistic(desk: Desk) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        str(desk.sql('SELECT LoadStatistic FROM jobs("type"="insert") WHERE Name = \'j\'')[0][0])
    )
    return found


def test_rows_behind_the_watermark_of_the_bill_before_are_late(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'watermark.delay'='10 minutes'")
    # All of one batch are judged by the bill before it: there is none, so none is late.
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "2,2026-01-01 01:00:00")
    desk.run()
    assert statistic(desk) | {"watermark": "2026-01-01 11:50:00+00:00", "lateRows": 0} == statistic(desk)
    put(desk, "b.csv", "3,2026-01-01 11:50:00", "4,2026-01-01 11:49:59", "5,2026-01-01 12:30:00")
    desk.run()
    assert ids(desk) == [1, 2, 3, 5]
    assert statistic(desk) | {"watermark": "2026-01-01 12:20:00+00:00", "lateRows": 1} == statistic(desk)
    bill = desk.lading.bills(desk.lading.job("j"), 1)[0]
    assert (bill.tally.rows.loaded, bill.tally.rows.late, bill.tally.rows.error) == (2, 1, 0)


def test_a_row_that_comes_twice_is_loaded_once_also_after_a_restart(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'watermark.delay'='1 hour', 'dedup.keys'='id', 'dedup.horizon'='2 hours'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "2,2026-01-01 12:00:00", "1,2026-01-01 12:01:00")
    desk.run()
    assert ids(desk) == [1, 2]
    desk.restart()
    put(
        desk,
        "b.csv",
        "2,2026-01-01 12:30:00",
        "3,2026-01-01 12:30:00",
        "2,2026-01-01 14:30:00",
        "2,2026-01-01 14:31:00",
    )
    desk.run()
    # The third row of key 2 is two hours away from the first, and so a new one.
    assert ids(desk) == [1, 2, 2, 3]
    totals = desk.lading.job("j").totals
    assert totals is not None
    assert (totals.rows.loaded, totals.rows.duplicate, totals.written) == (4, 3, 4)
    told = statistic(desk)
    assert (told["duplicateRows"], told["stateRows"]) == (3, 4)
    assert isinstance(told["stateBytes"], int)
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    assert plan["watermark"] == (
        "at less 3600 s; partitions are idle after 300 s; late rows: quarantine; "
        "not moved by rows over 86400 s ahead of the clock"
    )
    assert plan["kept"] == "keys (id) until the watermark is 7200 s past their event time"


class Killed(BaseException):
    """The process is gone here."""


@pytest.fixture
def killed() -> Iterator[None]:
    yield
    disarm_all()


def die(name: str) -> None:
    raise Killed(name)


IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "settle.before")))


@pytest.mark.parametrize(
    ("form", "steps"), [("delta", IN_BATCHES), ("iceberg", ("merge.before", "merge.after", "commit.after"))]
)
def test_a_kill_at_any_step_lets_no_duplicate_through_and_loses_no_key(
    desk: Desk, killed: None, form: str, steps: tuple[str, ...]
) -> None:
    create(desk, "'watermark.column'='at', 'dedup.keys'='id', 'dedup.horizon'='1 day'", form)
    for number, step in enumerate(steps):
        # Half of them were in the file before.
        rows = [f"{number * 10 + row},2026-01-01 12:{number:02}:{row:02}" for row in range(20)]
        put(desk, f"{number:02}.csv", *rows, *rows[:3])
        arm(step, die)
        runner = desk.lading.runner(desk.lading.job("j").job_id)
        with pytest.raises(Killed):
            runner.run_once()
        disarm_all()
        desk.restart()
    desk.run()
    assert ids(desk) == list(range(len(steps) * 10 + 10))
    totals = desk.lading.job("j").totals
    assert totals is not None
    assert (totals.rows.total, totals.rows.loaded) == (len(steps) * 23, len(steps) * 10 + 10)


def test_a_row_without_event_time_is_bad_also_where_values_may_be_null(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'session.enable_insert_strict'='false'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00", "2,\\N", "3,soon")
    desk.run()
    assert ids(desk) == [1]
    bill = desk.lading.bills(desk.lading.job("j"), 1)[0]
    assert bill.tally.rows.error == 2
    assert "column at: NULL, and it is the event time of the job" in bill.first_error


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'watermark.column'='id'", "watermark.column is id, a column of type bigint: that is no time"),
        ("'watermark.column'='nosuch'", "neither the table nor the source has this column"),
        ("'watermark.column'='at', 'dedup.keys'='nosuch'", "dedup.keys names nosuch, which the table does not have"),
        (
            "'watermark.column'='at', 'watermark.delay'='1 hour', 'dedup.keys'='id', 'dedup.horizon'='1 minute'",
            "dedup.horizon is 1 minute, shorter than watermark.delay, 1 hour",
        ),
        ("'dedup.keys'='id'", "dedup.keys needs a watermark"),
    ],
)
def test_what_makes_no_sense_is_refused_by_create(desk: Desk, properties: str, message: str) -> None:
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    with pytest.raises(SqlError, match=message):
        create(desk, properties)


def test_a_state_file_that_somebody_cut_stops_the_job_with_what_to_do(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'dedup.keys'='id'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    [file] = (Path(desk.lading.catalog.open_table("shop", "t").location)).rglob("state/*-s-*.parquet")
    assert desk.lading.verify("j").is_clean
    file.write_bytes(file.read_bytes()[:-1])
    [finding] = desk.lading.verify("j").findings
    assert re.fullmatch(r"CORRUPT: the state file _lading/.*\.parquet is not what was written", finding)
    put(desk, "b.csv", "1,2026-01-01 12:00:01", "2,2026-01-01 12:00:00")
    runner = desk.lading.runner(desk.lading.job("j").job_id)
    runner.run_once()
    reason = desk.lading.job("j").reason
    assert reason is not None
    assert "is not what was written: somebody cut or changed it" in reason.message
    with pytest.raises(SqlError, match=r'"state" = "RESET"'):
        desk.sql(f"ALTER JOB j PROPERTIES('offset'='{{\"fileName\":\"{desk.inbox}/a.csv\"}}')")
    desk.sql("ALTER JOB j PROPERTIES('state'='RESET'); RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert ids(desk) == [1, 1, 2]  # Nobody remembers the first one.


def test_a_job_goes_back_to_a_commit_with_its_state(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'dedup.keys'='id'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    seq = desk.lading.bills(desk.lading.job("j"), 1)[0].seq
    put(desk, "b.csv", "1,2026-01-01 12:00:01", "2,2026-01-01 12:00:00")
    desk.run()
    desk.sql(
        f"PAUSE JOB WHERE jobName = 'j'; ALTER JOB j PROPERTIES('state'='COMMIT {seq}'); RESUME JOB WHERE jobName = 'j'"
    )
    desk.run()
    # What came after that commit is loaded again; that 1 was loaded before it is still known.
    assert ids(desk) == [1, 2, 2]


def test_the_example_of_the_page_runs(desk: Desk) -> None:
    page = (Path(__file__).parents[2] / "docs" / "state.md").read_text().replace("/data/clicks", str(desk.inbox))
    page = page.replace("/data/views", str(desk.inbox / "views"))
    create_all, windows, sessions, move = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    desk.sql(create_all)
    clicks = ["1,/a,2026-01-01 12:00:00", "2,/b,2026-01-01 12:00:00", "1,/a,2026-01-01 12:00:00"]
    desk.put("2026-08-01.csv", clicks, header="id,page,at")
    desk.run()
    assert desk.lading.catalog.open_table("shop", "clicks").scan().num_rows == 2
    (desk.inbox / "views").mkdir()
    views = ["2026-01-01 12:00:01,/a,ann,20.5", "2026-01-01 12:00:09,/a,bob,7", "2026-01-01 12:00:10,/b,bob,7"]
    for name, rows in (("1.csv", views), ("2.csv", ["2026-01-01 13:00:00,/a,ann,1"])):
        (desk.inbox / "views" / name).write_text("\n".join(["at,page,visitor,ms", *rows]))
        os.utime(desk.inbox / "views" / name, (0, 0))  # It has settled.
    desk.sql(windows)
    desk.sql(sessions)
    desk.run()
    desk.run()
    [row] = desk.lading.catalog.open_table("shop", "per_minute").scan().to_pylist()
    assert tuple(row.values())[1:] == ("/a", 2, 2, 20.5)
    visits = desk.lading.catalog.open_table("shop", "visits").scan().to_pylist()
    assert sorted(tuple(row.values())[2:] for row in visits) == [("ann", 1, '["/a"]'), ("bob", 2, '["/a","/b"]')]
    to_commit, to_file = move.split(";\n")[:2]
    desk.sql("PAUSE JOB WHERE jobName = 'clicks'")
    desk.sql(to_commit.replace("COMMIT 17", "COMMIT 0"))
    desk.sql(to_file)


STATE = "'watermark.column'='at', 'watermark.delay'='1 hour', 'dedup.keys'='id'"
RESUME = "RESUME JOB WHERE jobName = 'j'"


def wide(desk: Desk, properties: str, *, columns: str = "id, other, at", into: str = "") -> None:
    desk.sql("CREATE TABLE t (id VARCHAR(3), other BIGINT, at DATETIME) USING delta")
    desk.sql(
        f"CREATE JOB j PROPERTIES({properties}) ON STREAMING DO INSERT INTO t {into} SELECT {columns} "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV})'
    )


def wide_rows(desk: Desk, name: str, *rows: str) -> list[tuple[object, ...]]:
    desk.put(name, [f"{row},2026-01-01 12:00:00" for row in rows], header="id,other,at")
    desk.run()
    found = desk.lading.catalog.open_table("shop", "t").scan().to_pylist()
    return sorted((row["id"], row["other"]) for row in found)


def test_state_of_other_keys_is_never_used(desk: Desk) -> None:
    wide(desk, STATE)
    wide_rows(desk, "a.csv", "1,100", "2,200")
    seq = desk.lading.bills(desk.lading.job("j"), 1)[0].seq
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    with pytest.raises(SqlError, match="cannot be changed"):
        desk.sql("ALTER JOB j PROPERTIES('dedup.keys'='other')")
    with pytest.raises(SqlError, match="cannot be changed"):
        desk.sql("ALTER JOB j PROPERTIES('watermark.column'='other')")
    [shown] = desk.sql("EXPLAIN ALTER JOB j PROPERTIES('state'='RESET')")
    assert shown[:3] == ("state and watermark", "kept", "begin again")
    desk.sql("ALTER JOB j PROPERTIES('dedup.keys'='other', 'state'='RESET')")
    with pytest.raises(SqlError, match="another definition"):
        desk.sql(f"ALTER JOB j PROPERTIES('state'='COMMIT {seq}')")
    desk.sql(RESUME)
    assert wide_rows(desk, "b.csv", "7,1", "8,2") == [("1", 100), ("2", 200), ("7", 1), ("8", 2)]


def test_a_key_that_the_job_does_not_fill_is_refused(desk: Desk) -> None:
    desk.put("a.csv", ["1,2,2026-01-01 12:00:00"], header="id,other,at")
    with pytest.raises(SqlError, match=r"dedup\.keys names id, which the job does not fill"):
        wide(desk, STATE, columns="other, at", into="(other, at)")


def test_keys_are_compared_as_the_table_has_them_and_unreadable_ones_are_bad(desk: Desk) -> None:
    lenient = "'watermark.column'='at', 'dedup.keys'='id,other', 'session.enable_insert_strict'='false'"
    wide(desk, lenient)
    rows = wide_rows(desk, "a.csv", "abc0,1", "abc1,1", "x,bad0", "x,bad1")
    assert rows == [("abc", 1)]
    totals = desk.lading.job("j").totals
    assert totals is not None
    assert (totals.rows.duplicate, totals.rows.error) == (1, 2)


def test_many_rows_of_a_key_a_horizon_apart_are_judged_in_two_rounds(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'dedup.keys'='id', 'dedup.horizon'='2 seconds'")
    put(desk, "a.csv", *(f"1,2026-01-01 12:00:{second:02}" for second in range(60)))
    desk.run()
    assert ids(desk) == [1] * 30
    state = desk.lading.bills(desk.lading.job("j"), 1)[0].state
    assert state is not None
    assert state.files <= 4


def test_reset_begins_the_watermark_again(desk: Desk) -> None:
    create(desk, STATE)
    put(desk, "a.csv", "1,9999-12-31 00:00:00")
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName = 'j'; ALTER JOB j PROPERTIES('state'='RESET')")
    assert desk.lading.job("j").watermark_us is None
    desk.sql(RESUME)
    put(desk, "b.csv", "2,2026-01-01 12:00:00")
    desk.run()
    assert ids(desk) == [1, 2]


def test_late_rows_are_shown_with_the_bad_ones(desk: Desk) -> None:
    create(desk, "'watermark.column'='at'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    put(desk, "b.csv", "2,2026-01-01 11:00:00", "3,2026-01-01 13:00:00")
    desk.run()
    [row] = desk.sql("SHOW LOAD ERRORS FOR j")
    assert "late: event time 2026-01-01 11:00:00.000000 is before the watermark 2026-01-01 12:00:00.000000" in str(row)


def test_late_rows_can_be_dropped_and_are_counted(desk: Desk) -> None:
    create(desk, "'watermark.column'='at', 'watermark.late_rows'='DROP'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    put(desk, "b.csv", "2,2026-01-01 11:00:00", "3,2026-01-01 13:00:00")
    desk.run()
    assert (ids(desk), statistic(desk)["lateRows"], desk.sql("SHOW LOAD ERRORS FOR j")) == ([1, 3], 1, [])


def test_a_time_without_a_date_is_no_event_time(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (id BIGINT) USING delta")
    put(desk, "a.csv", "1,12:00", "2,2026-01-01 12:00:00")
    desk.sql(
        "CREATE JOB j PROPERTIES('watermark.column'='at', 'session.enable_insert_strict'='false') ON STREAMING DO "
        f'INSERT INTO t SELECT id FROM FILE("uri"="{desk.inbox}/*.csv", {CSV})'
    )
    desk.run()
    assert ids(desk) == [2]
    assert "no date in '12:00'" in desk.lading.bills(desk.lading.job("j"), 1)[0].first_error


def test_what_is_kept_outlives_a_time_without_any_file(desk: Desk) -> None:
    """A job that has no file to learn its columns from has nothing to merge with, and forgets nothing."""
    create(desk, "'watermark.column'='at', 'dedup.keys'='id'")
    put(desk, "a.csv", "1,2026-01-01 12:00:00")
    desk.run()
    record = desk.lading.job("j")
    coordinator, compiled = desk.lading.coordinator(record)
    base = coordinator.bill
    assert base is not None
    assert base.state is not None
    assert compiled.job.keeps_state
    plan = BatchPlan(positions=base.positions, splits=())
    stamp = Stamp(token=Token(5), incarnation=base.incarnation, planned_at=base.planned_at, billed_at=base.billed_at)
    bill = draft_load(compiled.job, base, plan, (), base.positions, stamp)
    compiled.close()
    assert bill.state == base.state
