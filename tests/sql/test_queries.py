"""Queries over Lading's own tables."""

from __future__ import annotations

import sqlite3

import pytest

from lading.errors import NotSupportedError, SqlError
from lading.sql.expressions.queries import rewrite_query
from lading.sql.statements.jobs import Query
from lading.sql.statements.parts import SourceFunction
from lading.sql.syntax.parse import parse_statement


def query(text: str) -> Query:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return statement


def test_table_functions_are_found() -> None:
    found = query('select a.Name from jobs("type"="insert") a join tasks("type"=\'insert\') b on a.Id = b.JobId')
    wanted = {"type": "insert"}
    assert found.functions == (
        SourceFunction(name="JOBS", properties=wanted),
        SourceFunction(name="TASKS", properties=wanted),
    )


def test_a_query_can_be_answered_by_another_engine() -> None:
    text = 'SELECT lower(`Name`) AS n, "text" FROM jobs("type"="insert") AS j WHERE j.Status = \'RUNNING\' LIMIT 5'
    rewritten = rewrite_query(query(text), {"JOBS": "lading_jobs"})
    with sqlite3.connect(":memory:") as database:
        database.execute("create table lading_jobs (Name text, Status text)")
        database.execute("insert into lading_jobs values ('A', 'RUNNING'), ('B', 'PAUSED')")
        assert database.execute(rewritten).fetchall() == [("a", "text")]
    database.close()


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="no table function backends"):
        rewrite_query(query('SELECT * FROM backends("a"="b")'), {"JOBS": "jobs"})


def test_two_statements_are_not_one() -> None:
    with pytest.raises(SqlError, match="more than one statement"):
        parse_statement("SELECT 1; SELECT 2")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("SELECT * FORM shop.orders", "FROM"),
        ("SELECT id FROM t WHER id = 1", "WHERE"),
        ("SELECT city, count(*) FROM t GRUOP BY city", "GROUP"),
        ("SELECT city FROM t ODER BY city", "ORDER"),
        ("SELECT city FROM t LIMTI 5", "LIMIT"),
    ],
)
def test_a_clause_that_is_misspelt_is_told(typed: str, meant: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(typed)
    assert caught.value.todo == f"Did you mean {meant}? Correct the statement."


def test_what_is_no_misspelt_clause_is_not_guessed() -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement("SELECT id FROM t WHERE id = = 1")
    assert caught.value.todo == "Correct the statement."


def test_no_statement_is_an_error() -> None:
    with pytest.raises(SqlError, match="ends too early"):
        parse_statement(" -- nothing\n")
