"""Killed between the change of the table and the rows that need it; and two who change one table at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.types import BooleanType

from lading.model.table import ColumnChange
from lading.tables.iceberg.table import IcebergTable
from tests.console.local import LocalLading

pytestmark = pytest.mark.long

_RUN = """
import sys
from lading.failpoints import arm_from_text
from tests.console.local import LocalLading
arm_from_text(sys.argv[2])
with LocalLading(sys.argv[1]) as it:
    it.run()
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("form", "point"), [("delta", "evolve.altered"), ("delta", "commit.before"), ("iceberg", "evolve.altered")]
)
def test_a_kill_between_the_commits_loses_nothing(tmp_path: Path, form: str, point: str) -> None:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            f"CREATE TABLE t (id BIGINT) USING {form};"
            'CREATE JOB j PROPERTIES("schema.evolution"="ADD", "file.settle_seconds"="0") ON STREAMING DO '
            f'INSERT INTO t SELECT * FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
        )
    (tmp_path / "in" / "1.json").write_text(json.dumps({"id": 1, "city": "essen"}) + "\n")
    armed = f"{point}=kill"  # The last life said goodbye: the first commit of this one is the batch.
    ended = subprocess.run(
        [sys.executable, "-c", _RUN, str(tmp_path / "home"), armed],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        cwd=ROOT,
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
    with LocalLading(tmp_path / "home") as lading:
        # Between the two: the column is there, and no row.
        left = lading.catalog.open_table("default", "t")
        assert (left.schema().names, left.scan().num_rows) == (["id", "city"], 0)
        lading.run()
        assert lading.catalog.open_table("default", "t").scan().to_pylist() == [{"id": 1, "city": "essen"}]


@pytest.mark.parametrize("form", ["delta", "iceberg", "paimon"])
def test_many_who_add_columns_at_once_add_each_once(tmp_path: Path, form: str) -> None:
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(f"CREATE TABLE t (id BIGINT) USING {form}")

        def add(number: int) -> int:
            table = lading.catalog.open_table("default", "t")
            changes = [ColumnChange(name=name, type="string") for name in ("shared", f"own{number}")]
            return len(table.alter(changes))

        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(add, range(4)))
        names = lading.catalog.open_table("default", "t").schema().names
        assert sorted(names) == ["id", "own0", "own1", "own2", "own3", "shared"]
        assert sum(made) == 5


def test_two_jobs_of_one_table_grow_it_together(tmp_path: Path) -> None:
    for job in ("a", "b"):
        (tmp_path / job).mkdir()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE TABLE t (id BIGINT) USING delta")
        for job in ("a", "b"):
            lading.sql(
                f'CREATE JOB {job} PROPERTIES("schema.evolution"="ADD", "file.settle_seconds"="0") ON STREAMING DO '
                f'INSERT INTO t SELECT * FROM FILE("uri"="{tmp_path}/{job}/*.json", "format"="json")'
            )
        for number in range(3):
            for at, job in enumerate(("a", "b")):
                row = {"id": 2 * number + at, "both": "x", f"{job}{number}": "y"}
                (tmp_path / job / f"{number}.json").write_text(json.dumps(row) + "\n")
            lading.run()
        rows = sorted(lading.catalog.open_table("default", "t").scan().to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(6))
    assert all(row["both"] == "x" for row in rows)
    assert [rows[2 * number + at][f"{job}{number}"] for number in range(3) for at, job in enumerate("ab")] == ["y"] * 6


def test_a_column_that_others_retype_pauses_the_job(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT, size BIGINT) USING iceberg;"
            'CREATE JOB j PROPERTIES("schema.evolution"="ADD", "file.settle_seconds"="0") ON STREAMING DO '
            f'INSERT INTO t SELECT * FROM FILE("uri"="{tmp_path}/in/*.json", "format"="json")'
        )
        (tmp_path / "in" / "1.json").write_text(json.dumps({"id": 1, "size": 7}) + "\n")
        assert lading.run()["j"].state.value == "RUNNING"
        table = lading.catalog.open_table("default", "t")
        assert isinstance(table, IcebergTable)
        theirs = table.handle.load()
        with theirs.update_schema(allow_incompatible_changes=True) as update:
            update.delete_column("size")
        with theirs.update_schema() as update:
            update.add_column("size", BooleanType())
    (tmp_path / "in" / "2.json").write_text(json.dumps({"id": 2, "size": 8}) + "\n")
    with LocalLading(tmp_path / "home") as lading:
        record = lading.run()["j"]
        assert record.state.value == "PAUSED"
        assert record.reason
        assert "column size" in record.reason.message
        assert "bigint" in record.reason.message
        assert "boolean" in record.reason.message
        rows = lading.catalog.open_table("default", "t").scan().to_pylist()
        assert rows == [{"id": 1, "size": None}]
