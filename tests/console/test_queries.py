"""What the pages of tables, of SQL and of tokens ask, with the rights of the visitor. Without a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from lading.console import queries
from lading.console.commit_page import facts_of, files_of
from lading.console.desk import Console, Visitor
from lading.console.job_timeline import event_row
from lading.console.step_timings import StepMemory
from lading.console.visits import Visits
from lading.console.widgets.results import MOST_CELL, answer_words, cell_of
from lading.errors import ConfigError, DeniedError, LadingError, TableError, TableNotFoundError
from lading.service.views.jobs import JobViews
from lading.tables.registry import kind_of
from lading.testing.marked import secret
from tests.console.local import LocalLading, PastClock
from tests.support.jvm_engine import JvmEngine


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """A table of two formats with a file each, loaded by a job."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n2,lagos\n")
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE DATABASE shop; USE shop")
        for form in ("delta", "iceberg"):
            lading.sql(
                f"CREATE TABLE {form}_t (id BIGINT, city STRING) USING {form}; "
                f'CREATE JOB {form}_j PROPERTIES ("file.settle_seconds"="0") ON STREAMING DO '
                f"INSERT INTO {form}_t SELECT id, city "
                f'FROM FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
            )
        lading.run()
        made = Console(
            lading=lading,
            sights=JobViews(lading),
            memory=StepMemory(lading.clock),
            visits=Visits(lading.clock),
            access=lading.access,
        )
        yield made
        made.close()


ANYBODY = Visitor(user="anonymous")


def visitor_named(console: Console, name: str) -> Visitor:
    assert console.access is not None
    found = console.access.prove(name, secret(name))
    assert found is not None
    return Visitor(user=name, rights=console.access.rights(found), has_logged_in=True)


def test_a_table_is_shown_with_columns_files_and_the_commits_of_its_job(console: Console) -> None:
    found = queries.look_at_table(console, ANYBODY, "shop.delta_t")
    assert [row[:2] for row in found.columns.rows] == [("id", "bigint"), ("city", "string")]
    assert (found.total("Files"), found.total("Rows")) == (1, 2)
    assert [each.bill.tally.rows.loaded for each in found.history if each.bill] == [2, 0]
    assert [(each.version, each.what, each.job, each.seq) for each in found.history] == [
        ("2", "WRITE", "delta_j", 1),
        ("1", "WRITE", "delta_j", 0),
        ("0", "CREATE TABLE", "", None),
    ]
    other = queries.look_at_table(console, ANYBODY, "shop.iceberg_t")
    assert [(bool(each.version), each.what, each.job, each.seq) for each in other.history] == [
        (True, "append", "iceberg_j", 1),
        (True, "append", "iceberg_j", 0),
    ]
    assert [table.name for table in queries.list_tables(console, ANYBODY)] == ["shop.delta_t", "shop.iceberg_t"]
    with pytest.raises(TableNotFoundError):
        queries.look_at_table(console, ANYBODY, "shop.nothing")


def test_who_may_not_see_a_table_does_not_find_it_and_sql_runs_with_their_rights(console: Console) -> None:
    console.lading.sql(f"CREATE USER eve IDENTIFIED BY '{secret('eve')}'; GRANT SELECT ON shop.delta_t TO eve")
    eve = visitor_named(console, "eve")
    assert [table.name for table in queries.list_tables(console, eve)] == ["shop.delta_t"]
    assert queries.list_tables(console, eve)[0].jobs == ()  # Jobs need LOAD.
    seen = queries.look_at_table(console, eve, "shop.delta_t")
    assert {(each.job, each.seq, each.bill) for each in seen.history} == {("", None, None)}
    with pytest.raises(TableNotFoundError):
        queries.look_at_table(console, eve, "shop.iceberg_t")
    for text in ("DROP TABLE shop.delta_t", "CREATE DATABASE mine", "SELECT * FROM shop.iceberg_t"):
        with pytest.raises(DeniedError):
            queries.run_sql(console, eve, text, "default", [])
    token = queries.create_token(console, eve, comment="nightly", days=7, only_reads=True)
    assert token.startswith("lading_")
    ((token_id, user, scope, *_),) = queries.list_tokens(console, eve).rows
    assert (user, "READ ONLY" in str(scope).upper()) == ("eve", True)
    queries.drop_token(console, eve, str(token_id))
    assert list(queries.list_tokens(console, eve).rows) == []


