"""How columns of a file are encoded: with a dictionary where values repeat, and not with one that helps nobody."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from lading.tables.parquet import Layout, ParquetWriter

ROWS = 4000
START = datetime.fromisoformat("2026-01-01")
EACH: dict[str, tuple[pa.DataType, Any]] = {
    "number": (pa.int64(), lambda n: n),
    "words": (pa.string(), lambda n: f"word {n}"),
    "raw": (pa.binary(), lambda n: str(n).encode()),
    "price": (pa.decimal128(20, 2), lambda n: Decimal(n) / 4),
    "day": (pa.date32(), lambda n: date(2000, 1, 1) + timedelta(days=n)),
    "at": (pa.timestamp("us"), lambda n: START + timedelta(seconds=n)),
}


def encodings(columns: dict[str, tuple[pa.DataType, list[Any]]], folder: str) -> dict[str, bool]:
    """By leaf, whether it has a dictionary."""
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
    layout = Layout(
        location=folder,
        file_schema=schema,
        partition_names=(),
        partition_columns=lambda _: [],
        folder=lambda _: "",
        stats=lambda *_: "",
        target_bytes=1 << 27,
    )
    writer = ParquetWriter(layout, pafs.LocalFileSystem(), folder, "a")
    arrays = [pa.array(values, kind) for kind, values in columns.values()]
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
    (file,) = writer.close()
    footer = pq.read_metadata(f"{folder}/{file.path}")
    group = footer.row_group(0)
    assert pq.read_table(f"{folder}/{file.path}").to_batches()[0].equals(pa.record_batch(arrays, schema=schema))
    found = [group.column(at) for at in range(group.num_columns)]
    return {column.path_in_schema: column.has_dictionary_page for column in found}


@pytest.mark.parametrize("name", EACH)
def test_values_that_repeat_have_a_dictionary_and_others_have_none(name: str, tmp_path: Any) -> None:
    kind, make = EACH[name]
    given = {
        "each": (kind, [make(n) for n in range(ROWS)]),
        "few": (kind, [None if n % 7 == 0 else make(n % 50) for n in range(ROWS)]),
        "nothing": (kind, [None] * ROWS),
    }
    assert encodings(given, str(tmp_path)) == {"each": False, "few": True, "nothing": True}


def test_of_a_few_rows_nothing_is_said_and_nothing_of_what_is_nested(tmp_path: Any) -> None:
    assert encodings({"number": (pa.int64(), list(range(100)))}, str(tmp_path)) == {"number": True}
    nested = {"tags": (pa.list_(pa.int64()), [[n] for n in range(ROWS)])}
    assert encodings(nested, str(tmp_path)) == {"tags.list.element": True}
