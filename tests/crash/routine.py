"""A routine load on Spark that a test kills, in processes of its own, and starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from typer.testing import CliRunner

from lading.cli.main import app
from lading.service.facade import Lading
from lading.testing.kinesis.verifier import Verdict
from lading.testing.stream_check import check_table

JOB = "shop.j"
KINESIS_COLUMNS = "COLUMNS (`key`, n, k = `key`, place = _shard, number = _sequence)"
KAFKA_COLUMNS = "COLUMNS (k, n, place = _partition, number = _offset)"


class Routine:
    """A home with one table and one routine load."""

    def __init__(self, home: Path, form: str, columns: str, source: Mapping[str, str], kind: str) -> None:
        self._home = home
        words = ", ".join(f'"{name}"="{value}"' for name, value in source.items())
        with Lading(home) as lading:
            lading.sql(
                "CREATE DATABASE shop; USE shop;"
                f"CREATE TABLE events (k STRING, n BIGINT, place STRING, number STRING) USING {form};"
                f'CREATE ROUTINE LOAD j ON events {columns} PROPERTIES("format"="json", "max_batch_interval"="5") '
                f"FROM {kind}({words})"
            )

    def finish(self) -> None:
        """`lading run` in the process of the test, with the fixture `spark`: it takes over what was killed."""
        said = CliRunner().invoke(app, ["run", "--home", str(self._home)])
        assert said.exit_code == 0, said.output

    def run(self, failpoint: str = "", meanwhile: Callable[[], None] = lambda: None) -> int:
        """`lading run`, and something that is done while it runs. How it ended: 0, or minus the signal."""
        command = [sys.executable, "-c", "from lading.cli.main import main; main()", "run", "--home", str(self._home)]
        # A job that is mapped in Arrow does without Spark, unless somebody has set more of it.
        settings = {"LADING_SPARK_CONF": "spark.python.worker.reuse=true"}
        environment = {**os.environ, **settings, "LADING_FAILPOINTS": failpoint}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            meanwhile()
            said, _ = process.communicate(timeout=300)
        assert process.returncode in (0, -signal.SIGKILL), said
        return process.returncode

    def check(self, sent: Mapping[str, int], maybe_twice: Iterable[tuple[str, int]] = ()) -> Verdict:
        """All that was sent is there once and in order, and the bills say the same."""
        with Lading(self._home) as lading:
            record = lading.any_job(JOB)
            verdict = check_table(lading.open_target(record), record.job_id, sent, maybe_twice=maybe_twice)
            assert verdict.is_exact, verdict
            assert lading.verify(JOB).is_clean
        return verdict
