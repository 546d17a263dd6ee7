"""`errors.table`: bad rows in a table, as people ask for it and as others read it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lading.errors import ConfigError, DeniedError, LadingError, SqlError
from lading.ids import errors_id
from lading.jobs.record import JobRecord
from lading.service.catalog.lost_home import Opening
from lading.service.recover import recover
from lading.store.bodies import parse_body, render_body
from lading.testing.marked import secret
from tests.console.local import LocalLading
from tests.service.routine_fakes import Desk, bench
from tests.service.routine_words import KAFKA
from tests.support.other_readers import read_elsewhere

__all__ = ["bench"]

ROOT = Path(__file__).parents[2]
LOOSE = (
    '"session.enable_insert_strict"="false", "session.enable_strict_cast"="true", '
    '"session.insert_max_filter_ratio"="1", "file.settle_seconds"="0"'
)
ERRORS = '"errors.table"="t_errors"'
PASSWORD = secret("long-enough")


def text_of(
    path: Path, properties: str = ERRORS, *, name: str = "j", folder: str = "in", select: str = "id, city"
) -> str:
    return (
        f"CREATE JOB {name} PROPERTIES({LOOSE}, {properties}) ON STREAMING DO INSERT INTO t SELECT {select} "
        f'FROM FILE("uri"="{path}/{folder}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )


class Home:
    """A home with a table, a folder of files, and what others read in both tables."""

    def __init__(self, path: Path, form: str = "delta") -> None:
        self.path, self.form = path, form
        (path / "in").mkdir()
        self.lading = self.open()
        self.lading.sql(f"CREATE TABLE t (id BIGINT, city STRING) USING {form}")

    def open(self) -> LocalLading:
        return LocalLading(self.path / "home", user="tester", opening=Opening.RECOVERY)

    def restart(self) -> None:
        self.lading.close()
        self.lading = self.open()

    def put(self, name: str, *rows: str, folder: str = "in") -> None:
        (self.path / folder / f"{name}.csv").write_text("\n".join(("id,city", *rows)) + "\n")

    def run(self) -> JobRecord:
        return self.lading.run()["j"]

    def read(self, name: str = "t_errors") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = read_elsewhere(self.form, self.path / "home/warehouse/default" / name).to_pylist()
        return rows

    def raw(self) -> Counter[str]:
        return Counter(row["raw"] for row in self.read())

    def statistic(self) -> dict[str, Any]:
        ((text,),) = self.lading.sql("SELECT LoadStatistic FROM jobs('type'='insert') WHERE Name = 'j'")[-1].rows
        told: dict[str, Any] = json.loads(str(text))
        return told


@pytest.fixture
def home(tmp_path: Path) -> Any:
    made = Home(tmp_path)
    yield made
    made.lading.close()


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_each_bad_row_is_in_the_errors_table_once(tmp_path: Path, form: str) -> None:
    home = Home(tmp_path, form)
    (tmp_path / "more").mkdir()
    home.lading.sql(text_of(tmp_path))
    home.lading.sql(text_of(tmp_path, name="k", folder="more"))
    home.put("1", "1,essen", "x,bonn", "3,ulm", "y,köln")
    home.put("1", "7,essen", "v,w", folder="more")
    home.run()
    home.put("2", "4,essen")
    home.run()
    home.put("3", "z,z")
    home.restart()
    home.run()
    home.run()
    rows = sorted(
        (row["job"], row["seq"], Path(row["file"]).name, row["row_number"], row["raw"]) for row in home.read()
    )
    bad = [("j", 1, "1.csv", 2, "x,bonn"), ("j", 1, "1.csv", 4, "y,köln"), ("j", 3, "3.csv", 1, "z,z")]
    assert [(job, file, row, raw) for job, _, file, row, raw in rows] == [
        *((job, file, row, raw) for job, _, file, row, raw in bad),
        ("k", "1.csv", 2, "v,w"),
    ]
    shown = home.lading.sql("SHOW LOAD ERRORS FOR j")[-1].rows
    table = {(row["seq"], row["file"], row["row_number"], row["reason"], row["raw"]) for row in home.read()}
    assert set(shown) <= table
    assert len(shown) == 3
    assert {row["id"] for row in home.read("t")} == {1, 3, 4, 7}
    told = {name: value for name, value in home.statistic().items() if name.startswith("error")}
    assert told == {"errorsTable": "default.t_errors", "errorRowsCopied": 3, "errorCommitsToCopy": 0}
    assert "default.t_errors" in str(home.lading.sql("EXPLAIN JOB j")[-1].rows)
    # What else is done to tables does no harm to it.
    home.lading.sql("ADMIN CLEAN ORPHANS; OPTIMIZE t_errors" if form != "paimon" else "ADMIN CLEAN ORPHANS")
    assert home.lading.verify("j").is_clean
    assert len(home.read()) == 4
    home.lading.close()


_RUN = """
import sys
from lading.failpoints import arm_from_text
from tests.console.local import LocalLading
arm_from_text(sys.argv[2])
with LocalLading(sys.argv[1]) as it:
    it.run()
