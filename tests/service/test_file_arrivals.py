"""Files come in any order, grow after they appeared, and change after they were loaded. Typed as a user would."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lading.cli.main import app
from lading.errors import SqlError
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Outcome, Unknown
from lading.service import facade
from lading.service.telemetry.log_watch import LogWatch
from lading.service.telemetry.metrics import Metrics
from lading.tables.delta.table import DeltaLakeTable
from tests.console.local import LocalLading

WHOLE = "id,amount\n" + "".join(f"{n},{n * 1000}\n" for n in range(1, 11))


class Desk:
    """A home without Spark, an inbox, and the command line."""

    def __init__(self, path: Path) -> None:
        self.path, self.inbox = path, path / "in"
        self.inbox.mkdir()
        self.sql("CREATE TABLE t (id BIGINT, amount BIGINT) USING delta")

    def sql(self, text: str) -> list[tuple[object, ...]]:
        with LocalLading(self.path / "home") as lading:
            return list(lading.sql(text)[-1].rows)

    def create(self, **properties: str) -> None:
        said = ", ".join(f'"{name}" = "{value}"' for name, value in properties.items())
        self.sql(
            f"CREATE JOB j {f'PROPERTIES ({said})' if said else ''} ON STREAMING DO INSERT INTO t SELECT id, amount "
            f'FROM FILE("uri"="{self.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )

    def put(self, name: str, *ids: int, age_s: float = 0) -> None:
        self.write(name, "id,amount\n" + "".join(f"{n},{n * 1000}\n" for n in ids), age_s)

    def write(self, name: str, text: str, age_s: float = 0) -> None:
        file = self.inbox / name
        file.write_text(text)
        then = file.stat().st_mtime - age_s
        os.utime(file, (then, then))

    def run(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["run", "--home", str(self.path / "home"), *options])

    def rows(self) -> list[tuple[int, int]]:
        with LocalLading(self.path / "home") as lading:
            table = lading.catalog.open_table("default", "t").scan()
        return sorted(zip(table["id"].to_pylist(), table["amount"].to_pylist(), strict=True))

    def ids(self) -> list[int]:
        return [row[0] for row in self.rows()]

    def message(self) -> str:
        return str(self.sql('SELECT JobRuntimeMsg FROM jobs("type"="insert")')[0][0])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(facade, "Lading", LocalLading)
    monkeypatch.setenv("COLUMNS", "1000")
    return Desk(tmp_path)


def said(result: Result) -> str:
    return " ".join(result.output.split())


def test_a_file_that_is_still_being_written_waits_until_it_is_whole(desk: Desk) -> None:
    """Half of it was loaded, its cut last row with a wrong value, and the rest never."""
    desk.create(**{"file.settle_seconds": "30"})
    cut = WHOLE.index("8,8000") + 4
    desk.write("2026-03-01.csv", WHOLE[:cut])
    desk.put("2026-03-02.csv", 77, age_s=60)
    assert desk.run("--timeout", "0").exit_code == 5, "the time was over after one batch"
    assert desk.ids() == [77]
    result = desk.run("--timeout", "0")
    waiting = "waiting for 1 file modified in the last 30 seconds and possibly still being written"
    assert f"{waiting}: {desk.inbox}/2026-03-01.csv" in desk.message()
    assert result.exit_code == 0
    desk.write("2026-03-01.csv", WHOLE, age_s=31)
    desk.run()
    assert desk.rows() == [*((n, n * 1000) for n in range(1, 11)), (77, 77000)]


def test_run_waits_for_files_to_settle_and_says_which_do_not(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADING_FILE_SETTLE_SECONDS", "1")
    desk.create()
    desk.put("a.csv", 1)
    result = desk.run()
    assert (result.exit_code, desk.ids()) == (0, [1])
    assert "nothing new" not in result.output
    stop, log = threading.Event(), desk.inbox / "b.csv"

    def write() -> None:
        while not stop.wait(0.1):
            with log.open("a") as file:
                file.write("2,2000\n")

    log.write_text("id,amount\n")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        result = desk.run()
    finally:
        stop.set()
        writer.join()
    assert (result.exit_code, desk.ids()) == (0, [1])
    assert f"possibly still being written: {log}" in said(result)


def test_the_order_of_a_job_that_only_shows_late_files_waits_too(desk: Desk) -> None:
    desk.create(**{"file.settle_seconds": "30", "s3.late_files": "SHOW"})
    desk.put("a.csv", 1, age_s=60)
    desk.put("b.csv", 2)
    desk.put("c.csv", 3, age_s=60)
    desk.run("--timeout", "0")
    assert desk.ids() == [1]
    desk.put("b.csv", 2, age_s=60)
    desk.run()
    assert desk.ids() == [1, 2, 3]


def test_columns_are_not_learned_from_a_file_that_is_still_being_written(desk: Desk) -> None:
    desk.create(**{"file.settle_seconds": "30"})
    desk.write("a.csv", "id,amo")
    desk.run("--timeout", "0")
    assert "possibly still being written" in desk.message()
    desk.write("a.csv", WHOLE, age_s=31)
    assert desk.run().exit_code == 0
    assert desk.ids() == list(range(1, 11))


def test_create_is_checked_against_a_file_that_has_just_come(desk: Desk) -> None:
    desk.put("a.csv", 1)
    with pytest.raises(SqlError, match="Unknown column 'nosuch' in the source"):
        desk.sql(
            'CREATE JOB k PROPERTIES ("file.settle_seconds" = "30") ON STREAMING DO INSERT INTO t SELECT id, nosuch '
            f'FROM FILE("uri"="{desk.inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )


def test_a_file_that_grows_after_it_was_loaded_is_said_everywhere(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A writer that paused for longer than the settle time: the job said that there is nothing new."""
    desk.create()
    desk.put("a.csv", 1)
    assert desk.run().exit_code == 0
    desk.put("a.csv", 1, 2)
    result = desk.run()
    told = "not loaded: 1 file that changed after being loaded (a file with another name is loaded): "
    assert result.exit_code == 4
    assert f"j: {told}{desk.inbox}/a.csv" in said(result)
    assert told in desk.message()
    assert desk.ids() == [1]
    with LocalLading(desk.path / "home") as lading, caplog.at_level(logging.WARNING, "lading.jobs"):
        metrics = Metrics(lading.store, lading.clock)
        lading.watches.extend((metrics, LogWatch()))
        lading.run()
        lading.run()
        assert b'lading_files_left_out{database="default",job_name="j",kind="streaming",reason="changed"} 1.0' in (
            metrics.render()
        )
    assert caplog.text.count(told) == 1