def test_sql_answers_up_to_the_first_statement_that_fails(console: Console) -> None:
    answers: list[queries.Answered] = []
    with pytest.raises(LadingError):
        queries.run_sql(
            console, ANYBODY, "SHOW DATABASES; USE shop; SHOW TABLES; DROP TABLE nothing", "default", answers
        )
    assert [answer.columns for answer in answers] == [("Database",), (), ("Tables_in_shop",)]
    assert [row[0] for row in answers[2].rows] == ["delta_t", "iceberg_t"]
    with pytest.raises(ConfigError, match="too large"):
        queries.run_sql(console, ANYBODY, "x " * 600_000, "default", answers)


def test_values_are_text_and_long_ones_are_cut() -> None:
    assert cell_of(None) == {"text": "NULL", "tone": "idle", "whole": True}
    # Words are not broken where a table has many columns, and long texts do not make a row of a thousand pixels.
    assert [(cell_of(text)["whole"], cell_of(text)["wide"]) for text in ("RUNNING", "x" * 50, "x" * 100)] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert cell_of("<b>")["text"] == "<b>"
    assert cell_of(b"\x00\xff")["text"] == "00ff"
    assert cell_of(True)["text"] == "true"
    assert cell_of(("bob", None, [1, Decimal("1.50")]))["text"] == '["bob", null, [1, "1.50"]]'
    assert (
        cell_of({"a": float("nan"), "b": {"c": b"\x01", "d": False}})["text"]
        == '{"a": "nan", "b": {"c": "01", "d": false}}'
    )
    assert cell_of([["\ud800"]])["text"] == '[["\\ud800"]]'
    assert len(cell_of("x" * 1000)["text"]) == MOST_CELL
    assert cell_of("\ud800")["text"] == "\\ud800"
    assert answer_words((), 0, "", is_cut=False) == "Done"
    assert answer_words(("a",), 1, "", is_cut=False) == "1 row"
    assert answer_words(("a",), 1000, "", is_cut=True) == "The first 1,000 rows; there are more"


@pytest.mark.parametrize("engine", ["Polars", "DuckDB"])
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_the_lines_to_read_a_table_elsewhere_read_it(console: Console, form: str, engine: str) -> None:
    table = queries.look_at_table(console, ANYBODY, f"shop.{form}_t").table
    lines = kind_of(form).read_elsewhere(table.name, table.location)[engine]
    place = Path(table.location.removeprefix("file://"))
    newest = max((place / "metadata").glob("*.metadata.json"), default=Path("none"))
    script = lines.replace("NEWEST.metadata.json", newest.name)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert "essen" in done.stdout, done.stderr
    assert "lagos" in done.stdout


@dataclass(frozen=True, slots=True)
class SparkReader:
    """`spark` of the lines for Spark: its calls are made by a Spark on the JVM that has Delta and Iceberg."""

    engine: JvmEngine
    shown: list[dict[str, Any]]
    form: str = ""
    place: str = ""

    @property
    def read(self) -> SparkReader:
        return self

    def format(self, form: str) -> SparkReader:
        return replace(self, form=form)

    def load(self, place: str) -> SparkReader:
        return replace(self, place=place)

    def show(self, most: int) -> None:
        self.shown.extend(self.engine.read(self.form, self.place)[:most])


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_the_lines_for_spark_read_the_table(console: Console, jvm: JvmEngine, form: str) -> None:
    table = queries.look_at_table(console, ANYBODY, f"shop.{form}_t").table
    lines = kind_of(form).read_elsewhere(table.name, table.location)["Spark"]
    newest = max((Path(table.location.removeprefix("file://")) / "metadata").glob("*.metadata.json"), default=Path("-"))
    spark = SparkReader(jvm, [])
    exec(compile(lines.replace("NEWEST.metadata.json", newest.name), "lines", "exec"), {"spark": spark})
    assert sorted(spark.shown, key=lambda row: row["id"]) == [{"id": 1, "city": "essen"}, {"id": 2, "city": "lagos"}]


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_the_lines_for_trino_are_trinos_sql_however_a_table_is_named(form: str) -> None:
    """No Trino runs here: they are read as its dialect has them, and the values are compared."""
    lines = kind_of(form).read_elsewhere("sh'op.or\"ders", "s3://b/x'y")["Trino"]
    call, select, *rest = (each.strip() for each in lines.split(";"))
    assert rest == [""]
    asked = sqlglot.parse_one(call.replace("CALL", "SELECT", 1), dialect="trino")
    given = {each.this.name: each.expression.name for each in asked.find_all(sqlglot.exp.Kwarg)}
    assert given == {"schema_name": "sh'op", "table_name": 'or"ders', "table_location": "s3://b/x'y"}
    assert ".".join(each.name for each in asked.find_all(sqlglot.exp.Identifier)) == f"{form}.system"
    (table,) = sqlglot.parse_one(select, dialect="trino").find_all(sqlglot.exp.Table)
    assert [part.name for part in table.parts] == [form, "sh'op", 'or"ders']


