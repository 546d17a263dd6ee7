"""Paimon on the JVM, from Maven: it reads what Lading wrote, and its clean-up leaves a job what it needs.

What a sink that writes each micro-batch with a commit user of its own does with a replay is shown with the same JVM
library: it doubles it. Spark's own sink is in test_paimon_sink.py.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyspark
import pytest

from lading.model.outcome import Landed, NotLanded
from lading.model.table import TableSpec
from lading.tables.paimon.kind import KIND
from lading.tables.paimon.table import PaimonTable
from tests.support.maven import JarsMissingError, find_jars
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.optional import skip_without
from tests.tables.rig_paimon import PaimonRig, paimon_local
from tests.tables.test_contract_files import CASES, CITIES, PARTITIONED, WIDE, city_table, wide_table

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "paimon_java" / "Paimon.java"
BUNDLE = ("org.apache.paimon:paimon-bundle:1.4.2",)
SPARK = Path(pyspark.__file__).parent / "jars"
"""Paimon's catalog needs Hadoop's classes; Spark brings them."""

Java = Callable[..., list[str]]


@pytest.fixture(scope="module")
def bundle() -> Path:
    if shutil.which("javac") is None:
        pytest.skip("NOT PROVED, Paimon on the JVM was not tried: there is no JDK")
    try:
        return find_jars("paimon-1.4.2", BUNDLE)
    except JarsMissingError as missing:
        pytest.skip(f"NOT PROVED, Paimon on the JVM was not tried: {missing}")


@pytest.fixture
def rig(tmp_path: Path) -> PaimonRig:
    skip_without(KIND)
    return paimon_local(tmp_path, None)


@pytest.fixture
def java(bundle: Path, tmp_path: Path) -> Java:
    def run(*tasks: str) -> list[str]:
        command = ["java", "-Xmx400m", "-cp", f"{bundle}/*:{SPARK}/*", str(PROGRAM), f"file:{tmp_path}/wh", *tasks]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.removeprefix("row ") for line in done.stdout.splitlines() if line.startswith("row ")]

    return run


def test_the_jvm_reads_all_of_it_and_its_clean_up_leaves_the_job_what_it_needs(rig: PaimonRig, java: Java) -> None:
    load_once(rig, "wide", wide_table(*CASES["nulls"], *CASES["extreme numbers"]), WIDE)
    load_once(rig, "cities", city_table(), PARTITIONED)
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    bill = loader.run_batch()
    assert bill is not None
    tasks = ("read:wide", "read:cities", "batch:clicks:100:2", "expire:clicks", "orphans:clicks", "read:clicks")
    rows = java(*tasks)
    assert len(rows) == 5 + len(CITIES) * 3 + 3 + 2
    assert "1|-1|row 1|0.14285714285714285|0.001|19724|1970-01-01T00:00|false|[B@" in rows[0]
    assert sorted(rows[-5:]) == sorted(f"{number}|row {number}" for number in (0, 1, 2, 100, 101))
    assert {row.split("|")[1] for row in rows[5:-5]} == {str(city).replace("None", "null") for city in CITIES}
    assert rig.versions("clicks") == [3]  # The snapshots of the job have expired.
    fresh = rig.reopen("clicks")
    assert fresh.read_head(job.job_id) == bill.head
    again = driver(rig, fresh, job)
    again.start()
    again.run_batch()
    assert ids(rig, fresh) == [*range(6), 100, 101]


def test_a_batch_that_is_replayed_is_doubled_by_a_plain_sink_and_not_by_lading(rig: PaimonRig, java: Java) -> None:
    rig.create("plain", SPEC)
    # A sink that died after its commit and before its checkpoint is given the same batch once more.
    rows = java("batch:plain:0:3", "batch:plain:0:3", "read:plain")
    assert sorted(row.partition("|")[0] for row in rows) == ["0", "0", "1", "1", "2", "2"]
    table, job = rig.create("clicks", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    assert isinstance(put_and_commit(table, bill), Landed)
    # The same commit again, and the same rows in another commit from the head that the first one was planned on.
    assert isinstance(put_and_commit(rig.reopen("clicks"), bill), Landed)
    replayed = load(job, first, rig.stage(table, some_rows(0, 3), "b"))
    assert isinstance(put_and_commit(rig.reopen("clicks"), replayed), NotLanded)
    assert ids(rig, table) == [0, 1, 2]
    assert cast("PaimonTable", table).version() == 2


def load_once(rig: PaimonRig, name: str, rows: pa.Table, spec: TableSpec) -> None:
    table, job = rig.create(name, spec), new_job()
    first = opening(job)
    put_and_commit(table, first)
    assert isinstance(put_and_commit(table, load(job, first, rig.stage(table, rows, "a"))), Landed)