def test_files_are_loaded_in_whatever_order_they_come(desk: Desk) -> None:
    """Names that sort before the position were passed over with `nothing new` and exit status 0."""
    desk.create()
    loaded: list[int] = []
    for number, name in enumerate(("m", "z", "a", "q", "b", "zz", "c")):
        desk.put(f"{name}.csv", number)
        loaded.append(number)
        assert desk.run().exit_code == 0
        assert desk.ids() == loaded
    assert "nothing new" in desk.run().output
    desk.sql("PAUSE JOB WHERE jobName='j'; RESUME JOB WHERE jobName='j'")
    desk.run()
    assert desk.ids() == loaded


def test_a_job_that_only_shows_late_files_says_so_and_has_its_own_exit_status(desk: Desk) -> None:
    desk.create(**{"s3.late_files": "SHOW"})
    desk.put("b.csv", 1)
    desk.run()
    desk.put("a.csv", 2)
    result = desk.run()
    assert (result.exit_code, desk.ids()) == (4, [1])
    assert f'"s3.late_files" = "LOAD" loads them): {desk.inbox}/a.csv' in said(result)
    assert "not loaded: 1 file before the position" in desk.message()
    with LocalLading(desk.path / "home") as lading:
        metrics = Metrics(lading.store, lading.clock)
        lading.watches.append(metrics)
        lading.run()
        assert b'reason="late"} 1.0' in metrics.render()
    desk.sql(
        "PAUSE JOB WHERE jobName='j'; ALTER JOB j PROPERTIES(\"s3.late_files\"=\"LOAD\"); RESUME JOB WHERE jobName='j'"
    )
    assert (desk.run().exit_code, desk.ids()) == (0, [1, 2])


def test_a_file_beyond_what_is_remembered_is_said_and_loaded_by_name(desk: Desk) -> None:
    desk.create(**{"s3.late_window": "2"})
    for number, name in enumerate(("p", "a", "z", "x")):
        desk.put(f"{name}.csv", number, age_s=100 - number)
        desk.run()
    desk.put("old.csv", 9, age_s=1000)
    result = desk.run()
    assert result.exit_code == 4
    assert "not loaded: at least 1 file that came after the job had forgotten" in said(result)
    desk.sql("PAUSE JOB WHERE jobName='j'; ALTER JOB j PROPERTIES('s3.also_load'='[\"old.csv\"]')")
    desk.sql("RESUME JOB WHERE jobName='j'")
    for _ in range(2):
        result = desk.run()
        assert (result.exit_code, desk.ids()) == (0, [0, 1, 2, 3, 9]), result.output


def test_a_job_may_be_made_before_its_folder(desk: Desk) -> None:
    desk.inbox.rmdir()
    desk.create()
    result = desk.run()
    assert result.exit_code == 0
    assert "waiting for the folder, which does not exist yet" in said(result)
    desk.inbox.mkdir()
    desk.put("a.csv", 1)
    assert (desk.run().exit_code, desk.ids()) == (0, [1])
    (desk.inbox / "a.csv").unlink()
    desk.inbox.rmdir()
    result = desk.run()
    assert result.exit_code == 3
    assert "does not exist" in said(result)


def test_a_run_whose_time_is_over_says_so_and_has_its_own_exit_status(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that failed all the time ended with 0."""
    commit = DeltaLakeTable.commit

    def fail(table: DeltaLakeTable, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        return commit(table, expected, staged, bill) if not staged else Unknown(why=str(1 // 0))

    monkeypatch.setattr(DeltaLakeTable, "commit", fail)
    desk.create()
    desk.put("a.csv", 1)
    result = desk.run("--timeout", "0.1")
    assert result.exit_code == 5
    assert "j has not caught up: the time is over; Attempt 1 of 4 failed: integer division" in said(result)
    result = desk.run()
    assert result.exit_code == 3
    assert "j is PAUSED" in said(result)
