"""What Spark makes of mixed expressions is what `docs/coercions.md` says: cell by cell, and for random ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from math import isclose
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lading.sql.expressions.mapping import translate_expression
from lading.sql.expressions.typed import Scope, ScopeColumn, TypedExpression, type_expression
from lading.sql.expressions.value_types import ValueType, decimal, exact_for, type_of_spark
from tests.sql.coercion_reference import REFUSED, TABLES, Choose, Column, Compare, Compute, Expr, Literal, Reading
from tests.sql.random_expressions import COLUMNS, Maker, rows
from tests.support.examples import examples

SCHEMA = "t string, u string, i bigint, n decimal(10,2), f double, b boolean, d date, s timestamp_ntz"
TYPES = [part.strip().split(" ") for part in SCHEMA.replace("10,2", "10;2").split(",")]
SCOPE = Scope(
    columns={name: ScopeColumn(type=type_of_spark(kind.replace(";", ","))) for name, kind in TYPES}
    | {"m": ScopeColumn(type=type_of_spark("timestamp"))}
)
EXACT = exact_for(decimal(10, 2))
OF_KIND = {kind: name for name, kind in reversed(COLUMNS.items())}
MOMENT = Column("m", "timestamp")
COUNT = 100


def typed(expression: Expr, exact: ValueType | None = None) -> TypedExpression:
    scope = Scope(columns=SCOPE.columns, exact=exact)
    return type_expression(translate_expression(expression.sql()), scope)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    kinds = [(name, kind.replace(";", ",")) for name, kind in TYPES]
    lines = [", ".join(f"CAST({literal(row[name])} AS {kind})" for name, kind in kinds) for row in rows()]
    values = ", ".join(f"({line})" for line in lines)
    names = ", ".join(name for name, _ in kinds)
    return spark.sql(f"SELECT *, CAST(s AS timestamp) AS m FROM VALUES {values} AS rows({names})")


def literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"


def check(frame: DataFrame, expressions: Sequence[Expr], exact: ValueType | None = None) -> None:
    """All of them in one query."""
    reading = Reading((exact.precision, exact.scale) if exact else None)
    found = [typed(expression, exact) for expression in expressions]
    columns = [f"{one.text} AS v{number}" for number, one in enumerate(found)]
    columns += [f"{one.unread or 'CAST(NULL AS string)'} AS r{number}" for number, one in enumerate(found)]
    for row, given_row in zip(frame.selectExpr(*columns).collect(), rows(), strict=True):
        known = {**given_row, "m": given_row["s"]}
        for number, expression in enumerate(expressions):
            wanted = expression.run(known, reading)
            got, reason = row[f"v{number}"], row[f"r{number}"]
            told = f"{expression.sql()}\nis {found[number].text}\nover {given_row}: {got!r}, {reason!r}; want {wanted}"
            assert same(got, wanted.value), told
            assert (reason is not None) == wanted.failed, told


def same(got: Any, wanted: Any) -> bool:
    if got is None or wanted is None:
        return got is wanted
    if isinstance(wanted, float) or isinstance(got, float):
        return isclose(float(got), float(wanted), rel_tol=1e-12, abs_tol=1e-12)
    if isinstance(got, Decimal) or isinstance(wanted, Decimal):
        return abs(Decimal(got) - Decimal(wanted)) <= Decimal("0.000001")
    if isinstance(got, datetime) and isinstance(wanted, datetime):
        return got.replace(tzinfo=None) == wanted.replace(tzinfo=None)
    return bool(got == wanted)


def column(kind: str, *, second: bool = False) -> Column:
    if kind == "timestamp":
        return MOMENT
    return Column("u" if second and kind == "text" else OF_KIND[kind], kind)


def cell_expressions(table: str, left: str, right: str) -> list[Expr]:
    one, other = column(left), column(right, second=True)
    if table == "compared":
        return [Compare(sign, one, other) for sign in ("=", "<")]
    if table == "computed":
        signs = "+*" if TABLES["computed"][left, right] == "decimal" else "-/%"
        return [Compute(sign, one, other) for sign in signs]
    return [Choose("COALESCE", ((one, one),), other), Choose("IF", ((Literal("false", "boolean", False), one),), other)]


@pytest.mark.parametrize("table", list(TABLES))
def test_every_cell_of_the_tables_is_what_spark_does(table: str, frame: DataFrame) -> None:
    """One query for all cells that are not refused; a query each for those that are."""
    cells = TABLES[table]
    allowed = [
        expression
        for (left, right), cell in cells.items()
        if cell != REFUSED and not (table == "one of" and {"double", "text"} == {left, right})
        for expression in cell_expressions(table, left, right)
    ]
    check(frame, allowed)
    refused = [pair for pair, cell in cells.items() if cell == REFUSED]
    assert len(allowed) > len(refused)
    for left, right in refused:
        for expression in cell_expressions(table, left, right)[:1]:
            with pytest.raises(AnalysisException):
                frame.selectExpr(typed(expression).text).schema  # noqa: B018 - it is the question


@settings(max_examples=examples(2, costs=500), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(min_value=0))
def test_random_expressions_give_what_the_tables_say(frame: DataFrame, seed: int) -> None:
    maker = Maker(seed)
    deep = [maker.condition(3) for _ in range(COUNT // 20)]
    check(frame, [*deep, *(maker.condition(2) if number % 2 else maker.value(2) for number in range(COUNT))])
    check(frame, [maker.condition(2) for _ in range(COUNT // 3)], exact=EXACT)


BESIDE_THE_TABLES: dict[str, object] = {
    "t > 9007199254740992": True,
    "t = 9007199254740992": False,
    "t > 10 AND t <> ''": True,
    "nullif(t, 9007199254740993)": None,
    "greatest(t, 3)": 9007199254740992.0,
    "t DIV 10": 900719925474099,
    "split_part(concat(t, ',12.5'), ',', 2) > 12": True,
    "split_by_string('1.5,2', ',')[1] > 1": True,
    "cast('10.5' as int)": 10,
    "year(concat('2024', '-02-03')) = 2024": True,
    "date_add(concat('2024', '-02-03'), INTERVAL 1 DAY) = '2024-02-04'": True,
    "date '2024-02-03' = '2024-02-03 10:00'": False,
    "cast('2024-02-03T12:00:00+02:00' as datetime) < now()": True,
    "date_add(u, INTERVAL 2 HOUR) > '2024-02-03T13:00:00+02:00'": True,
}


def test_what_the_page_says_beside_the_tables(spark: SparkSession) -> None:
    """All in one query."""
    frame = spark.sql("SELECT '9007199254740993' AS t, '2024-02-03 11:30' AS u")
    text = ScopeColumn(type=type_of_spark("string"))
    found = [
        type_expression(translate_expression(one), Scope(columns={"t": text, "u": text})).text
        for one in BESIDE_THE_TABLES
    ]
    (row,) = frame.selectExpr(*(f"{one} AS v{number}" for number, one in enumerate(found))).collect()
    assert dict(zip(BESIDE_THE_TABLES, row, strict=True)) == BESIDE_THE_TABLES
