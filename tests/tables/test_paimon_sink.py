"""Spark's own streaming sink of Paimon writes a batch twice when it died between its commit and that of the checkpoint.

The newest such sink on Maven is for Spark 3.5. What Lading does with a batch that comes again: test_paimon_java.py
without Spark, and the kills after every step in tests/crash.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.jvm_engine import OPENED, QUICK
from tests.support.maven import JarsMissingError, find_jars

JARS = ("org.apache.spark:spark-sql_2.12:3.5.7", "org.apache.paimon:paimon-spark-3.5:0.9.0")
PROGRAM = Path(__file__).parent / "paimon_java" / "Sink.java"

pytestmark = [pytest.mark.slow, pytest.mark.java]


def test_the_sink_of_spark_writes_a_replayed_batch_twice(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("NOT PROVED, Paimon's sink was not tried: there is no JDK")
    try:
        jars = find_jars("paimon-spark-3.5", JARS)
    except JarsMissingError as missing:
        pytest.skip(f"NOT PROVED, Paimon's sink was not tried: {missing}")
    source = tmp_path / "in"
    source.mkdir()
    (source / "lines.txt").write_text("a\nb\nc\n")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    places = [f"file:{tmp_path}/wh", str(source), str(tmp_path / "checkpoint")]
    command = ["java", *opened, *QUICK, "-Xmx1g", "-cp", f"{jars}/*", str(PROGRAM), *places]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lives = [line.removeprefix("rows ") for line in done.stdout.splitlines() if line.startswith("rows ")]
    assert [life.count('"value"') for life in lives] == [3, 6]