"""


def test_a_kill_between_the_commit_of_the_job_and_the_copy_loses_nothing(home: Home) -> None:
    home.lading.sql(text_of(home.path))
    home.run()
    home.lading.close()
    home.put("1", "1,essen", "x,bonn", "y,ulm")
    ended = subprocess.run(
        [sys.executable, "-c", _RUN, str(home.path / "home"), "errors.bill.before=kill"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        cwd=ROOT,
        check=False,
        capture_output=True,
        timeout=300,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
    # The job has committed, and the errors table knows nothing of it.
    assert [row["id"] for row in home.read("t")] == [1]
    assert home.raw() == {}
    home.lading = home.open()
    home.run()
    with duckdb.connect() as connection:
        connection.register("bad", read_elsewhere("delta", home.path / "home/warehouse/default/t_errors"))
        found = connection.sql("SELECT raw, count(*) FROM bad GROUP BY raw ORDER BY raw").fetchall()
    assert found == [("x,bonn", 1), ("y,ulm", 1)]
    assert [row["id"] for row in home.read("t")] == [1]


@pytest.mark.parametrize(
    ("before", "name", "message"),
    [
        ("CREATE TABLE e (id BIGINT) USING delta", "e", "it has no column job STRING"),
        ("", "t", "the table that the job itself loads"),
        ("", "nosuch.e", "Unknown database 'nosuch'"),
        ("", "a.b.c.d", "should be the name of a table"),
        ("", "default.", "should be the name of a table"),
    ],
)
def test_a_table_that_cannot_take_bad_rows_is_refused(home: Home, before: str, name: str, message: str) -> None:
    if before:
        home.lading.sql(before)
    with pytest.raises(LadingError, match=message):
        home.lading.sql(text_of(home.path, f'"errors.table"="{name}"'))
    assert home.lading.sql("SELECT Name FROM jobs('type'='insert')")[-1].rows == ()


def test_no_table_is_made_for_a_job_that_is_refused_or_only_tried(home: Home) -> None:
    home.put("1", "1,essen")
    with pytest.raises(SqlError, match="nosuch"):
        home.lading.sql(text_of(home.path, select="id, nosuch"))
    home.lading.sql(f"EXPLAIN {text_of(home.path)}")
    assert home.lading.sql("SHOW TABLES")[-1].rows == (("t",),)


def test_alter_names_another_table_and_none(home: Home) -> None:
    home.lading.sql(text_of(home.path, '"max_interval"="9"'))
    home.put("1", "x,1")
    home.run()
    home.lading.sql("PAUSE JOB WHERE jobName='j'")
    home.lading.sql(f"EXPLAIN ALTER JOB j PROPERTIES({ERRORS})")
    assert ("t_errors",) not in home.lading.sql("SHOW TABLES")[-1].rows
    home.lading.sql(f"ALTER JOB j PROPERTIES({ERRORS}); RESUME JOB WHERE jobName='j'")
    with pytest.raises(ConfigError, match="gets the bad rows of j"):
        home.lading.sql("DROP TABLE t_errors")
    home.put("2", "y,2")
    home.run()
    # Also those of before, whose bills are still there.
    assert home.raw() == {"x,1": 1, "y,2": 1}
    home.lading.sql("PAUSE JOB WHERE jobName='j'; ALTER JOB j PROPERTIES('errors.table'='')")
    home.lading.sql("RESUME JOB WHERE jobName='j'")
    home.put("3", "z,3")
    assert home.run().state.value == "RUNNING"
    assert "errorsTable" not in home.statistic()
    assert home.raw() == {"x,1": 1, "y,2": 1}
    home.lading.sql("PAUSE JOB WHERE jobName='j'; UNDO ALTER JOB j; RESUME JOB WHERE jobName='j'")
    home.run()
    assert home.raw() == {"x,1": 1, "y,2": 1, "z,3": 1}
    record = home.lading.job("j")
    assert parse_body(JobRecord, render_body(record), where="here") == record
    home.lading.sql("DROP JOB WHERE jobName='j'")
    errors = home.lading.catalog.open_table("default", "t_errors")
    assert errors.ended_jobs() == {errors_id(record.job_id)}
    home.lading.sql("DROP TABLE t_errors")


def test_while_the_errors_table_is_away_the_job_loads_and_says_so(home: Home) -> None:
    home.lading.sql(text_of(home.path, f'{ERRORS}, "s3.ingestion_mode"="ONCE"'))
    place, away = home.path / "home/warehouse/default/t_errors", home.path / "away"
    home.put("1", "1,essen", "x,1")
    shutil.move(place, away)
    assert home.run().state.value != "FINISHED"
    assert [row["id"] for row in home.read("t")] == [1]
    told = home.statistic()
    assert "t_errors" in told["errorsTableProblem"], told
    shutil.move(away, place)
    home.restart()
    assert home.run().state.value == "FINISHED"
    assert home.raw() == {"x,1": 1}
    assert "errorsTableProblem" not in home.statistic()


def test_a_lost_store_goes_on_with_it_and_makes_no_job_of_it(home: Home) -> None:
    home.lading.sql(text_of(home.path))
    home.put("1", "x,1")
    home.run()
    job_id = home.lading.job("j").job_id
    home.lading.close()
    (home.path / "home" / "lading.db").unlink()
    home.lading = home.open()
    found = {f"{each.what} {each.name}": each.fate for each in recover(home.lading)}
    assert found == {"table default.t": "recovered", "table default.t_errors": "recovered", "job j": "recovered"}
    assert home.lading.job("j").job_id == job_id
    home.lading.sql("RESUME JOB WHERE jobName='j'")
    home.put("2", "y,2")
    home.run()
    assert home.raw() == {"x,1": 1, "y,2": 1}


def test_a_routine_load_has_one_and_who_may_not_load_into_it_is_refused(bench: Desk) -> None:
    bench.sql(
        f"CREATE USER jack IDENTIFIED BY '{PASSWORD}'; GRANT LOAD ON shop.t TO jack; "
        f'CREATE ROUTINE LOAD own ON t PROPERTIES("errors.table"="e") {KAFKA.format("")}'
    )
    assert bench.sql("SHOW TABLES") == [("e",), ("t",)]
    jack = bench.lading.session("jack", "shop")
    text = f'CREATE ROUTINE LOAD j ON t PROPERTIES("errors.table"="{{}}") {KAFKA.format("")}'
    for name in ("e", "f"):
        with pytest.raises(DeniedError, match="LOAD"):
            jack.sql(text.format(name))
    bench.sql("GRANT LOAD ON shop TO jack")
    with pytest.raises(DeniedError, match="ADMIN"):
        jack.sql(text.format("f"))  # It would be made.
    jack.sql(text.format("e"))
    bench.sql("REVOKE LOAD ON shop FROM jack; PAUSE ROUTINE LOAD FOR own")
    with pytest.raises(DeniedError, match="LOAD"):
        jack.sql('ALTER ROUTINE LOAD FOR own PROPERTIES("errors.table"="f")')
    bench.sql('ALTER ROUTINE LOAD FOR own PROPERTIES("errors.table"="shop.f")')
    assert '"errors.table" = "shop.f"' in str(bench.sql("SHOW CREATE ROUTINE LOAD FOR own"))
    bench.run()
    assert bench.show("own")["State"] == "PAUSED"
