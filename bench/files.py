"""Section "files": Lading against plain Structured Streaming, from CSV and JSON files, interleaved in one run."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.service.facade import Lading

ROUNDS = 3
SIZES = {"csv": (16, 400_000), "json": (16, 400_000), "small": (2000, 200)}
SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))


def run() -> None:
    """Measure and print the table."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    spark = open_session({}, find_java(os.environ, folder), folder)
    shown = Table("files", "Lading rows/s", "Structured Streaming rows/s", "ratio", "peak memory of all processes, MB")
    try:
        for name, (files, rows) in SIZES.items():
            per_file = max(1, int(rows * SCALE))
            inbox = _write(folder / name, files, per_file, "json" if name == "json" else "csv")
            peak = _Peak()
            ours, theirs = [], []
            for number in range(ROUNDS):
                ours.append(_lading(spark, folder / f"{name}-{number}", inbox, name))
                theirs.append(_streaming(spark, folder / f"{name}-{number}-plain", inbox, name))
            total = files * per_file
            # The first round is cold; the median of the others is shown.
            mine, plain = total / median(ours[1:]), total / median(theirs[1:])
            shown.add_row(name, f"{mine:,.0f}", f"{plain:,.0f}", f"{mine / plain:.2f}", f"{peak.stop():,.0f}")
    finally:
        spark.stop()
        shutil.rmtree(folder)
    console = Console()
    console.print(shown)
    console.print(
        f"{ROUNDS} interleaved rounds in one session, the first left out; filter, upper-case, one multiplication."
    )


def _write(folder: Path, files: int, rows: int, form: str) -> Path:
    folder.mkdir(parents=True)
    for number in range(files):
        base = number * rows
        if form == "csv":
            lines = [f"{base + n},city {n % 100},{n % 1000}.25,some text {n}" for n in range(rows)]
            text = "\n".join(["id,city,amount,note", *lines])
        else:
            text = "\n".join(
                f'{{"id": {base + n}, "city": "city {n % 100}", "amount": "{n % 1000}.25", "note": "some text {n}"}}'
                for n in range(rows)
            )
        (folder / f"{number:05d}.{form}").write_text(text + "\n")
    return folder


def _lading(spark: SparkSession, home: Path, inbox: Path, name: str) -> float:
    form = '"format"="json"' if name == "json" else '"format"="csv_with_names", "column_separator"=","'
    glob = "*.json" if name == "json" else "*.csv"
    with Lading(home, session=spark) as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta;"
            'CREATE JOB j PROPERTIES ("s3.max_batch_files"="5000") ON STREAMING DO '
            f'INSERT INTO t SELECT id, upper(city), amount * 1.1 FROM FILE("uri"="{inbox}/{glob}", {form}) '
            "WHERE city <> 'city 7'"
        )
        began = time.perf_counter()
        lading.run()
        return time.perf_counter() - began


def _streaming(spark: SparkSession, place: Path, inbox: Path, name: str) -> float:
    reader = spark.readStream.schema("id STRING, city STRING, amount STRING, note STRING")
    source = reader.json(str(inbox)) if name == "json" else reader.option("header", "true").csv(str(inbox))
    mapped = source.where("city <> 'city 7'").selectExpr(
        "CAST(id AS BIGINT) AS id", "upper(city) AS city", "CAST(amount * 1.1 AS DECIMAL(10,2)) AS amount"
    )
    began = time.perf_counter()
    query = (
        mapped.writeStream.format("parquet")
        .option("checkpointLocation", str(place / "checkpoint"))
        .option("path", str(place / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began


class _Peak:
    """Watches the resident memory of this process and all its children."""

    def __init__(self) -> None:
        self._highest_kb = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return self._highest_kb / 1024

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self._highest_kb = max(self._highest_kb, _tree_kb(os.getpid()))


def _tree_kb(root: int) -> int:
    parents: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        fields = _status(entry)
        if fields:
            parents.setdefault(fields[0], []).append(int(entry.name))
            sizes[int(entry.name)] = fields[1]
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += sizes.get(pid, 0)
        todo += parents.get(pid, [])
    return total


def _status(entry: Path) -> tuple[int, int] | None:
    try:
        lines = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
        return int(lines["PPid"]), int(lines.get("VmRSS", "0 kB").split()[0])
    except (OSError, KeyError, ValueError):
        return None
