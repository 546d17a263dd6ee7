"""Casts that nobody wrote, put where Doris makes them. `tests/service/test_coercions.py` asks Spark what they do."""

from __future__ import annotations

import pytest
from sqlglot import exp

from lading.errors import NotSupportedError
from lading.sql.expressions.coercion import Context, coerce
from lading.sql.expressions.mapping import translate_expression
from lading.sql.expressions.typed import Scope, ScopeColumn, TypedExpression, type_expression
from lading.sql.expressions.value_types import (
    BOOLEAN,
    DATE,
    DATETIME,
    DOUBLE,
    INTEGER,
    MOMENT,
    TEXT,
    ValueType,
    decimal,
    exact_for,
    type_of_spark,
)
from tests.sql.coercion_reference import REFUSED, TABLES

TYPES = {
    "text": TEXT, "boolean": BOOLEAN, "integer": INTEGER, "decimal": decimal(10, 2), "double": DOUBLE, "date": DATE,
    "datetime": DATETIME, "timestamp": MOMENT,
}  # fmt: skip
FAMILIES = (("integer", "decimal", "double"), ("date", "datetime", "timestamp"), ("text",), ("boolean",))
CELLS = [(table, left, right, cell) for table, cells in TABLES.items() for (left, right), cell in cells.items()]


def tree(text: str, left: str = "text", right: str = "text") -> tuple[exp.Expr, ValueType]:
    found = translate_expression(text).origin.tree
    return coerce(found, Context(columns={"a": TYPES[left], "b": TYPES[right]}))


def typed(text: str, exact: ValueType | None = None, **columns: ValueType) -> TypedExpression:
    scope = Scope(columns={name: ScopeColumn(type=kind) for name, kind in columns.items()}, exact=exact)
    return type_expression(translate_expression(text), scope)


def side(node: exp.Expr, kind: str) -> str:
    """The type of one side of a comparison."""
    name = node.to.sql(dialect="spark").lower().replace(" ", "") if isinstance(node, exp.TryCast) else ""
    return type_of_spark(name).kind.value if name else kind


def compared(left: str, right: str) -> str:
    found, _ = tree("a = b", left, right)
    assert isinstance(found, exp.EQ)
    kinds = {side(found.left, left), side(found.right, right)}
    family = next((family for family in FAMILIES if kinds <= set(family)), None)
    return max(kinds, key=family.index) if family else REFUSED


@pytest.mark.parametrize(("table", "left", "right", "cell"), CELLS, ids=lambda value: str(value).replace(" ", "-"))
def test_each_cell_of_the_page(table: str, left: str, right: str, cell: str) -> None:
    if table == "compared":
        assert compared(left, right) == cell
    elif table == "computed":
        assert tree("a + b", left, right)[1].kind.value == cell
    elif cell != REFUSED:
        assert tree("if(true, a, b)", left, right)[1].kind.value == cell
        assert tree("CASE WHEN true THEN a ELSE b END", left, right)[1].kind.value == cell
        assert tree("coalesce(a, b)", left, right)[1].kind.value == cell


@pytest.mark.parametrize(
    "text",
    ["a > 1", "1 < a", "a IN (1, 2)", "a NOT IN (1)", "a BETWEEN 1 AND 2", "CASE a WHEN 1 THEN 'x' END", "nullif(a, 1)",
     "greatest(a, 1)", "least(1, a)", "a <=> 1", "a + 1", "-a", "round(a)", "a % 2", "coalesce(a, 0) > 1",
     "if(b = 'x', a, b) > 1", "nvl(a, b) * 2", "upper(a) > 1", "split_part(a, ',', 1) > 1",
     "get_json_string(a, '$.b') > 1",
     "(a) > 1", "equal_null(a, 1)", "sqrt(a)", "NOT a > 1", "a > 1 OR b > 1"],
)  # fmt: skip
def test_a_text_beside_a_number_is_read_as_one(text: str) -> None:
    assert " AS DOUBLE)" in typed(text, a=TEXT, b=TEXT).text
    assert (
        " AS DECIMAL(28, 10))" in typed(text, exact_for(decimal(10, 2)), a=TEXT, b=TEXT).text or "SQRT" in text.upper()
    )


@pytest.mark.parametrize("text", ["a > '1'", "a = b", "upper(a) = 'X'", "coalesce(a, '')", "a IS NULL", "a LIKE '1%'"])
def test_texts_among_themselves_stay_texts(text: str) -> None:
    found = typed(text, a=TEXT, b=TEXT)
    assert found.text == translate_expression(text).text
    assert found.unread is None


@pytest.mark.parametrize(
    ("target", "read_as"),
    [((10, 2), (28, 10)), ((18, 2), (28, 10)), ((38, 0), (38, 6)), ((38, 18), (38, 18)), ((20, 18), (36, 18))],
)
def test_a_decimal_column_gets_enough_digits(target: tuple[int, int], read_as: tuple[int, int]) -> None:
    assert exact_for(decimal(*target)) == decimal(*read_as)
    assert exact_for(DOUBLE) is None


def test_numbers_of_the_statement_keep_their_digits() -> None:
    assert typed("a > '123456789012345678901.5'", a=decimal(38, 2)).text == "`a` > 123456789012345678901.5"
    assert typed("a > '-5'", a=INTEGER).text == "`a` > (-5)"
    assert typed("a * 1e2", exact_for(decimal(10, 2)), a=TEXT).text == "TRY_CAST(`a` AS DECIMAL(28, 10)) * 100"
    assert "AS DECIMAL(38, 6)" in typed("a = 1234567890123456", a=TEXT).text


def test_only_a_branch_that_was_taken_is_asked() -> None:
    unread = typed("CASE WHEN a = '' THEN 0 ELSE a * 2 END", a=TEXT).unread or ""
    assert unread.startswith("CASE WHEN `a` = '' THEN NULL ELSE CASE WHEN")
    assert "'column a: cannot read \\''" in unread


def test_a_condition_that_has_decided_is_not_asked_for_more() -> None:
    unread = typed("a <> 'n/a' AND b > 1", a=TEXT, b=TEXT).unread or ""
    assert unread.startswith("CASE WHEN NOT COALESCE((`a` <> 'n/a'), TRUE) OR NOT COALESCE((")
    # IS NULL is true for what cannot be read, so it has decided nothing.
    assert "(`b` * 2) IS NULL" not in (typed("(b * 2) IS NULL OR a > 1", a=TEXT, b=TEXT).unread or "")


def test_elements_of_an_array_are_nobodys_business_outside_of_it() -> None:
    assert typed("array_filter(x -> x > 3, split_by_string(a, ','))", a=TEXT).unread is None


def test_a_thousand_conditions_are_possible_and_towers_of_them_are_refused() -> None:
    many = " AND ".join(f"a > {number}" for number in range(300))
    assert len(typed(many, a=TEXT).unread or "") < 1_000_000
    tower = "a > 1"
    for _ in range(12):
        tower = f"(CASE WHEN {tower} THEN 1 ELSE 2 END) > a"
    with pytest.raises(NotSupportedError, match="too many conditions"):
        typed(tower, a=TEXT)
