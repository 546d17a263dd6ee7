"""Every statement form goes to text and back; every error knows its place."""

from __future__ import annotations

import re

import pytest

from lading.errors import SqlError
from lading.sources.registry import check_load
from lading.sql.expressions.mapping import translate_expression
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.syntax.masking import mask, without_secrets
from lading.sql.syntax.parse import parse_statement, parse_statements
from lading.sql.syntax.render import render
from tests.sql.golden import Case, load_errors, load_lines, load_pairs

PAIRS = [case for name in ("jobs.sql", "routine_loads.sql", "tables.sql", "users.sql") for case in load_pairs(name)]


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_a_statement_has_one_canonical_text(case: Case) -> None:
    statement = parse_statement(case.text)
    assert render(statement) == case.expected
    assert parse_statement(case.expected) == statement
    assert render(parse_statement(case.expected)) == case.expected


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_a_masked_statement_is_a_statement(case: Case) -> None:
    statement = parse_statement(case.text)
    for shown in (mask(statement), without_secrets(statement)):
        assert parse_statement(render(shown)) == shown


def test_all_statements_of_a_text_are_found() -> None:
    text = ";\n\n".join(case.expected for case in PAIRS) + ";;"
    assert list(parse_statements(text)) == [parse_statement(case.text) for case in PAIRS]


def parse_and_check(text: str) -> None:
    statement = parse_statement(text)
    if isinstance(statement, CreateJob | CreateRoutineLoad):
        check_load(statement)


@pytest.mark.parametrize("case", [*load_errors("errors.sql"), *load_errors("user_errors.sql")], ids=str)
def test_an_error_says_what_and_where(case: Case) -> None:
    match = re.fullmatch(r"(\w+) (\d+):(\d+) (.+)", case.expected)
    assert match is not None
    with pytest.raises(SqlError) as caught:
        parse_and_check(case.text)
    error = caught.value
    assert (type(error).__name__, f"{error.line}:{error.column}") == (match[1], f"{match[2]}:{match[3]}")
    assert match[4] in str(error)
    line, carets = error.pretty().split("\n")
    assert line.strip() in case.text
    assert carets.index("^") == 4 + error.column - 1


@pytest.mark.parametrize("case", load_lines("expressions.sql"), ids=str)
def test_an_expression_means_the_same_to_spark(case: Case) -> None:
    if case.expected.startswith("! "):
        with pytest.raises(SqlError, match=re.escape(case.expected.removeprefix("! "))):
            translate_expression(case.text, source_alias="s")
    else:
        assert translate_expression(case.text, source_alias="s").text == case.expected
