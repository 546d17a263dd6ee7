"""What Spark's own Delta and Iceberg read from tables that Lading wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lading.model.table import Column, PartitionField, TableSpec
from tests.support.jvm_engine import JvmEngine
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig_delta import delta_local
from tests.tables.rig_iceberg import iceberg_local

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


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_spark_reads_what_was_loaded(tmp_path: Path, jvm: JvmEngine, form: str) -> None:
    rig = delta_local(tmp_path, None) if form == "delta" else iceberg_local(tmp_path, None)
    table, job = rig.create("t", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    put_and_commit(table, load(job, first, rig.stage(table, rows(), "a")))
    name = f"delta.`{tmp_path}/lake/t`" if form == "delta" else "lading.lake.t"
    for question, answer in QUESTIONS.items():
        assert jvm.sql(question.replace("FROM t", f"FROM {name}"), tmp_path / "home") == [answer]
