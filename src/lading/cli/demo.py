"""`lading demo`: load files and a stream on Spark, kill the loader in the middle of a commit, start again, count."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.jobs.record import JobRecord
from lading.service.facade import Lading
from lading.settings import environment, load_settings

FILES = 40
CITIES = ("Aarhus", "Bergen", "Cádiz", "Đà Nẵng", "Essen", "Fès", "Győr")
KILLS = ("commit.after=kill:3", "commit.before=kill:4")
STATEMENTS = """
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders_delta (id BIGINT NOT NULL, city VARCHAR(20), amount DECIMAL(10,2)) USING delta;
CREATE TABLE orders_iceberg (id BIGINT NOT NULL, city VARCHAR(20), amount DECIMAL(10,2)) USING iceberg;

CREATE JOB csv_to_delta
PROPERTIES ("s3.max_batch_files" = "8", "file.settle_seconds" = "0",
            "session.enable_insert_strict" = "false", "session.enable_strict_cast" = "true")
ON STREAMING DO INSERT INTO orders_delta SELECT id, upper(city), amount
FROM FILE("uri" = "{inbox}/*.csv", "format" = "csv_with_names", "column_separator" = ",");

CREATE JOB json_to_iceberg
PROPERTIES ("s3.max_batch_files" = "8", "file.settle_seconds" = "0",
            "session.enable_insert_strict" = "false", "session.enable_strict_cast" = "true")
ON STREAMING DO INSERT INTO orders_iceberg SELECT id, upper(city), amount
FROM FILE("uri" = "{inbox}/*.json", "format" = "json");
"""
JOBS = {"csv_to_delta": "orders_delta", "json_to_iceberg": "orders_iceberg"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What the demo wrote, for each job."""

    rows: int
    bad: int


class Part(StrEnum):
    """What the demo shows."""

    LOADS = "loads"
    STATE = "state"


