"""The Kinesis part of `lading demo`: a stream is resharded while it is loaded, and the loader is killed once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.settings import environment, load_settings
from lading.testing.kinesis.generator import Generator
from lading.testing.kinesis.reshard import Resharder
from lading.testing.kinesis.server import KinesisServer, serve_kinesis
from lading.testing.stream_check import check_table

CLICKS, CHUNKS, KEYS = 10_000, 20, 500
RESHARDS = (5, 10)
"""Before these chunks: a split, and then a merge."""
KILL = "commit.after=kill:2"
"""The first commit opens the job, the second one has rows."""
STREAM, JOB = "clicks", "shop.clicks_load"
STATEMENTS = """
CREATE TABLE shop.clicks (k VARCHAR(20), n BIGINT NOT NULL, shard STRING, sequence STRING) USING delta;
CREATE ROUTINE LOAD shop.clicks_load ON clicks
COLUMNS (`key`, n, k = `key`, shard = _shard, sequence = _sequence)
PROPERTIES ("format" = "json", "max_batch_interval" = "3")
FROM KINESIS ("kinesis_stream" = "clicks", "property.kinesis_default_pos" = "TRIM_HORIZON", "aws.region" = "{region}",
  "aws.endpoint" = "{endpoint}", "aws.access_key" = "{access_key}", "aws.secret_key" = "{secret_key}");
"""


def show_kinesis(home: Path, console: Console) -> bool:
    """Run it in a home that the demo has made. False: rows are missing, doubled or out of order."""
    console.rule("Kinesis")
    try:
        with serve_kinesis() as server:
            return _show(home, server, console)
    except ConfigError as error:
        if error.code != "NoNode":
            raise
        console.print(f"THE KINESIS PART IS SKIPPED: {error}", style="bold yellow", markup=False)
        return True


def _show(home: Path, server: KinesisServer, console: Console) -> bool:
    client = server.create_stream(STREAM, 2)
    words = {"access_key": server.access_key, "secret_key": server.secret_key}
    with Lading(home) as lading:
        lading.sql(STATEMENTS.format(region=server.region, endpoint=server.endpoint, **words))
    shown = STATEMENTS.format(region=server.region, endpoint=server.endpoint, access_key="***", secret_key="***")  # noqa: S106
    console.print(shown.strip(), style="dim", markup=False)
    generator, resharder = Generator(client, STREAM, keys=KEYS, seed=7), Resharder(client, STREAM, seed=2, at_most=3)
    kills = _load(home, generator, resharder, console)
    return _count(home, generator, console, kills)


def _load(home: Path, generator: Generator, resharder: Resharder, console: Console) -> int:
    """Write while a loader runs; when it dies, start another. How often it died."""
    loader = _Loader(home)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        sent = progress.add_task("clicks written", total=CLICKS)
        loaded = progress.add_task("clicks loaded", total=CLICKS)

        def look() -> None:
            _look(loader, generator, progress, sent, loaded)

        loader.start(KILL)
        for chunk in range(CHUNKS):
            if chunk in RESHARDS:
                progress.console.print(f"  {resharder.step()}")
            generator.put(CLICKS // CHUNKS)
            look()
            loader.clock.sleep(0.1)
        loader.finish(look)
    return loader.kills


def _look(loader: _Loader, generator: Generator, progress: Progress, sent: TaskID, loaded: TaskID) -> None:
    if loader.has_died():
        progress.console.print("  [yellow]the loader was killed (SIGKILL) after a commit[/yellow]; starting again")
        loader.kills += 1
        loader.start("")
    progress.update(sent, completed=generator.count, total=generator.count)
    progress.update(loaded, completed=loader.loaded(), total=generator.count)


class _Loader:
    """The process that loads. It ends when it is told to, with everything loaded that was there."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stop, self._progress = home / "clicks.stop", home / "clicks.json"
        self._process: subprocess.Popen[bytes] | None = None
        self.clock = SystemClock()
        self.kills = 0

    def start(self, failpoint: str) -> None:
        command = [sys.executable, "-m", "lading.cli.demo_kinesis", *map(str, (self._home, self._stop, self._progress))]
        variables = {**environment(), "LADING_FAILPOINTS": failpoint}
        self._process = subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL)  # noqa: S603 - our own

    def has_died(self) -> bool:
        return self._process is not None and self._process.poll() == -signal.SIGKILL

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def finish(self, look: Callable[[], None]) -> None:
        """Tell it to stop only when it has been killed: an end without that would prove nothing."""
        while self.is_running() or self.has_died():
            look()
            if self.kills:
                self._stop.touch()
            self.clock.sleep(0.2)
        look()

    def loaded(self) -> int:
        try:
            return int(json.loads(self._progress.read_text()))
        except (FileNotFoundError, ValueError):
            return 0


def _count(home: Path, generator: Generator, console: Console, kills: int) -> bool:
    with Lading(home) as lading:
        record = lading.any_job(JOB)
        table = lading.open_target(record)
        # Read without Spark, which would take longer to start than to count.
        there = table.scan().select(["k", "n"])
        rows, distinct = there.num_rows, there.group_by(["k", "n"]).aggregate([]).num_rows
        verdict = check_table(table, record.job_id, generator.sent)
        bill, is_clean = lading.bills(record, 1)[0], lading.verify(JOB).is_clean
        lading.sql("PAUSE ROUTINE LOAD FOR shop.clicks_load")  # Its stream ends with the demo.
    shown = Table("clicks sent", "rows", "distinct", "LOSS", "DUP", "out of order", "shards", "batches", "verify")
    cells = (generator.count, rows, distinct, verdict.loss, verdict.dup, verdict.reorder)
    shards = len(bill.positions.partitions)
    shown.add_row(
        *(f"{cell:,}" for cell in cells), str(shards), str(bill.totals.commits), "clean" if is_clean else "BAD"
    )
    console.print(shown)
    exact = verdict.is_exact and is_clean and rows == distinct == generator.count
    words = "Every click is there once, each key in order" if exact else "Clicks are missing, doubled or out of order"
    console.print(f"[{'green' if exact else 'red'}]{words}[/], through a split, a merge and {kills} kill.")
    return exact


def _work(home: Path, stop: Path, progress: Path) -> None:
    """What the loader does."""
    clock = SystemClock()
    with Lading(home) as lading:
        lading.warm_up()  # Batches go to Spark once it is there: by themselves these jobs would do without.
        while True:
            is_last = stop.exists()
            lading.run([JOB], on_progress=lambda record, bill: _tell(progress, bill.totals.rows.loaded))
            if is_last:
                return
            clock.sleep(0.2)


def _tell(progress: Path, rows: int) -> None:
    draft = progress.with_suffix(".draft")
    draft.write_text(json.dumps(rows))
    draft.replace(progress)


if __name__ == "__main__":
    from lading.failpoints import arm_from_text

    arm_from_text(load_settings().service.failpoints)
    _work(*map(Path, sys.argv[1:4]))
