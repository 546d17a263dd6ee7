"""The vector path without Spark: values known by heart, and the same rows in batches of any size."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lading.errors import StageError
from lading.pipeline.vector.arrays import VECTOR_UNSURE, UnsureError
from lading.pipeline.vector.evaluate import map_batch
from lading.pipeline.vector.task import map_batches
from lading.sql.expressions.vector_compile import compile_lists
from lading.sql.expressions.vector_nodes import VectorPlan
from lading.tables.types import spark_type
from tests.vector.both_paths import difference
from tests.vector.odd_rows import odd_rows
from tests.vector.random_sql import SqlMaker


def plan_of(text: str, schema: pa.Schema) -> VectorPlan | None:
    found = compile_lists([[f"({text}) AS e"]], {field.name: spark_type(field.type) for field in schema})
    return found if isinstance(found, VectorPlan) else None


def value_of(text: str, **columns: Any) -> Any:
    batch = pa.RecordBatch.from_pydict({name: pa.array([value]) for name, value in columns.items()})
    plan = plan_of(text, batch.schema)
    assert plan is not None
    return map_batch(plan, batch).column(0)[0].as_py()


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("0x10", "bigint", None), (" 1 ", "bigint", 1), ("+1", "int", 1), ("1.0", "int", None),
        ("128", "tinyint", None),
        ("1d", "double", 1.0), ("1e400", "double", float("inf")), ("1_0", "double", None),
        ("2.675", "decimal(10,2)", Decimal("2.68")), ("-2.675", "decimal(10,2)", Decimal("-2.68")),
        ("1e3", "decimal(10,2)", Decimal("1000.00")), ("99999999.995", "decimal(10,2)", None),
        ("123456789012345678901234567890123456789", "decimal(38,18)", None),
        ("yes", "boolean", True), ("2", "boolean", None), ("t", "boolean", True),
    ],
)  # fmt: skip
def test_texts_are_read_as_spark_reads_them(written: str, kind: str, value: Any) -> None:
    assert value_of(f"TRY_CAST(t AS {kind})", t=written) == value


def test_decimals_at_the_edge_of_64_bits_are_rounded_as_spark_rounds_them() -> None:
    given = {"t": "9223372036854775807", "u": "0.5"}
    total = "TRY_CAST(t AS decimal(38,18)) + TRY_CAST(u AS decimal(38,18))"
    assert value_of(f"TRY_CAST(({total}) AS decimal(38,0))", **given) == Decimal(2**63)


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("-TRY_CAST(x AS decimal(20,0))", -(2**63), Decimal(2**63)),
        ("ceil(TRY_CAST(x AS decimal(20,2)))", "-92233720368547758.08", Decimal(-92233720368547758)),
        ("TRY_CAST(TRY_CAST(x AS decimal(20,2)) AS bigint)", "-92233720368547758.08", -92233720368547758),
        ("floor(x)", Decimal(-(2**63)), Decimal(-(2**63))),
        ("-x", Decimal(-(2**63)), Decimal(2**63)),
    ],
)
def test_the_smallest_number_of_64_bits_has_an_opposite_or_nobody_is_sure(text: str, given: Any, value: Any) -> None:
    try:
        assert value_of(text, x=given) == value
    except UnsureError:
        assert not isinstance(given, Decimal)


def test_zero_has_a_sign() -> None:
    assert str(value_of("x * -0.0E0", x=1.0)) == "-0.0"


def test_decimals_that_need_too_many_digits_together_lose_those_behind_the_point() -> None:
    small, large = "TRY_CAST(t AS decimal(38,18))", "TRY_CAST(u AS decimal(38,0))"
    assert value_of(f"{small} = {large}", t="0.5", u="1") is True
    assert value_of(f"{small} IN (7, {large})", t="0.4", u="1") is False
    assert value_of(f"{small} = floor({small})", t="0.000000000000000001") is True
    assert value_of(f"{small} = floor({small})", t="0.000000000000000006") is False


def test_nan_is_itself_and_the_largest() -> None:
    nan = float("nan")
    assert value_of("f = f", f=nan) is True
    assert value_of("f > 1e300", f=nan) is True
    assert value_of("f < 1e300", f=nan) is False
    assert value_of("f >= g", f=nan, g=float("inf")) is True


def test_integers_begin_again_from_the_other_end_and_nothing_is_divided_by_zero() -> None:
    assert value_of("i + 1", i=2**63 - 1) == -(2**63)
    assert value_of("i % 0", i=5) is None
    assert value_of("f / 0", f=5.0) is None
    assert value_of("i % -3", i=-5) == -2


def test_what_stands_behind_a_condition_is_not_computed_for_others() -> None:
    column = pa.array(["1", "10:30", "2"])
    batch = pa.RecordBatch.from_pydict({"t": column})
    text = "CASE WHEN t LIKE '%:%' THEN NULL ELSE TRY_CAST(t AS TIMESTAMP) END"
    plan = plan_of(text, batch.schema)
    assert plan is not None
    assert map_batch(plan, batch).column(0).null_count == 3
    unsure = plan_of("TRY_CAST(t AS TIMESTAMP)", batch.schema)
    assert unsure is not None
    with pytest.raises(UnsureError):
        map_batch(unsure, batch)
    with pytest.raises(StageError, match=VECTOR_UNSURE):
        list(map_batches(unsure, iter([batch])))


def test_bytes_that_are_no_text_are_not_guessed() -> None:
    buffers = [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    broken = pa.Array.from_buffers(pa.string(), 1, buffers)
    batch = pa.RecordBatch.from_arrays([broken], names=["t"])
    for text in ("upper(t)", "length(t)", "t LIKE '_'", "substring(t, 1, 1)", "TRY_CAST(t AS INT)"):
        plan = plan_of(text, batch.schema)
        assert plan is not None
        with pytest.raises(UnsureError):
            map_batch(plan, batch)
    plain = plan_of("t", batch.schema)
    assert plain is not None
    assert map_batch(plain, batch).column(0).equals(broken)


def test_a_batch_cut_into_pieces_gives_the_same() -> None:
    """Whole batches are read by Arrow where they can be, single rows seldom: they must not differ."""
    rows, maker, taken = odd_rows(3, 120), SqlMaker(3), 0
    for number in range(120):
        text = maker.any(1 + number % 3)
        plan = plan_of(text, rows.schema)
        if plan is None:
            continue
        try:
            whole = map_batch(plan, rows.to_batches()[0]).column(0)
        except UnsureError:
            continue
        for start in range(0, rows.num_rows, 11):
            piece = map_batch(plan, rows.slice(start, 11).to_batches()[0]).column(0)
            assert difference(piece, whole.slice(start, 11)) is None, text
        taken += 1
    assert taken > 60
