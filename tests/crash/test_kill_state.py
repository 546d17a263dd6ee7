"""Jobs with state are killed and go on with another number of tasks; DuckDB computes the same from the whole input.

One job loads the first row of each key, the other counts by the minute. Both run in one process on Spark, which is
killed in every phase: with seven tasks, with two, and with any number.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pytest

from lading.commit.steps import STEP_NAMES
from lading.service.facade import Lading
from lading.tables.registry import NAMES, kind_of
from tests.tables.optional import skip_without

IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "settle.before")))
"""Where every batch of a job with state passes."""
FIRST, THEN = 7, 2
FILES, ROWS = 4, 60
"""Of each phase, and of each file."""
RUNS = 50
JOBS = """CREATE DATABASE shop; USE shop;
CREATE TABLE firsts (id BIGINT, at DATETIME, n BIGINT) USING {form};
CREATE TABLE counts (minute DATETIME, city STRING, many BIGINT, total BIGINT) USING {form};
CREATE JOB firsts PROPERTIES("s3.max_batch_files"="2", "watermark.column"="at", "watermark.delay"="1 minute",
"dedup.keys"="id", "dedup.horizon"="1 day") ON STREAMING DO INSERT INTO firsts SELECT id, at, n FROM {source};
CREATE JOB counts PROPERTIES("s3.max_batch_files"="2", "watermark.column"="at", "watermark.delay"="1 minute")
ON STREAMING DO INSERT INTO counts SELECT window.start, city, count(*), sum(n) FROM {source}
GROUP BY window(at, '1 minute'), city"""
RUN = (
    "import sys; from lading import connect; from lading.failpoints import arm_from_text\n"
    "arm_from_text(sys.argv[3])\n"
    "with connect(sys.argv[1], spark={'spark.master': f'local[{sys.argv[2]}]'}) as lading: lading.run()"
)
EXPECTED = {
    "firsts": "SELECT id, arg_min(happened, n), min(n) FROM rows GROUP BY id",
    "counts": "SELECT time_bucket(INTERVAL 1 MINUTE, happened), city, count(*), sum(n) FROM rows "
    "WHERE happened < TIMESTAMP '2026-01-02' GROUP BY ALL",
}


class Story:
    """A home, an inbox that fills, and everything that was put into it."""

    def __init__(self, path: Path, form: str, rng: Random) -> None:
        skip_without(kind_of(form))
        self.home, self._inbox, self._rng = path / "home", path / "in", rng
        self._inbox.mkdir()
        self._rows: list[tuple[int, str, str, int]] = []
        self._files = 0
        source = f'FILE("uri"="{self._inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
        with Lading(self.home) as lading:
            lading.sql(JOBS.format(form=form, source=source))

    def put(self, files: int) -> None:
        """Files of rows that are at most half a minute behind the newest; every third row was sent before."""
        for _ in range(files):
            rows: list[tuple[int, str, str, int]] = []
            for _ in range(ROWS):
                number = len(self._rows) + len(rows)
                second = max(0, number - self._rng.randrange(30))
                known = self._rows[self._rng.randrange(len(self._rows))][0] if self._rows else 0
                key = known if self._rng.random() < 0.33 else number
                at = f"2026-01-01 {12 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
                rows.append((key, at, self._rng.choice(("essen", "bonn", "ulm")), number))
            self._write(rows)

    def end(self) -> None:
        """A row that closes every window of the others."""
        self._write([(10**6, "2026-01-02 00:00:00", "end", 10**6)])

    def _write(self, rows: list[tuple[int, str, str, int]]) -> None:
        lines = ["id,at,city,n", *(",".join(map(str, row)) for row in rows)]
        (self._inbox / f"{self._files:04}.csv").write_text("\n".join(lines) + "\n")
        self._files += 1
        self._rows += rows

    def run(self, tasks: int, failpoint: str = "") -> int:
        """Both jobs, in a process of their own with so many tasks at once. How it ended."""
        command = [sys.executable, "-c", RUN, str(self.home), str(tasks), failpoint]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stdout + ended.stderr
        return ended.returncode

    def check(self) -> None:
        """Nothing is lost, doubled, or other than it would be if all of it were there at once."""
        names = ("id", "happened", "city", "n")
        columns = {name: [row[place] for row in self._rows] for place, name in enumerate(names)}
        rows = pl.DataFrame(columns).with_columns(pl.col("happened").str.to_datetime())
        with Lading(self.home) as lading, duckdb.connect() as other:
            other.register("rows", rows.to_arrow())
            for name, query in EXPECTED.items():
                table = lading.catalog.open_table("shop", name)
                found = sorted(tuple(_plain(value) for value in row.values()) for row in table.scan().to_pylist())
                assert found == sorted(other.sql(query).fetchall())
                assert lading.verify(name).is_clean


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def rescale(path: Path, form: str, seed: int, *, files: int = FILES) -> int:
    """Three phases with a kill in each; how many of them died of it."""
    rng = Random(seed)
    story, killed = Story(path, form, rng), 0
    for tasks in (FIRST, THEN, rng.randint(1, 8)):
        story.put(files)
        killed += story.run(tasks, f"{rng.choice(IN_BATCHES)}=kill:{rng.randint(1, files)}") != 0
    story.end()
    assert story.run(rng.choice((FIRST, THEN))) == 0
    story.check()
    return killed


def test_seven_tasks_then_two_then_any_number_with_a_kill_in_each_phase(tmp_path: Path) -> None:
    assert rescale(tmp_path, "delta", 1, files=2) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + RUNS))
def test_many_rescales_with_kills(tmp_path: Path, seed: int) -> None:
    rescale(tmp_path, NAMES[seed % len(NAMES)], seed)


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("step", IN_BATCHES)
def test_a_kill_at_each_step_and_a_second_one_during_the_restart(tmp_path: Path, form: str, step: str) -> None:
    story = Story(tmp_path, form, Random(step))
    story.put(2 * FILES)
    assert story.run(2, f"{step}=kill:3") == -signal.SIGKILL
    assert story.run(2, "start.after=kill") == -signal.SIGKILL
    story.end()
    assert story.run(2) == 0
    story.check()
