"""Whatever a name, a value or a separator holds, it comes back from the text unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import SqlError
from lading.sql.statements.jobs import AlterJob, ControlJob, CreateRoutineLoad, ShowRoutineLoad, Statement
from lading.sql.statements.parts import QualifiedName, SourceFunction
from lading.sql.statements.tables import ColumnDefinition, CreateTable, DropTable
from lading.sql.statements.users import (
    AlterUser,
    CreateToken,
    CreateUser,
    DropToken,
    DropUser,
    Grant,
    Privilege,
    Revoke,
    Scope,
    ShowGrants,
)
from lading.sql.syntax.parse import parse_statement, parse_statements
from lading.sql.syntax.render import render
from lading.sql.syntax.render_parts import quoted_name
from lading.sql.syntax.separators import parse_separator, show_separator
from lading.sql.syntax.spans import mask_text
from lading.sql.syntax.tokens import Kind, quote_string, tokenize, unquote

texts = st.text(st.characters(exclude_categories=["Cs"]))
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
undotted = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), min_size=1)
"""Of tables: a.`b.c` would be `a.b`.c wherever the parts are joined by dots."""
properties = st.dictionaries(names, texts, max_size=4)


@given(texts, st.sampled_from("'\""))
def test_a_string_survives_quoting(value: str, quote: str) -> None:
    assert unquote(quote_string(value, quote)) == value
    (token, _end) = tokenize(quote_string(value, quote))
    assert (token.kind, token.value) == (Kind.STRING, value)


@given(names)
def test_a_name_survives_quoting(name: str) -> None:
    (token, _end) = tokenize(quoted_name(name))
    assert token.value == name


@given(names, undotted, properties)
def test_properties_survive(job: str, source: str, given_properties: dict[str, str]) -> None:
    for statement in (
        AlterJob(name=job, properties=given_properties),
        CreateRoutineLoad(
            name=QualifiedName(name="j", db=job),
            table=source,
            source=SourceFunction(name="KAFKA", properties=given_properties),
            comment=source,
        ),
    ):
        assert parse_statement(render(statement)) == statement


@given(names, undotted, texts)
def test_names_in_small_statements_survive(database: str, name: str, text: str) -> None:
    for statement in (
        ControlJob(verb="PAUSE", name=text),
        ShowRoutineLoad(like=text),
        DropTable(name=QualifiedName(db=database, name=name)),
    ):
        assert parse_statement(render(statement)) == statement


user_names = st.from_regex(r"\w[\w.@\-]{0,63}", fullmatch=True)
object_names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1).filter(
    lambda name: name not in (".", "..")
)


@given(user_names, names)
@settings(deadline=None)
def test_statements_about_users_survive(user: str, text: str) -> None:
    for statement in (
        CreateUser(name=user, password=text),
        CreateUser(name=user, if_not_exists=True),
        AlterUser(name=user, password=text),
        DropUser(name=user),
        ShowGrants(user=user),
        CreateToken(user=user, comment=text),
        DropToken(token_id=text),
    ):
        assert parse_statement(render(statement)) == statement


@given(
    user_names,
    st.sets(st.sampled_from(sorted(set(Privilege) - {Privilege.USAGE}, key=str)), min_size=1),
    object_names.filter(lambda name: "." not in name),
    object_names.filter(lambda name: "." not in name),
)
@settings(deadline=None)
def test_grants_survive(user: str, given_privileges: set[Privilege], database: str, table: str) -> None:
    privileges = tuple(each for each in Privilege if each in given_privileges)
    for scope in (Scope(), Scope(database=database), Scope(database=database, table=table)):
        for form in (Grant, Revoke):
            statement = form(privileges=privileges, scope=scope, user=user)
            assert parse_statement(render(statement)) == statement


@given(names, st.sampled_from("'\""))
@settings(deadline=None)
def test_no_password_is_left_in_a_masked_text(password: str, quote: str) -> None:
    value = quote_string(f"@{password}@", quote)
    masked = mask_text(f"SHOW USERS; ALTER USER jack IDENTIFIED BY {value}; SHOW USERS")
    assert masked == f"SHOW USERS; ALTER USER jack IDENTIFIED BY {value[0]}******{value[0]}; SHOW USERS"


@given(texts, texts)
def test_comments_of_tables_survive(comment: str, location: str) -> None:
    column = ColumnDefinition(name="a", type="int", comment=comment)
    table = CreateTable(
        name=QualifiedName(name="t"), columns=(column,), format="delta", comment=comment, location=location
    )
    assert parse_statement(render(table)) == table


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_separator_survives(value: str) -> None:
    shown = show_separator(value)
    assert shown is not None
    assert parse_separator("column_separator", shown) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\\x01", "\x01"),
        ("\\X0102", "\x01\x02"),
        ("0x2c", ","),
        ("a\\nb", "a\nb"),
        ("é", "é"),
        ("\\t", "\t"),
        ("||", "||"),
        ("\\\\", "\\"),
        ("\t", "\t"),
        ("\\|", "\\|"),
    ],
)
def test_a_separator_may_be_escaped_or_in_hex(text: str, value: str) -> None:
    assert parse_separator("column_separator", text) == value


@pytest.mark.parametrize(
    ("text", "fragment"),
    [("\\x0", "length"), ("0x1", "length"), ("\\xff", "UTF-8"), ("\\x", "length"), ("\\xzz", "format"), ("", "empty")],
)
def test_a_wrong_separator_is_refused(text: str, fragment: str) -> None:
    with pytest.raises(SqlError, match=fragment):
        parse_separator("column_separator", text)


def attempt(text: str) -> tuple[Statement, ...] | SqlError:
    try:
        return parse_statements(text)
    except SqlError as error:
        return error


@given(texts)
def test_any_text_gives_statements_or_a_positioned_error(text: str) -> None:
    outcome = attempt(text)
    if isinstance(outcome, SqlError):
        assert outcome.place is not None
        assert "^" in outcome.pretty()


PIECES = """
CREATE JOB|x|ON STREAMING|DO|INSERT INTO t|SELECT|a|*|,|FROM|S3(|)|("k"="v")|WHERE|a >|1|PROPERTIES|;|'s'|(
USER|IDENTIFIED BY|GRANT LOAD|REVOKE|,SELECT_PRIV|TO|*|TOKEN|FOR|GRANTS|DROP|
CREATE ROUTINE LOAD|COLUMNS|ON|KAFKA|SHOW|ALTER|TABLE|USING delta|int|[|]|case|cast(a as|/* c */|`q`|.|upper(a)|-|as
""".replace("\n", "|").split("|")


@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_any_jumble_of_words_gives_statements_or_an_error_of_ours(pieces: list[str]) -> None:
    outcome = attempt(" ".join(pieces))
    if not isinstance(outcome, SqlError):
        for statement in outcome:
            assert parse_statement(render(statement)) == statement


HEAD = "CREATE JOB x ON STREAMING DO INSERT INTO t SELECT "


@given(st.lists(st.sampled_from([*PIECES, "a", "b", ",", "+", "AS c", "case when a then b end"]), max_size=8))
def test_any_jumble_of_a_select_gives_a_job_or_an_error_of_ours(pieces: list[str]) -> None:
    outcome = attempt(HEAD + " ".join(pieces) + ' FROM S3("uri"="s3://b/k")')
    if not isinstance(outcome, SqlError):
        for statement in outcome:
            assert parse_statement(render(statement)) == statement


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from("'\""))
def test_no_secret_is_left_in_a_masked_text(secret: str, quote: str) -> None:
    value = quote_string(f"@{secret}@", quote)
    masked = mask_text(f'S3("uri"="u", "s3.secret_key"={value}, "format"="csv")')
    assert masked == f'S3("uri"="u", "s3.secret_key"={value[0]}******{value[0]}, "format"="csv")'
