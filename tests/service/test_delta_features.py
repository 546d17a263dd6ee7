"""Delta tables with the features that Spark gives them: loaded correctly, or refused when the job is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lading.errors import TableError
from tests.service.delta_rig import Lake
from tests.support.jvm_engine import EngineError, JvmEngine

MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def lake(tmp_path: Path, jvm: JvmEngine) -> Iterator[Lake]:
    made = Lake(tmp_path, jvm)
    yield made
    made.lading.close()


def loaded_beside_spark(lake: Lake, columns: str = "id, city") -> None:
    """Spark, Lading, Spark, Lading: rows 0 to 5."""
    lake.spark(f"INSERT INTO {{}} ({columns}) VALUES (0, 'a')")
    lake.adopt()
    lake.create_job(columns)
    lake.load(1, 2)
    lake.spark(f"INSERT INTO {{}} ({columns}) VALUES (3, 'b')")
    lake.load(4, 5)
    assert lake.ids() == [0, 1, 2, 3, 4, 5]
    assert lake.spark("SELECT count(*) n FROM {} WHERE id = 4 AND city = 'essen'") == [{"n": 1}]


def adds(lake: Lake) -> list[dict[str, Any]]:
    """The files that Lading's entries add."""
    found = []
    for path in sorted((Path(lake.place) / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        if actions[0]["commitInfo"]["engineInfo"].startswith("lading/"):
            found += [action["add"] for action in actions if "add" in action]
    return found


def test_all_at_once(lake: Lake) -> None:
    """Column mapping, row tracking, in-commit timestamps, deletion vectors, change feed, clustering, widening."""
    lake.make(
        more="CLUSTER BY (city)",
        **MAPPED,
        **{
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableDeletionVectors": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.enableTypeWidening": "true",
            "delta.checkpointPolicy": "v2",
            "delta.checkpointInterval": "2",
        },
    )
    loaded_beside_spark(lake)
    lake.spark("DELETE FROM {} WHERE id IN (1, 3)")
    lake.spark("ALTER TABLE {} RENAME COLUMN city TO town")
    rows = lake.spark("SELECT id, town, _metadata.row_id r, _metadata.row_commit_version v FROM {} ORDER BY id")
    assert [(row["id"], row["town"]) for row in rows] == [(0, "a"), (2, "essen"), (4, "essen"), (5, "essen")]
    assert len({row["r"] for row in rows}) == 4
    assert rows[2]["v"] == rows[3]["v"] != rows[1]["v"]
    times = [str(row["timestamp"]) for row in lake.spark("DESCRIBE HISTORY {}")]
    assert times == sorted(set(times), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(lake: Lake, mode: str) -> None:
    lake.make("id BIGINT, city STRING, p STRING", "PARTITIONED BY (p)", **{"delta.columnMapping.mode": mode})
    lake.spark("INSERT INTO {} VALUES (0, 'a', 'x')")
    lake.adopt()
    lake.create_job("id, p", "id, city")
    lake.load(1, 2)
    lake.spark("ALTER TABLE {} RENAME COLUMN city TO town")
    lake.load(3)
    assert lake.ids() == [0, 1, 2, 3]
    assert lake.spark("SELECT count(*) n FROM {} WHERE p IS NOT NULL AND id > 2 AND town IS NULL") == [{"n": 1}]
    assert all(name.startswith("col-") for add in adds(lake) for name in add["partitionValues"])


@pytest.mark.slow
def test_column_mapping_that_was_switched_on_later(lake: Lake) -> None:
    lake.make()
    lake.spark("INSERT INTO {} VALUES (0, 'a')")
    lake.adopt()
    lake.create_job()
    lake.load(1)
    lake.spark(
        "ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    lake.load(2)
    assert lake.ids() == [0, 1, 2]
    assert lake.spark("SELECT count(*) n FROM {} WHERE city = 'essen'") == [{"n": 2}]


WRITTEN = {
    "deletion vectors": {"delta.enableDeletionVectors": "true"},
    "in-commit timestamps": {"delta.enableInCommitTimestamps": "true"},
    "row tracking": {"delta.enableRowTracking": "true"},
    "change data feed": {"delta.enableChangeDataFeed": "true"},
    "v2 checkpoints": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    "append-only": {"delta.appendOnly": "true"},
    "transactions expire": {"delta.setTransactionRetentionDuration": "interval 30 days"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_feature_of_its_own(lake: Lake, name: str) -> None:
    lake.make(**WRITTEN[name])
    loaded_beside_spark(lake)
    if name == "deletion vectors":
        lake.spark("DELETE FROM {} WHERE id IN (1, 3)")
        lake.load(6)
        assert lake.ids() == [0, 2, 4, 5, 6]
    if name == "row tracking":
        assert lake.spark("SELECT count(DISTINCT _metadata.row_id) n FROM {}") == [{"n": 6}]
    if name == "change data feed":
        changes = lake.spark(
            f"SELECT _change_type c, count(*) n FROM table_changes_by_path('{lake.place}', 0) GROUP BY 1"
        )
        assert changes == [{"c": "insert", "n": 6}]
    if name == "append-only":
        with pytest.raises(EngineError, match="append"):
            lake.spark("DELETE FROM {} WHERE id = 1")


@pytest.mark.slow
def test_clustering_by_a_column_without_statistics_of_its_own(lake: Lake) -> None:
    lake.make(more="CLUSTER BY (city)")
    lake.spark("ALTER TABLE {} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id')")
    loaded_beside_spark(lake)
    assert all('"city"' in str(add["stats"]) for add in adds(lake))
    lake.spark("OPTIMIZE {}")
    lake.load(6)
    assert lake.ids() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_type_widening_between_batches(lake: Lake) -> None:
    lake.make("id INT, city STRING", **{"delta.enableTypeWidening": "true"})
    lake.spark("INSERT INTO {} VALUES (0, 'a')")
    lake.spark("ALTER TABLE {} ALTER COLUMN id TYPE BIGINT")
    lake.adopt()
    lake.create_job()
    lake.load(1)
    lake.spark("INSERT INTO {} VALUES (2, 'b')")
    lake.load(2**40)
    assert lake.ids() == [0, 1, 2, 2**40]


@pytest.mark.slow
def test_columns_that_lading_does_not_write_are_null(lake: Lake) -> None:
    lake.make("id BIGINT, city STRING, v VARIANT, n STRUCT<a: INT>, l ARRAY<STRING>")
    lake.spark("INSERT INTO {} SELECT 0, 'a', parse_json('{\"k\": 1}'), struct(1), array('x')")
    lake.adopt()
    lake.create_job()
    lake.load(1, 2)
    assert lake.spark("SELECT count(*) n FROM {} WHERE v IS NULL AND n IS NULL AND l IS NULL") == [{"n": 2}]
    assert lake.ids() == [0, 1, 2]


@pytest.mark.slow
def test_not_null_and_defaults(lake: Lake) -> None:
    lake.make(
        "id BIGINT NOT NULL, city STRING, kind STRING DEFAULT 'web'",
        **{"delta.feature.allowColumnDefaults": "supported"},
    )
    lake.adopt()
    lake.create_job(properties='"session.insert_max_filter_ratio" = "0.9", "session.enable_insert_strict" = "false"')
    (lake.inbox / "0.csv").write_text("id,city\n1,essen\n,ulm\n2,bonn\n")
    lake.load(3)
    assert lake.spark("SELECT id, city, kind FROM {} ORDER BY id") == [
        {"id": 1, "city": "essen", "kind": "web"},
        {"id": 2, "city": "bonn", "kind": "web"},
        {"id": 3, "city": "essen", "kind": "web"},
    ]
    totals = lake.lading.job("j").totals
    assert totals is not None
    assert (totals.rows.loaded, totals.rows.error) == (3, 1)
    with pytest.raises(EngineError):
        lake.spark("INSERT INTO {} (city) VALUES ('a')")


REFUSED = {
    "checkConstraints": ("id BIGINT, city STRING", "", {"delta.constraints.positive": "id > 0"}, "DROP CONSTRAINT"),
    "generatedColumns": ("id BIGINT, city STRING, g BIGINT GENERATED ALWAYS AS (id * 2)", "", {}, "does not compute"),
    "identityColumns": ("id BIGINT, city STRING, k BIGINT GENERATED ALWAYS AS IDENTITY", "", {}, "DROP IDENTITY"),
    "Iceberg compatibility": (
        "id BIGINT, city STRING",
        "PARTITIONED BY (city)",
        {**MAPPED, "delta.enableIcebergCompatV2": "true"},
        "delta.enableIcebergCompatV2 to false",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_appended_to_safely_is_refused_by_name(lake: Lake, name: str) -> None:
    columns, more, properties, todo = REFUSED[name]
    lake.make(columns, more, **properties)
    lake.adopt()
    before = {path: path.read_bytes() for path in Path(lake.place).rglob("*") if path.is_file()}
    with pytest.raises(TableError, match=name) as caught:
        lake.create_job()
    assert todo in caught.value.todo
    assert list(lake.lading.sql('SELECT Name FROM jobs("type"="insert")')[-1].rows) == []
    assert {path: path.read_bytes() for path in Path(lake.place).rglob("*") if path.is_file()} == before
