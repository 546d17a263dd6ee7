"""Results as Arrow and pandas have them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa

from lading import connect
from lading.service.result import Result
from lading.service.spark_queries.rows import rows_of

AT = datetime(2026, 3, 2, 4, 5, tzinfo=UTC)


def test_rows_become_an_arrow_table_that_another_library_reads() -> None:
    rows = ((1, "a", Decimal("1.50"), AT, [1, 2], None), (None, None, None, None, None, None))
    result = Result(columns=("id", "name", "amount", "at", "list", "nothing"), rows=rows)
    table = result.to_arrow()
    assert [str(field.type) for field in table.schema][:3] == ["int64", "string", "decimal128(3, 2)"]
    assert table.to_pylist() == result.dicts()
    read = polars.from_arrow(table)
    assert isinstance(read, polars.DataFrame)
    assert read.rows() == list(rows)


def test_names_may_be_doubled_and_rows_may_be_none() -> None:
    table = Result(columns=("a", "a"), rows=()).to_arrow()
    assert (table.num_rows, table.column_names) == (0, ["a", "a"])
    assert Result(message="OK").to_arrow().num_columns == 0


def test_values_without_a_common_type_become_texts() -> None:
    mixed = Result(columns=("a",), rows=((1,), ("x",), (None,), (2**70,))).to_arrow()
    assert (mixed.schema.field("a").type, mixed.column("a").to_pylist()) == (pa.string(), ["1", "x", None, str(2**70)])


def test_a_struct_has_the_names_of_its_fields_however_deep_it_lies() -> None:
    """Its values alone came, and nobody could tell which was which."""
    inner = pa.struct([("sku", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
    batch = pa.record_batch(
        {
            "one": pa.array([{"sku": "a", "at": AT}, None, {"sku": None, "at": None}], inner),
            "many": pa.array([[{"sku": "a", "at": AT}, None], None, []], pa.list_(inner)),
            "by": pa.array([[("k", {"sku": "q", "at": AT}), ("j", None)], None, []], pa.map_(pa.string(), inner)),
            "empty": pa.array([{}, None, {}], pa.struct([])),
        }
    )
    plain = AT.replace(tzinfo=None)
    rows: list[tuple[object, ...]] = [
        (
            {"sku": "a", "at": plain},
            [{"sku": "a", "at": plain}, None],
            {"k": {"sku": "q", "at": plain}, "j": None},
            {},
        ),
        (None, None, None, None),
        ({"sku": None, "at": None}, [], {}, {}),
    ]
    assert rows_of(batch) == rows
    assert rows_of(batch.slice(1)) == rows[1:]
    assert Result(columns=("one",), rows=[row[:1] for row in rows]).to_arrow().schema.field("one").type.names == [
        "sku",
        "at",
    ]


def test_fields_of_one_name_are_numbered_and_a_struct_may_be_a_key() -> None:
    doubled = pa.StructArray.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["id", "x", "id"])
    assert rows_of(pa.record_batch([doubled], names=["s"])) == [({"id_0": 1, "x": 2, "id_1": 3},)]
    taken = pa.StructArray.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["id", "id", "id_0"])
    assert rows_of(pa.record_batch([taken], names=["s"])) == [({"id_1": 1, "id_2": 2, "id_0": 3},)]
    keyed = pa.array([[({"b": 1}, 2)]], pa.map_(pa.struct([("b", pa.int64())]), pa.int64()))
    assert rows_of(pa.record_batch([keyed], names=["m"])) == [({(1,): 2},)]


def test_a_statement_answers_a_data_frame(tmp_path: Path) -> None:
    with connect(tmp_path / "home", create=True) as lading:
        frame = lading.sql("SHOW DATABASES")[0].to_pandas()
    assert list(frame["Database"]) == ["default"]
