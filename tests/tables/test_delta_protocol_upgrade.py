"""A column of times without a zone makes the protocol of a table newer: what the older one promised stays promised."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pytest

from lading.model.s3_access import S3Access
from lading.model.table import ColumnChange
from lading.storage.store import open_store
from lading.tables.delta.alter import alter_schema

BASIC = {"appendOnly", "invariants"}
FEED = BASIC | {"checkConstraints", "changeDataFeed", "generatedColumns"}


@pytest.mark.parametrize(
    ("reader", "writer", "readers", "writers"),
    [
        (1, 2, set(), BASIC),
        (1, 4, set(), FEED),
        (2, 5, {"columnMapping"}, FEED | {"columnMapping"}),
        (2, 6, {"columnMapping"}, FEED | {"columnMapping", "identityColumns"}),
    ],
)
def test_features_of_old_versions_are_named(
    tmp_path: Path, reader: int, writer: int, readers: set[str], writers: set[str]
) -> None:
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {"delta.enableChangeDataFeed": "true"} if writer >= 4 else {},
        "createdTime": 1,
    }
    protocol = {"minReaderVersion": reader, "minWriterVersion": writer}
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text(
        json.dumps({"protocol": protocol}) + "\n" + json.dumps({"metaData": metadata}) + "\n"
    )
    alter_schema(open_store(str(tmp_path)), S3Access(), [ColumnChange(name="at", type="timestamp_ntz")])
    found = deltalake.DeltaTable(tmp_path).protocol()
    assert set(found.reader_features or ()) == {*readers, "timestampNtz"}
    assert set(found.writer_features or ()) == {*writers, "timestampNtz"}