def test_lines_for_a_strange_place_stay_inside_their_quotes() -> None:
    lines = kind_of("delta").read_elsewhere("a.b'c", "/x\"y'z\\")
    assert '"/x\\"y\'z\\\\"' in lines["Spark"]
    assert "'/x\"y''z\\'" in lines["Trino"]


def test_the_timeline_has_commits_together_and_what_lies_between_them(console: Console) -> None:
    lading = console.lading
    inbox = Path(lading.home.path).parent / "in"
    for number in range(3):
        (inbox / f"b{number}.csv").write_text(f"id,city\n{number},osaka\n")
        lading.run(["delta_j"])
    lading.sql("PAUSE JOB WHERE jobname = 'delta_j'")
    events = console.sights.timeline("delta_j", minutes=60)
    assert [event.kind for event in events[:2]] == ["pause", "commit"]
    assert (events[1].first_seq, events[1].last_seq, events[1].rows) == (1, 4, 5)
    assert {event.kind for event in events} <= {"pause", "commit", "edit"}
    row = event_row("delta_j", events[1])
    assert row["told"] == {"text": "4 commits, 1 to 4", "href": "/jobs/delta_j/commits/4", "note": "5 rows"}
    (inbox / "c.csv").write_text("id,city\nwrong,quito\n")
    lading.sql("RESUME JOB WHERE jobname = 'delta_j'")
    lading.run(["delta_j"])
    kinds = [event.kind for event in console.sights.timeline("delta_j", minutes=60)]
    assert set(kinds[:2]) == {"failure", "pause"}
    assert kinds[2] == "resume"


def test_the_timeline_has_the_tries_of_a_job_whose_source_is_away(tmp_path: Path) -> None:
    """Only the newest pause was told of a job that had been tried again and again."""
    inbox, clock = tmp_path / "in", PastClock()
    inbox.mkdir()
    (inbox / "a.csv").write_text("id\n1\n")
    with LocalLading(tmp_path / "home", clock=clock) as lading:
        lading.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT) USING delta")
        clock.behind = timedelta(minutes=50)
        lading.sql(
            'CREATE JOB j PROPERTIES ("file.settle_seconds"="0") ON STREAMING DO '
            f'INSERT INTO t SELECT id FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names")'
        )
        lading.run()
        inbox.rename(tmp_path / "away")
        inbox.write_text("somebody moved the folder")
        for minutes in (40, 30, 20):
            clock.behind = timedelta(minutes=minutes)
            if lading.job("j").state.value == "PAUSED":
                lading.sql("RESUME JOB WHERE jobname = 'j'")
            lading.run()
        events = [each for each in JobViews(lading).timeline("j", minutes=60) if each.kind != "resume"]
        assert [event.kind for event in events[:4]] == ["pause", "retry", "retry", "commit"]
        newest = JobViews(lading).timeline("j", minutes=15)
        assert [event.kind for event in newest] == ["pause", "resume", "retry", "resume"]
    row = event_row("j", events[1])
    assert row["kind"] == {"text": "retry", "badge": True, "tone": "warn"}
    assert str(inbox) in str(row["told"])


def test_the_page_of_a_commit_tells_what_its_bill_says(console: Console) -> None:
    bill = console.sights.bill_or_none("delta_j", 1)
    assert bill is not None
    told = facts_of(bill)
    assert (told["Kind"], told["Epoch"], told["Rows loaded in all"]) == ("load", "0", "2")
    assert "Why" not in told
    (file,) = files_of({"files": [{"path": "a.parquet", "rows": 7041, "size_bytes": 2588}]})
    assert file == {"path": "a.parquet", "rows": "7,041", "size": "2.5 KiB"}


def test_a_commit_whose_version_is_gone_stands_between_the_others(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(console.lading.home.path).parent / "in" / "b.csv").write_text("id,city\n3,osaka\n")
    console.lading.run(["delta_j"])
    monkeypatch.setattr("lading.service.views.tables.MOST_VERSIONS", 2)
    found = queries.look_at_table(console, ANYBODY, "shop.delta_t").history
    assert [(each.version, each.seq) for each in found] == [("3", 2), ("2", 1), ("", 0)]
    # Somebody took the log away: that is no table which nobody has made.
    log = Path(console.lading.home.path) / "warehouse" / "shop" / "delta_t" / "_delta_log"
    log.rename(log.with_name("elsewhere"))
    with pytest.raises(TableError, match="no log"):
        queries.look_at_table(console, ANYBODY, "shop.delta_t")
