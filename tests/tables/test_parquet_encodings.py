"""How columns stand in files: with a dictionary where values come again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from lading.tables.parquet import Layout, ParquetWriter

ROWS = 20_000
NESTED = pa.struct([("x", pa.int64())])


def written(path: Path, rows: pa.RecordBatch) -> dict[str, bool]:
    """Which columns have a dictionary, by their paths."""
    layout = Layout(
        location=str(path),
        file_schema=rows.schema,
        partition_names=(),
        partition_columns=lambda batch: [],
        folder=lambda key: "",
        stats=lambda footer, notes: "",
        target_bytes=2**30,
    )
    writer = ParquetWriter(layout, pafs.LocalFileSystem(), str(path), "a")
    writer.write(rows)
    (staged,) = writer.close()
    file = pq.ParquetFile(path / staged.path)
    assert file.read().equals(pa.Table.from_batches([rows]))
    group = file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema: column.has_dictionary_page for column in columns}


def test_columns_whose_values_hardly_come_twice_have_no_dictionary(tmp_path: Path) -> None:
    numbers = range(ROWS)
    rows = pa.record_batch(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([f"name {number}" for number in numbers]),
            "city": pa.array([f"city {number % 100}" for number in numbers]),
            "often": pa.array([number // 2 for number in numbers], pa.int64()),
            "amount": pa.array([Decimal(number % 500) for number in numbers], pa.decimal128(10, 2)),
            "nothing": pa.nulls(ROWS, pa.int32()),
            "share": pa.array([0.5] * ROWS),
            "deep": pa.array([{"x": number} for number in numbers], NESTED),
        }
    )
    assert written(tmp_path, rows) == {
        "id": False,
        "name": False,
        "city": True,
        "often": True,
        "amount": True,
        "nothing": True,
        "share": False,
        "deep.x": True,
    }


def test_a_file_of_one_row_is_one_of_unique_values(tmp_path: Path) -> None:
    assert written(tmp_path, pa.record_batch({"id": pa.array([1], pa.int64())})) == {"id": False}
