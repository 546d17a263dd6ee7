"""What Spark's own Delta and Iceberg read from tables that Lading wrote.

With jars from Maven, once, into the user's cache folder. Where they cannot be had, the test says so and is skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lading.model.table import Column, PartitionField, TableSpec
from tests.support.maven import JarsMissingError, find_jars
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig_delta import delta_local
from tests.tables.rig_iceberg import iceberg_local

JARS = (
    "org.apache.spark:spark-sql_2.13:4.1.1",
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
OPENED = ("java.lang", "java.lang.invoke", "java.net", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A short life: what is compiled well takes longer than it saves."""
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACES = ["東京" * 40, "ä", "a b", "%41", None, "x" * 150]
SPEC = TableSpec(
    columns=(
        Column(name="id", type="bigint", nullable=False),
        Column(name="plain", type="timestamp_ntz"),
        Column(name="d", type="double"),
        Column(name="at", type="timestamp"),
        Column(name="place", type="string"),
    ),
    partition_by=(PartitionField(column="at"), PartitionField(column="place")),
)
QUESTIONS = {
    "SELECT count(*) n FROM t": {"n": 6},
    # Two of them are NaN, which is above every number.
    "SELECT count(*) n FROM t WHERE d > 100": {"n": 3},
    "SELECT unix_seconds(min(at)) a, unix_seconds(max(at)) b FROM t": dict.fromkeys("ab", int(MOMENT.timestamp())),
    "SELECT collect_list(coalesce(place, '')) places FROM (SELECT * FROM t ORDER BY id)": {
        "places": [place or "" for place in PLACES]
    },
}


def rows() -> pa.Table:
    nan = float("nan")
    return pa.table(
        {
            "id": range(6),
            "plain": [MOMENT.replace(tzinfo=None)] * 6,
            "d": [1.0, nan, 2.0, None, 500.0, nan],
            "at": [MOMENT] * 6,
            "place": PLACES,
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("plain", pa.timestamp("us")),
                ("d", pa.float64()),
                ("at", pa.timestamp("us", tz="UTC")),
                ("place", pa.string()),
            ]
        ),
    )


def tables(folder: Path) -> list[str]:
    """One of each format, as arguments of the reader."""
    arguments = []
    for rig in (delta_local(folder, None), iceberg_local(folder, None)):
        table, job = rig.create("t", SPEC), new_job()
        first = opening(job)
        put_and_commit(table, first)
        put_and_commit(table, load(job, first, rig.stage(table, rows(), "a")))
        arguments += [rig.name.partition("_")[0], str(folder / "lake" / "t")]
    arguments[-1] = iceberg_local(folder, None).stranger("t").metadata_location
    return arguments


@pytest.mark.java
def test_spark_reads_what_was_loaded(tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no Java")
    try:
        jars = find_jars("spark-4.1-readers", JARS)
    except JarsMissingError as error:
        pytest.skip(str(error))
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    program = Path(__file__).with_name("Readers.java")
    command = [java, *opened, *QUICK, "-Xmx1g", "-cp", f"{jars}/*", str(program), *tables(tmp_path), *QUESTIONS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert [json.loads(answer)[0] for answer in answers] == list(QUESTIONS.values()) * 2
