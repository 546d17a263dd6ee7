"""GROUP BY window(…), from the statement to the table, compared with what DuckDB computes over the whole input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from lading.commit.steps import STEP_NAMES
from lading.errors import NotSupportedError, SqlError
from lading.failpoints import arm, disarm_all
from lading.pipeline.state import packing
from lading.service.views.jobs import JobViews
from lading.tables.registry import kind_of
from tests.service.conftest import Desk
from tests.tables.optional import skip_without

CSV = '"format"="csv_with_names", "column_separator"=","'
WATERMARK = "'watermark.column'='at', 'watermark.delay'='1 minute'"
IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "settle.before")))


class Killed(BaseException):
    """The process is gone here."""


@pytest.fixture
def kills() -> Iterator[None]:
    yield
    disarm_all()


def create(desk: Desk, columns: str, select: str, group: str, *, form: str = "delta", more: str = "") -> None:
    desk.sql(f"CREATE TABLE t ({columns}) USING {form}")
    desk.sql(
        f"CREATE JOB j PROPERTIES({WATERMARK}{more}) ON STREAMING DO INSERT INTO t SELECT {select} "
        f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) {group}'
    )


def put(desk: Desk, name: str, rows: list[str]) -> None:
    desk.put(name, rows, header="at,city,amount")


def rows_of(desk: Desk) -> list[tuple[Any, ...]]:
    """As somebody else reads the table, where that can be done without Java."""
    table = desk.lading.catalog.open_table("shop", "t")
    if (Path(table.location) / "_delta_log").exists():
        return sorted(pl.read_delta(table.location).rows())
    return sorted(tuple(row.values()) for row in table.scan().to_pylist())


def load_all(desk: Desk, files: list[list[str]]) -> None:
    """File after file, and one that closes every window of theirs."""
    for number, rows in enumerate([*files, END]):
        put(desk, f"{number:02}.csv", rows)
        desk.run()
    desk.run()


def whole(inputs: list[str], query: str) -> list[tuple[Any, ...]]:
    """The same by other means: all rows at once, in DuckDB."""
    parts = [row.split(",") for row in inputs]
    table = pa.table({name: [part[n] for part in parts] for n, name in enumerate(("happened", "city", "amount"))})
    with duckdb.connect() as connection:
        connection.register("rows", table)
        return sorted(connection.sql(query).fetchall())


def story(seed: int, minutes: int, per_minute: int) -> list[list[str]]:
    """Files of rows that are at most half a minute late."""
    rng, files = Random(seed), list[list[str]]()
    for minute in range(minutes):
        rows = []
        for _ in range(per_minute):
            second = minute * 60 + rng.randint(-30, 59)
            at = f"2026-01-01 {12 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            rows.append(f"{at},{rng.choice(('essen', 'köln', 'bonn'))},{rng.randint(1, 10_000) / 100}")
        files.append(rows)
    return files


END = ["2026-01-02 00:00:00,end,0"]
"""Moves the watermark past everything before; its own window stays open."""


def loaded_story(desk: Desk, files: list[list[str]], query: str) -> list[tuple[Any, ...]]:
    """Load all of them, and say what a query over all of their rows finds."""
    load_all(desk, files)
    return whole([row for rows in files for row in rows], query)


def test_counts_per_minute_are_those_of_the_whole_input(desk: Desk) -> None:
    create(
        desk,
        "at DATETIME, city STRING, n BIGINT, total DECIMAL(20,2), least DOUBLE, middle DOUBLE, spread DOUBLE",
        "window_start, city, count(*), sum(cast(amount AS DECIMAL(10,2))), min(cast(amount AS DOUBLE)), "
        "avg(cast(amount AS DOUBLE)), stddev(amount)",
        "GROUP BY window(at, '1 minute'), city",
    )
    expected = loaded_story(
        desk,
        story(1, 3, 40),
        "SELECT date_trunc('minute', happened::TIMESTAMP), city, count(*), sum(amount::DECIMAL(10,2)), "
        "min(amount::DOUBLE), avg(amount::DOUBLE), stddev_pop(amount::DOUBLE) FROM rows GROUP BY ALL",
    )
    got = rows_of(desk)
    assert [row[:5] for row in got] == [row[:5] for row in expected]
    assert [row[5:] for row in got] == [pytest.approx(row[5:]) for row in expected]
    bill = desk.lading.bills(desk.lading.job("j"), 1)[0]
    assert (bill.totals.rows.loaded, bill.totals.written) == (121, len(expected))
    assert bill.state is not None
    assert bill.state.rows == 1
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    assert plan["kept"].startswith("count, sum, min, avg, stddev_pop by window of 60 s and key")
    assert "one that merges it with the state" in plan["path"]


def test_what_the_reading_tasks_add_up_is_that_of_the_whole_input(desk: Desk) -> None:
    create(
        desk,
        "at DATETIME, city STRING, n BIGINT, huge DECIMAL(38,0), middle DOUBLE, least DECIMAL(10,2), last STRING, "
        "yes BOOLEAN",
        "window_start, city, count(*), sum(cast(cast(amount AS BIGINT) * 90000000000000000 AS BIGINT)), "
        "avg(cast(amount AS INT)), min(cast(amount AS DECIMAL(10,2))), max(amount), "
        "bool_and(cast(amount AS DOUBLE) > 10)",
        "GROUP BY window(at, '1 minute'), city",
    )
    expected = loaded_story(
        desk,
        story(3, 3, 40),
        "SELECT date_trunc('minute', happened::TIMESTAMP), city, count(*), "
        "sum(trunc(amount::DOUBLE)::HUGEINT * 90000000000000000), avg(trunc(amount::DOUBLE)), "
        "min(amount::DECIMAL(10,2)), max(amount), bool_and(amount::DOUBLE > 10) FROM rows GROUP BY ALL",
    )
    got = rows_of(desk)
    assert max(row[3] for row in got) > 2**63
    assert [(*row[:4], *row[5:]) for row in got] == [(*row[:4], *row[5:]) for row in expected]
    assert [row[4] for row in got] == [pytest.approx(row[4]) for row in expected]
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    assert "a stage that adds partial results to the state" in plan["path"]


def test_windows_that_overlap_and_other_aggregates(desk: Desk) -> None:
    create(
        desk,
        "start DATETIME, ending DATETIME, n BIGINT, best STRING, first STRING, kinds BIGINT, yes BOOLEAN",
        "window_start, window_end, count(amount), max_by(city, cast(amount AS DOUBLE)), first(amount), "
        "approx_count_distinct(city), bool_or(cast(amount AS DOUBLE) > 99.5)",
        "WHERE city <> 'bonn' GROUP BY window(at, '2 minutes', '1 minute') HAVING count(*) > 1",
    )
    expected = loaded_story(
        desk,
        story(2, 3, 25),
        """SELECT start, start + INTERVAL 2 MINUTE, count(*), max_by(city, amount::DOUBLE), arg_min(amount, happened),
                  count(DISTINCT city), bool_or(amount::DOUBLE > 99.5)
           FROM (SELECT *, unnest([date_trunc('minute', happened::TIMESTAMP) - INTERVAL 1 MINUTE,
                                   date_trunc('minute', happened::TIMESTAMP)]) AS start FROM rows WHERE city <> 'bonn')
           GROUP BY start HAVING count(*) > 1""",
    )
    # Which of two rows of the same second is first is not the same elsewhere.
    assert [(*row[:4], *row[5:]) for row in rows_of(desk)] == [(*row[:4], *row[5:]) for row in expected]


def test_every_other_aggregate_is_that_of_the_whole_input(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_FILES", 2)  # What is merged at the end was merged before.
    number = "cast(amount AS DOUBLE)"
    create(
        desk,
        "begun DATETIME, city STRING, half DOUBLE, most DOUBLE, "
        "cities STRING, few STRING, amounts STRING, worst STRING, best STRING, "
        "low DOUBLE, v DOUBLE, vs DOUBLE, ss DOUBLE, every BOOLEAN, some BOOLEAN, any STRING, newest STRING, "
        "oldest STRING, kinds BIGINT",
        f"window_start, city, approx_percentile({number}, 0.5), percentile_approx({number}, 0.99), collect_set(city), "
        f"collect_set(cast(amount AS DECIMAL(10,2)), 3), collect_list({number}, 5), min_by(at, {number}), "
        f"max_by(at, {number}), min({number}), variance({number}), var_samp({number}), stddev_samp({number}), "
        f"bool_and({number} > 0), bool_or({number} > 1000), any_value(city), last(at), first(at), "
        "approx_count_distinct(amount)",
        "GROUP BY window(at, '1 hour'), city",
    )
    files = story(4, 3, 400)
    load_all(desk, files)
    inputs = [row for rows in files for row in rows if row >= "2026-01-01 12:00:00"]
    expected = whole(
        inputs,
        """SELECT city, to_json(list_distinct([city])), to_json(list(DISTINCT amount::DECIMAL(10,2) ORDER BY
                  amount::DECIMAL(10,2))[1:3]), min_by(happened, amount::DOUBLE), max_by(happened, amount::DOUBLE),
                  min(amount::DOUBLE), var_pop(amount::DOUBLE), var_samp(amount::DOUBLE), stddev_samp(amount::DOUBLE),
                  true, false, city, max(happened), min(happened) FROM rows GROUP BY city""",
    )
    got = [row[1:] for row in rows_of(desk) if row[0].hour == 12]
    exact = [(row[0], *row[3:5], *row[6:17]) for row in got]
    for mine, theirs in zip(exact, expected, strict=True):
        assert mine[0] == theirs[0]
        assert [json.loads(each) for each in mine[1:3]] == [json.loads(each) for each in theirs[1:3]]
        assert mine[5:9] == pytest.approx(theirs[5:9])
        assert (*mine[3:5], *mine[9:]) == (*theirs[3:5], *theirs[9:])
    for row in got:
        values = sorted(float(each.split(",")[2]) for each in inputs if each.split(",")[1] == row[0])
        for rank, value in ((0.5, row[1]), (0.99, row[2])):
            below, up_to = (
                sum(test) / len(values) for test in ([v < value for v in values], [v <= value for v in values])
            )
            assert below - 0.014 <= rank <= up_to + 0.014
        earliest = sorted(each for each in inputs if each.split(",")[1] == row[0])[4]
        listed = json.loads(row[5])
        allowed = {float(e.split(",")[2]) for e in inputs if e.split(",")[1] == row[0] and e[:19] <= earliest[:19]}
        assert len(listed) == 5
        assert set(listed) <= allowed
        since = [
            min(e[:19] for e in inputs if e.split(",")[1] == row[0] and float(e.split(",")[2]) == v) for v in listed
        ]
        assert since == sorted(since)
        assert row[17] == pytest.approx(len(set(values)), rel=0.05)
    states = [bill.state for bill in desk.lading.bills(desk.lading.job("j"), 10)]
    assert max(state.files for state in states if state is not None) <= 2


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        ("delta", IN_BATCHES),
        # Those of Iceberg in test_watermarks.py run for every change.
        pytest.param("iceberg", ("merge.before", "merge.after", "commit.after"), marks=pytest.mark.slow),
        ("paimon", ("merge.after", "commit.after")),
    ],
)
def test_a_kill_at_any_step_writes_each_result_once(desk: Desk, kills: None, form: str, steps: tuple[str, ...]) -> None:
    def die(name: str) -> None:
        raise Killed(name)

    skip_without(kind_of(form))
    create(
        desk,
        "at DATETIME, city STRING, n BIGINT",
        "window_start, city, count(*)",
        "GROUP BY window(at, '1 minute'), city",
        form=form,
    )
    files = story(3, len(steps), 10)
    for number, (step, rows) in enumerate(zip(steps, files, strict=True)):
        put(desk, f"{number:02}.csv", rows)
        arm(step, die)
        with pytest.raises(Killed):
            desk.lading.runner(desk.lading.job("j").job_id).run_once()
        disarm_all()
        desk.restart()
    put(desk, "99.csv", END)
    desk.run()
    desk.run()
    query = "SELECT date_trunc('minute', happened::TIMESTAMP), city, count(*) FROM rows GROUP BY ALL"
    assert rows_of(desk) == whole([row for rows in files for row in rows], query)
    verdict = desk.lading.verify("j")
    assert (verdict.is_clean, verdict.rows) == (True, len(rows_of(desk)))


def test_a_row_is_late_when_its_window_has_closed(desk: Desk) -> None:
    create(desk, "at DATETIME, n BIGINT", "window_start, count(*)", "GROUP BY window(at, '1 minute')")
    put(desk, "a.csv", ["2026-01-01 12:00:10,x,1", "2026-01-01 12:02:30,x,1"])
    desk.run()
    # The watermark is 12:01:30: the first minute has closed, the second and the third have not.
    assert JobViews(desk.lading).one_job("j").open_windows == 2
    put(desk, "b.csv", ["2026-01-01 12:00:59,x,1", "2026-01-01 12:01:00,x,1", "2026-01-01 12:05:00,x,1"])
    desk.run()
    desk.run()
    totals = desk.lading.job("j").totals
    assert totals is not None
    assert (totals.rows.loaded, totals.rows.late) == (4, 1)
    assert [(row[0].minute, row[1]) for row in rows_of(desk)] == [(0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("select", "group", "message"),
    [
        ("median(amount)", "GROUP BY window(at, '1 minute')", "median is not possible"),
        ("count(DISTINCT city)", "GROUP BY window(at, '1 minute')", "DISTINCT"),
        ("city", "GROUP BY window(at, '1 minute')", "Column city is neither in GROUP BY nor in an aggregate"),
        ("count(*)", "GROUP BY city", "GROUP BY needs exactly one window"),
        ("approx_percentile(amount, 2)", "GROUP BY window(at, '1 minute')", "must be a number from 0 to 1"),
        ("approx_percentile(amount)", "GROUP BY window(at, '1 minute')", "must be a number from 0 to 1"),
        ("percentile(amount, 0.5)", "GROUP BY window(at, '1 minute')", "percentile is not possible"),
        ("collect_list(amount, 0)", "GROUP BY window(at, '1 minute')", "a whole number from 1 to 100000"),
        ("count(*)", "GROUP BY window(at, 'soon')", "should be a length of time"),
        ("count(*)", "GROUP BY window(at, '1 minute', '2 minutes')", "must not be further apart"),
        ("count(*)", "GROUP BY window(city, '1 minute')", "is over city, and the watermark over at"),
        ("nosuch(count(*))", "GROUP BY window(at, '1 minute')", "nosuch"),
        ("sum(nosuch)", "GROUP BY window(at, '1 minute')", "Unknown column 'nosuch'"),
    ],
)
def test_what_cannot_be_is_refused_by_create(desk: Desk, select: str, group: str, message: str) -> None:
    put(desk, "a.csv", ["2026-01-01 12:00:10,x,1"])
    with pytest.raises((NotSupportedError, SqlError), match=message):
        create(desk, "n STRING", select, group)


def test_windows_need_a_watermark(desk: Desk) -> None:
    desk.sql("CREATE TABLE t (n BIGINT) USING delta")
    with pytest.raises(SqlError, match="needs a watermark"):
        desk.sql(
            "CREATE JOB j ON STREAMING DO INSERT INTO t SELECT count(*) "
            f'FROM FILE("uri"="{desk.inbox}/*.csv", {CSV}) GROUP BY window(at, \'1 minute\')'
        )


def test_a_result_that_does_not_fit_stops_the_job_and_loses_nothing(desk: Desk) -> None:
    create(desk, "n TINYINT", "count(*) * 100", "GROUP BY window(at, '1 minute')")
    put(desk, "a.csv", ["2026-01-01 12:00:10,x,1", "2026-01-01 12:00:11,x,1"])
    put(desk, "b.csv", END)
    for _ in range(3):
        desk.lading.runner(desk.lading.job("j").job_id).run_once()
    record = desk.lading.job("j")
    assert record.reason is not None
    assert "A result of a window does not fit the table: column n" in record.reason.message
    assert json.loads(record.current_offset)["fileName"].endswith("b.csv")
    assert list((Path(desk.lading.catalog.open_table("shop", "t").location)).rglob("*.manifest.json"))
