"""What is shown of a job that loads files, through everything that can happen to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from lading.errors import ConflictError
from lading.failpoints import arm, disarm_all
from lading.jobs.events import Tick
from lading.jobs.record import JobState
from tests.service.conftest import Desk

LENIENT = '"session.enable_insert_strict"="false"'


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    disarm_all()


def job(desk: Desk, name: str = "j") -> dict[str, str]:
    """The row of jobs()."""
    [row] = desk.lading.sql(f'SELECT * FROM jobs("type"="insert") WHERE Name = \'{name}\'')[-1].dicts()
    return {str(key): str(value) for key, value in row.items()}


def tasks(desk: Desk, name: str = "j") -> list[dict[str, str]]:
    """The rows of tasks(), newest first."""
    rows = desk.lading.sql(f'SELECT * FROM tasks("type"="insert") WHERE JobName = \'{name}\'')[-1].dicts()
    return [{str(key): str(value) for key, value in row.items()} for row in rows]


def statistic(desk: Desk) -> tuple[int, int, int]:
    """Rows that were read, files, bad rows."""
    found = json.loads(job(desk)["LoadStatistic"])
    assert list(found) == ["scannedRows", "loadBytes", "fileNumber", "fileSize", "filteredRows", "health"]
    return found["scannedRows"], found["fileNumber"], found["filteredRows"]


def error(desk: Desk) -> tuple[str, str]:
    """Code and text of what a job stands still for."""
    found = json.loads(job(desk)["ErrorMsg"])
    return found["code"], found["msg"]


def counts(desk: Desk) -> tuple[str, str, str]:
    row = job(desk)
    return row["SucceedTaskCount"], row["FailedTaskCount"], row["CanceledTaskCount"]


def offset(desk: Desk, name: str) -> str:
    return json.dumps({"fileName": f"{desk.inbox}/{name}"})


def alter(desk: Desk, properties: str) -> None:
    desk.sql(f"ALTER JOB j PROPERTIES({properties})")


def go_on(desk: Desk) -> None:
    desk.sql("RESUME JOB WHERE jobName='j'")
    desk.run()


def test_from_creation_over_pause_and_alter_to_rewinding(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.put_orders("b.csv", 10, 10)
    desk.create(properties='"max_interval"="5"')
    row = job(desk)
    assert (row["Status"], row["CurrentOffset"], row["EndOffset"], row["ErrorMsg"]) == ("PENDING", "", "", "")
    assert (row["ExecuteType"], row["Definer"], row["Lag"], row["LastTaskSuccessTime"]) == (
        "STREAMING",
        "tester",
        "",
        "",
    )
    assert (statistic(desk), counts(desk), json.loads(row["Properties"])) == (
        (0, 0, 0),
        ("0", "0", "0"),
        {"max_interval": "5"},
    )
    desk.run()
    row = job(desk)
    assert (row["Status"], row["CurrentOffset"], row["EndOffset"]) == (
        "RUNNING",
        offset(desk, "b.csv"),
        offset(desk, "b.csv"),
    )
    assert (statistic(desk), counts(desk)) == ((20, 2, 0), ("1", "0", "0"))
    assert row["LastTaskSuccessTime"]
    [task] = tasks(desk)
    assert (task["Status"], json.loads(task["LoadStatistic"])["ScannedRows"], task["ErrorMsg"]) == ("SUCCESS", 20, "")
    assert task["Label"] == f"{row['Id']}_{task['TaskId']}"

    desk.sql("PAUSE JOB WHERE jobName='j'")
    assert (job(desk)["Status"], error(desk)[0]) == ("PAUSED", "MANUAL_PAUSE_ERR")
    assert len(tasks(desk)) == sum(map(int, counts(desk)))
    alter(desk, '"s3.max_batch_files"="1"')
    row = job(desk)
    assert row["Status"] == "PAUSED"
    assert json.loads(row["Properties"]) == {"max_interval": "5", "s3.max_batch_files": "1"}

    alter(desk, f"\"offset\"='{offset(desk, 'zzz')}'")
    assert (job(desk)["Status"], job(desk)["CurrentOffset"]) == ("PAUSED", offset(desk, "zzz"))
    go_on(desk)
    assert (job(desk)["Status"], statistic(desk), counts(desk)) == ("RUNNING", (20, 2, 0), ("1", "0", "0"))
    desk.sql("PAUSE JOB WHERE jobName='j'")
    alter(desk, f"\"offset\"='{offset(desk, 'a.csv')}'")
    assert job(desk)["CurrentOffset"] == offset(desk, "a.csv")
    desk.restart()
    assert job(desk)["CurrentOffset"] == offset(desk, "a.csv")
    go_on(desk)
    assert desk.ids() == sorted([*range(20), *range(10, 20)])
    assert (job(desk)["CurrentOffset"], statistic(desk), counts(desk)) == (
        offset(desk, "b.csv"),
        (30, 3, 0),
        ("2", "0", "0"),
    )
    assert desk.lading.verify("j").is_clean


def test_a_relative_folder_means_the_files_in_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.path)
    desk.table()
    desk.put_orders("a.csv", 0, 2)
    (desk.inbox / "below").mkdir()
    (desk.inbox / "below" / "b.csv").write_text("id,city,amount\n9,a,1\n")
    desk.sql(
        "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * "
        'FROM FILE("uri"="./in/", "format"="csv_with_names", "column_separator"=",")'
    )
    monkeypatch.chdir("/")
    desk.run()
    assert desk.ids() == [0, 1]


def test_a_restart_in_any_state_shows_the_same_and_loads_nothing_twice(desk: Desk) -> None:
    desk.put_orders("a.csv", 0, 5)
    for name in ("running", "paused", "finished", "stopped", "pending"):
        desk.table(f"t_{name}")
        desk.create(name, f"t_{name}", properties='"s3.ingestion_mode"="ONCE"' if name == "finished" else "")
        if name != "pending":
            desk.lading.run([name])
    desk.sql("PAUSE JOB WHERE jobName='paused'; DROP JOB WHERE jobName='stopped'")
    shown = desk.sql('SELECT * FROM jobs("type"="insert")')
    done = desk.sql('SELECT * FROM tasks("type"="insert")')
    states = {str(row[1]): str(row[5]) for row in shown}
    assert states == {"running": "RUNNING", "paused": "PAUSED", "finished": "FINISHED", "pending": "PENDING"}
    desk.restart()
    assert desk.sql('SELECT * FROM jobs("type"="insert")') == shown
    assert desk.sql('SELECT * FROM tasks("type"="insert")') == done
    desk.put_orders("b.csv", 5, 5)
    desk.run()
    loaded = {name: desk.ids(f"t_{name}") for name in ("running", "paused", "finished", "stopped", "pending")}
    all_of, first = list(range(10)), list(range(5))
    assert loaded == {"running": all_of, "paused": first, "finished": first, "stopped": first, "pending": all_of}
    with pytest.raises(ConflictError):
        desk.create("paused", "t_paused")
    desk.create("stopped", "t_stopped")
    assert job(desk, "stopped")["Status"] == "PENDING"


def test_strict_failure_then_alter_then_resume(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", ["1,essen,1.0", "x,essen,2.0"])
    desk.create()
    desk.run()
    code, message = error(desk)
    assert code == "TOO_MANY_FAILURE_ROWS_ERR"
    assert "Insert has filtered data in strict mode" in message
    assert "a.csv, row 2: column id: cannot read 'x' as bigint" in message
    assert (job(desk)["CurrentOffset"], statistic(desk), counts(desk)) == ("", (0, 0, 0), ("0", "1", "0"))
    [task] = tasks(desk)
    assert (task["Status"], task["LoadStatistic"]) == ("FAILED", "")
    assert "strict mode" in task["ErrorMsg"]
    alter(desk, LENIENT)
    assert (job(desk)["Status"], error(desk)[0]) == ("PAUSED", "TOO_MANY_FAILURE_ROWS_ERR")
    go_on(desk)
    assert (job(desk)["Status"], job(desk)["ErrorMsg"], desk.ids()) == ("RUNNING", "", [1])
    assert (job(desk)["CurrentOffset"], statistic(desk), counts(desk)) == (
        offset(desk, "a.csv"),
        (2, 1, 1),
        ("1", "1", "0"),
    )


def test_rows_that_are_all_bad_or_left_out_move_the_position_and_siblings_do_not(desk: Desk) -> None:
    desk.table()
    desk.put("a.csv", [",essen,1.0", "1,essen,1.0,2,3"])
    desk.create(properties=LENIENT)
    desk.run()
    assert (job(desk)["Status"], job(desk)["CurrentOffset"], desk.ids()) == ("RUNNING", offset(desk, "a.csv"), [])
    assert (statistic(desk), counts(desk)) == ((2, 1, 2), ("1", "0", "0"))
    desk.put_orders("b.csv.bak", 0, 3)
    (desk.inbox / "sub").mkdir()
    (desk.inbox / "sub" / "c.csv").write_text("id,city,amount\n1,a,1\n")
    desk.run()
    assert (job(desk)["CurrentOffset"], statistic(desk), counts(desk)) == (
        offset(desk, "a.csv"),
        (2, 1, 2),
        ("1", "0", "0"),
    )


def test_a_listing_that_keeps_failing_uses_up_its_tries_and_then_waits_for_attention(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()
    desk.run()
    odd = os.fsencode(desk.inbox) + b"/\xff.csv"
    with open(odd, "wb"):
        pass
    runner = desk.lading.runner(desk.lading.job("j").job_id)
    desk.run()
    code, message = error(desk)
    assert (job(desk)["Status"], code) == ("PAUSED", "GET_REMOTE_DATA_ERROR")
    assert "Failed to fetch meta" in message
    assert "Nothing was read; the position is unchanged" in message
    for _ in range(10):
        at = runner.record().auto_resume.next_at
        assert at is not None
        assert runner.apply(Tick(at=at)).state is JobState.PENDING
        desk.run()
        assert job(desk)["Status"] == "PAUSED"
    code, message = error(desk)
    assert code == "CANNOT_RESUME_ERR"
    assert "Auto resume failed after 10 attempts: Failed to fetch meta" in message
    assert runner.record().auto_resume.next_at is None
    desk.restart()
    assert error(desk) == (code, message)
    assert statistic(desk) == (3, 1, 0)
    os.unlink(odd)
    desk.put_orders("b.csv", 10, 2)
    go_on(desk)
    assert (job(desk)["Status"], job(desk)["ErrorMsg"], desk.ids()) == ("RUNNING", "", [0, 1, 2, 10, 11])


def test_a_file_deleted_between_listing_and_reading_is_told_and_the_others_are_loaded(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.put_orders("b.csv", 10, 3)
    desk.create()
    arm("stage.before", lambda _: (desk.inbox / "b.csv").unlink(missing_ok=True))
    desk.run()
    assert (job(desk)["Status"], job(desk)["CurrentOffset"], desk.ids()) == (
        "RUNNING",
        offset(desk, "a.csv"),
        [0, 1, 2],
    )
    [task] = tasks(desk)
    assert task["Status"] == "SUCCESS"
    assert "b.csv was deleted between listing and reading" in task["FirstErrorMsg"]


def test_a_file_replaced_between_listing_and_reading_is_read_anew_and_told(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create()

    def replaced(_: str) -> None:
        disarm_all()
        desk.put_orders("a.csv", 100, 4)

    arm("stage.before", replaced)
    desk.run()
    assert (job(desk)["Status"], desk.ids()) == ("RUNNING", [100, 101, 102, 103])
    [task] = tasks(desk)
    assert "a.csv was replaced between listing and reading" in task["FirstErrorMsg"]
    assert statistic(desk) == (4, 1, 0)


@pytest.mark.parametrize("damage", ["cut off", "another format", "other columns"])
def test_a_file_that_is_not_what_it_should_be_stops_the_job_with_its_name(desk: Desk, damage: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    desk.table()
    rows = pa.table({"id": [1, 2, 3], "city": ["essen"] * 3, "amount": ["1.0"] * 3})
    pq.write_table(rows, desk.inbox / "a.parquet")
    desk.sql(
        f"CREATE JOB j PROPERTIES({LENIENT}) ON STREAMING DO INSERT INTO orders SELECT * "
        f'FROM FILE("uri"="{desk.inbox}/*.parquet", "format"="parquet")'
    )
    desk.run()
    bad = desk.inbox / "b.parquet"
    if damage == "cut off":
        bad.write_bytes((desk.inbox / "a.parquet").read_bytes()[:-100])
    elif damage == "another format":
        bad.write_text("id,city,amount\n1,essen,1.0\n")
    else:
        pq.write_table(rows.rename_columns(["id", "town", "amount"]), bad)
    desk.run()
    assert job(desk)["Status"] == "PAUSED"
    assert "b.parquet cannot be read" in error(desk)[1]
    assert "Nothing of this batch was committed; the position is unchanged" in error(desk)[1]
    # What cannot heal is tried once, and waits for a person.
    newest = max(desk.lading.store.list_tasks(), key=lambda task: task.task_id)
    assert newest.attempt == 1
    assert desk.lading.job("j").reason.needs_attention  # type: ignore[union-attr]
    assert (desk.ids(), job(desk)["CurrentOffset"]) == ([1, 2, 3], offset(desk, "a.parquet"))
    pq.write_table(rows, bad)
    go_on(desk)
    assert (job(desk)["Status"], desk.ids()) == ("RUNNING", [1, 1, 2, 2, 3, 3])