def demo(
    part: Annotated[Part, typer.Argument(help="loads: files and a stream; state: counts per minute.")] = Part.LOADS,
    home: Annotated[Path, typer.Option(help="Where the demo keeps everything.")] = Path("demo-home"),
    rows: Annotated[int, typer.Option(min=FILES, help="How many orders or page views to make, in all.")] = 2_000_000,
) -> None:
    """Load two million orders and a Kinesis stream that is resharded, with a SIGKILL in mid-commit now and then."""
    console, clock = Console(highlight=False), SystemClock()
    began = clock.monotonic_s()
    _make_home(home)
    inbox = (home / "inbox").absolute()
    if part is Part.STATE:
        from lading.cli.demo_state import show_state

        show_state(home / "home", inbox, rows, console)
        return
    made = _write_orders(inbox, rows // 2)
    size = sum(path.stat().st_size for path in inbox.iterdir()) / 1e6
    console.print(f"Made {2 * FILES} files, {size:.0f} MB: {2 * made.rows:,} orders, {2 * made.bad:,} of them bad")
    statements = STATEMENTS.format(inbox=inbox)
    with Lading(home / "home") as lading:
        lading.sql(statements)
    console.print(statements.strip().replace(str(inbox), "inbox"), style="dim", markup=False)
    _load_with_kills(home / "home", 2 * (made.rows - made.bad), console, clock)
    from lading.cli.demo_kinesis import show_kinesis

    exact = _show(console, home / "home", made)
    exact = show_kinesis(home / "home", console) and exact
    console.print(f"{clock.monotonic_s() - began:.0f} seconds in all. Look around with: lading sql --home {home}/home")
    if not exact:
        raise typer.Exit(1)


def _make_home(home: Path) -> None:
    if home.exists() and not (home / "inbox").is_dir():
        msg = f"{home} is there and was not made by the demo"
        raise ConfigError(msg, left="It was not touched.", todo="Choose another place with --home.")
    shutil.rmtree(home, ignore_errors=True)
    (home / "inbox").mkdir(parents=True)


def _write_orders(inbox: Path, rows: int) -> Made:
    rng = random.Random(7)  # noqa: S311 - a demo wants the same orders every time
    bad = 0
    for number in range(FILES):
        csv, lines = ["id,city,amount"], []
        for order in range(rows * number // FILES, rows * (number + 1) // FILES):
            is_bad = rng.random() < 0.0005
            bad += is_bad
            city, cents = rng.choice(CITIES), rng.randrange(100, 99999)
            amount = "n/a" if is_bad else f"{cents // 100}.{cents % 100:02d}"
            csv.append(f"{order},{city},{amount}")
            lines.append(f'{{"id": {order}, "city": "{city}", "amount": "{amount}"}}')
        (inbox / f"orders-{number:04d}.csv").write_text("\n".join(csv) + "\n")
        (inbox / f"orders-{number:04d}.json").write_text("\n".join(lines) + "\n")
    return Made(rows=rows, bad=bad)


def _load_with_kills(home: Path, total: int, console: Console, clock: SystemClock) -> None:
    """Three workers, one after the other; the first two die in the middle of a commit."""
    progress_file = home / "progress.json"
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("loading", total=total)
        for failpoint in (*KILLS, ""):
            worker = _start(home, progress_file, failpoint)
            while worker.poll() is None:
                progress.update(bar, completed=_loaded(progress_file))
                clock.sleep(0.2)
            progress.update(bar, completed=_loaded(progress_file))
            if worker.returncode == -signal.SIGKILL:
                progress.console.print(kill_note(failpoint))
            elif worker.returncode:
                raise typer.Exit(worker.returncode)


def _start(home: Path, progress_file: Path, failpoint: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lading.cli.demo", str(home), str(progress_file)]
    variables = {**environment(), "LADING_FAILPOINTS": failpoint}
    return subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL)  # noqa: S603 - our own module


def _loaded(progress_file: Path) -> int:
    try:
        return sum(json.loads(progress_file.read_text()).values())
    except (FileNotFoundError, ValueError):
        return 0


def _show(console: Console, home: Path, made: Made) -> bool:
    counts, exact = list[Counted](), True
    with Lading(home) as lading:
        for job, name in JOBS.items():
            counted = lading.sql(f"SELECT count(*), count(DISTINCT id) FROM shop.{name}")[0]  # noqa: S608 - our names
            count, distinct = counted.rows[0]
            head = lading.bills(lading.job(job), 1)[0]
            verdict = lading.verify(job)
            good = made.rows - made.bad
            exact = exact and (count, distinct, head.totals.rows.error) == (good, good, made.bad) and verdict.is_clean
            told = "clean" if verdict.is_clean else "; ".join(verdict.findings)
            counts.append(Counted(job, name, count, distinct, head.totals.rows.error, head.totals.commits, told))
        errors = lading.sql("SHOW LOAD ERRORS FOR csv_to_delta LIMIT 3")[0]
    console.print(counted_table(counts))
    console.print("Bad rows are in quarantine, with their place and the reason:")
    for _, file, row, reason, _raw in errors.rows:
        console.print(f"  {Path(str(file)).name}, row {row}: {reason}", markup=False)
    console.print(conclusion(is_exact=exact))
    return exact


class Counted(NamedTuple):
    """What was found of one job."""

    job: str
    table: str
    rows: int
    distinct: int
    bad: int
    batches: int
    verify: str


def counted_table(counts: Sequence[Counted]) -> Table:
    """What was found of all jobs, as it is shown."""
    shown = Table("job", "table", "rows", "distinct ids", "bad rows", "batches", "verify", title="What is there")
    for each in counts:
        cells = (f"{each.rows:,}", f"{each.distinct:,}", f"{each.bad:,}", str(each.batches))
        shown.add_row(each.job, each.table, *cells, each.verify)
    return shown


def kill_note(failpoint: str) -> str:
    """That the loader died, as it is shown."""
    return f"  [yellow]the loader was killed (SIGKILL) at {failpoint.partition('=')[0]}[/yellow]; starting again"


def conclusion(*, is_exact: bool) -> str:
    """The last word about the files, as it is shown."""
    words = "Every order is in its table exactly once" if is_exact else "Rows are missing or doubled"
    return f"[{'green' if is_exact else 'red'}]{words}[/], through two kills."


def _work(home: Path, progress_file: Path) -> None:
    """What the worker does: run all jobs, and say how far they are."""
    with Lading(home) as lading:
        loaded = {record.name: record.totals.rows.loaded if record.totals else 0 for record in lading.live_jobs()}

        def note(record: JobRecord, bill: object) -> None:
            loaded[record.name] = record.totals.rows.loaded if record.totals else 0
            draft = progress_file.with_suffix(".draft")
            draft.write_text(json.dumps(loaded))
            draft.replace(progress_file)

        lading.warm_up()  # Batches go to Spark once it is there: by themselves these jobs would do without.
        lading.run(on_progress=note)


if __name__ == "__main__":
    from lading.failpoints import arm_from_text

    arm_from_text(load_settings().service.failpoints)
    _work(Path(sys.argv[1]), Path(sys.argv[2]))
