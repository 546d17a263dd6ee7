"""`lading demo state`: counts per minute, through two kills and with seven tasks, then two, then four."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from lading.clock import SystemClock
from lading.service.facade import Lading
from lading.settings import environment, load_settings

MINUTES, FILES = 30, 15
DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAGES = ("/", "/basket", "/help")
PHASES = ((7, "commit.after=kill:3"), (2, "merge.after=kill:3"), (4, ""))
"""Tasks at once, and where the process is killed."""
STATEMENTS = """
CREATE DATABASE shop;
USE shop;
CREATE TABLE views_per_minute (minute DATETIME, page VARCHAR(20), views BIGINT, visitors BIGINT) USING iceberg;

CREATE JOB views_per_minute
PROPERTIES ("watermark.column" = "at", "watermark.delay" = "1 minute", "s3.max_batch_files" = "2",
            "file.settle_seconds" = "0")
ON STREAMING DO INSERT INTO views_per_minute
SELECT window.start, page, count(*), approx_count_distinct(visitor)
FROM FILE("uri" = "{inbox}/*.csv", "format" = "csv_with_names", "column_separator" = ",")
GROUP BY window(at, '1 minute'), page;
"""
Expected = dict[tuple[datetime, str], int]


def show_state(home: Path, inbox: Path, rows: int, console: Console) -> None:
    """Run it in a home that the demo has made. Ends with status 1 when a count is not what it should be."""
    clock = SystemClock()
    began = clock.monotonic_s()
    expected = _write_views(inbox, rows)
    statements = STATEMENTS.format(inbox=inbox)
    with Lading(home) as lading:
        lading.sql(statements)
    console.print(f"Made {FILES} files: {rows:,} page views, up to half a minute out of order")
    console.print(statements.strip().replace(str(inbox), "inbox"), style="dim", markup=False)
    for tasks, failpoint in PHASES:
        console.print(f"Loading with {tasks} tasks at once")
        _run_phase(home, tasks, failpoint, console)
        _show_progress(home, console)
    is_exact = _show_counts(home, expected, console)
    console.print(f"{clock.monotonic_s() - began:.0f} seconds in all. Look around with: lading sql --home {home}")
    if not is_exact:
        raise typer.Exit(1)


def _write_views(inbox: Path, rows: int) -> Expected:
    """Files in the order of time, but for half a minute; what each page should have in each minute."""
    rng = random.Random(7)  # noqa: S311 - a demo wants the same views every time
    counts: Counter[tuple[datetime, str]] = Counter()
    for number in range(FILES):
        lines = ["at,page,visitor"]
        for view in range(rows * number // FILES, rows * (number + 1) // FILES):
            second = max(0.0, view * MINUTES * 60 / rows - rng.random() * 30)
            at, page = DAY + timedelta(seconds=int(second)), rng.choice(PAGES)
            counts[at.replace(second=0), page] += 1
            lines.append(f"{at:%Y-%m-%d %H:%M:%S},{page},{rng.randrange(500)}")
        (inbox / f"views-{number:03d}.csv").write_text("\n".join(lines) + "\n")
    # A view of the next day: the watermark passes the end of every window before it.
    (inbox / "views-999.csv").write_text(f"at,page,visitor\n{DAY + timedelta(days=1):%Y-%m-%d %H:%M:%S},/,1\n")
    return counts


def _run_phase(home: Path, tasks: int, failpoint: str, console: Console) -> None:
    command = [sys.executable, "-m", "lading.cli.demo_state", str(home), str(tasks)]
    variables = {**environment(), "LADING_FAILPOINTS": failpoint}
    ended = subprocess.run(command, env=variables, stderr=subprocess.DEVNULL, check=False)  # noqa: S603 - our own module
    if ended.returncode == -signal.SIGKILL:
        place = failpoint.partition("=")[0]
        console.print(f"  [yellow]the loader was killed (SIGKILL) at {place}[/yellow]; starting again")
    elif ended.returncode:
        raise typer.Exit(ended.returncode)


def _show_progress(home: Path, console: Console) -> None:
    with Lading(home) as lading:
        bill = lading.bills(lading.job("views_per_minute"), 1)[0]
    watermark = bill.positions.watermark_us
    moment = "none yet" if watermark is None else f"{datetime.fromtimestamp(watermark / 1e6, UTC):%Y-%m-%d %H:%M:%S}"
    kept = f"{bill.state.rows:,} partial results in {bill.state.files} files" if bill.state else "nothing"
    console.print(f"  commit {bill.seq}: {bill.totals.rows.total:,} views read, watermark {moment}, kept: {kept}")


def _show_counts(home: Path, expected: Expected, console: Console) -> bool:
    with Lading(home) as lading:
        found = lading.sql("SELECT minute, page, views FROM shop.views_per_minute ORDER BY minute, page")[0].rows
        verdict = lading.verify("views_per_minute")
    shown = Table("minute", "page", "views", "expected", title="The first minutes")
    for minute, page, views in found[:6]:
        shown.add_row(str(minute), str(page), f"{views:,}", f"{expected[minute.replace(tzinfo=UTC), page]:,}")
    console.print(shown)
    counted = {(minute.replace(tzinfo=UTC), page): views for minute, page, views in found}
    is_exact = counted == expected and len(found) == len(expected) and verdict.is_clean
    words = f"All {len(expected)} counts are right, and each was written once" if is_exact else "Counts are not right"
    console.print(f"[{'green' if is_exact else 'red'}]{words}[/], through two kills and with 7, 2 and 4 tasks.")
    return is_exact


if __name__ == "__main__":
    from lading.failpoints import arm_from_text

    arm_from_text(load_settings().service.failpoints)
    with Lading(Path(sys.argv[1]), spark={"spark.master": f"local[{sys.argv[2]}]"}) as worker:
        worker.run()
