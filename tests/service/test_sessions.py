"""GROUP BY session_window(…), from the statement to the table, compared with a plain computation over all rows."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import groupby
from random import Random
from typing import Any

import pytest

from lading.errors import NotSupportedError
from lading.failpoints import arm, disarm_all
from tests.service.conftest import Desk
from tests.service.test_windows import END, Killed, create, put, rows_of

GAP_S = 20
START = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - as the table has it
SELECT = "window_start, window_end, city, count(*), sum(cast(amount AS BIGINT)), collect_list(cast(amount AS BIGINT))"
COLUMNS = "begun DATETIME, ended DATETIME, city STRING, n BIGINT, total BIGINT, amounts STRING"
Click = tuple[int, str, int]
"""The second, the key, the amount."""


def plain(clicks: list[Click]) -> list[tuple[Any, ...]]:
    """What the sessions are, by going over the rows of each key in the order of time."""
    found = list[tuple[Any, ...]]()
    for city, rows in groupby(sorted(clicks, key=lambda each: (each[1], each[0])), key=lambda each: each[1]):
        sessions = list[list[Click]]()
        for row in rows:
            if not sessions or row[0] - sessions[-1][-1][0] >= GAP_S:
                sessions.append([])
            sessions[-1].append(row)
        for each in sessions:
            begun, ended = (START + timedelta(seconds=s) for s in (each[0][0], each[-1][0] + GAP_S))
            amounts = sorted(row[2] for row in each)
            found.append((begun, ended, city, len(each), sum(amounts), amounts))
    return sorted(found)


def told(desk: Desk) -> list[tuple[Any, ...]]:
    """As Polars reads the table. Rows of the same second have no order."""
    return sorted((*row[:5], sorted(json.loads(row[5]))) for row in rows_of(desk))


def texts(clicks: list[Click]) -> list[str]:
    return [f"{START + timedelta(seconds=second)},{city},{amount}" for second, city, amount in clicks]


def story(seed: int, batches: int) -> list[list[Click]]:
    """Many keys, each of which is a case of its own: rows of a batch bridge sessions of those before it."""
    rng = Random(seed)
    return [
        [(60 * b + rng.randint(-50, 59), f"k{rng.randint(0, 99)}", rng.randint(0, 999)) for _ in range(250)]
        for b in range(batches)
    ]


def die(name: str) -> None:
    raise Killed(name)


def test_sessions_are_those_of_the_whole_input_through_restarts_and_kills(desk: Desk) -> None:
    create(desk, COLUMNS, SELECT, "GROUP BY session_window(at, '20 seconds'), city")
    batches = story(1, 4)
    for number, (clicks, step) in enumerate(zip(batches, ("", "merge.after", "commit.after", ""), strict=True)):
        put(desk, f"{number}.csv", texts(clicks))
        if step:
            arm(step, die)
            with pytest.raises(Killed):
                desk.lading.runner(desk.lading.job("j").job_id).run_once()
            disarm_all()
            desk.restart()
        desk.run()
    put(desk, "9.csv", END)
    desk.run()
    desk.run()
    assert told(desk) == plain([click for clicks in batches for click in clicks])
    bill = desk.lading.bills(desk.lading.job("j"), 1)[0]
    assert bill.state is not None
    assert (bill.totals.rows.late, bill.state.rows) == (0, 1)
    assert desk.lading.verify("j").is_clean
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    assert "by session with gaps below 20 s and key" in plan["kept"]


def test_a_session_is_open_until_no_row_can_extend_it_and_late_rows_are_told(desk: Desk) -> None:
    create(desk, COLUMNS, SELECT, "GROUP BY session_window(at, '20 seconds'), city")
    put(desk, "0.csv", texts([(0, "a", 1), (15, "b", 1), (90, "z", 1)]))
    desk.run()  # The watermark is 30 after this.
    # a ended at 20, b at 35. A row of b at 34 goes on with it; one of a at 29 is behind the watermark.
    put(desk, "1.csv", texts([(34, "b", 2), (29, "a", 2), (36, "a", 3), (100, "z", 2)]))
    desk.run()
    assert [row[2:] for row in told(desk)] == [("a", 1, 1, [1])]
    put(desk, "2.csv", END)
    desk.run()
    desk.run()
    assert [row[2:] for row in told(desk)] == [
        ("a", 1, 1, [1]),
        ("b", 2, 3, [1, 2]),
        ("a", 1, 3, [3]),
        ("z", 2, 3, [1, 2]),
    ]
    totals = desk.lading.job("j").totals
    assert totals is not None
    assert (totals.rows.late, totals.rows.loaded) == (1, 7)


@pytest.mark.parametrize("group", ["session_window(at)", "session_window(at, '1 minute', '1 minute')"])
def test_a_session_has_one_length(desk: Desk, group: str) -> None:
    with pytest.raises(NotSupportedError, match="session_window takes the column with the event time"):
        create(desk, "n BIGINT", "count(*)", f"GROUP BY {group}")
