"""A statement that its user may not run is refused before it is read as a whole, and by every face."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import DeniedError, SqlError
from lading.service.facade import Lading
from lading.service.limits.statement_size import SHORT
from lading.service.security.redaction import redact
from lading.sql.syntax.spans import PLACEHOLDERS
from lading.testing.marked import secret

SRC = Path(__file__).parents[2] / "src" / "lading"
OPEN_STRING = "'" + "x" * SHORT
"""A tokenizer finds that its string has no end."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Lading]:
    with Lading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT) USING delta; CREATE USER eve; "
            "CREATE USER ann; CREATE USER bob; GRANT LOAD ON shop.orders TO ann; GRANT SELECT ON shop.orders TO bob"
        )
        yield lading


@pytest.mark.parametrize(
    ("text", "privilege", "who"),
    [
        ("CREATE JOB ) nonsense", "LOAD", "bob"),
        ("CREATE ROUTINE LOAD ) nonsense", "LOAD", "bob"),
        ("ALTER JOB ) nonsense", "LOAD", "bob"),
        ("EXPLAIN ALTER JOB ) nonsense", "LOAD", "bob"),
        ("SHOW GRANTS; CREATE JOB ) nonsense", "LOAD", "bob"),
        ("CREATE TABLE ) nonsense", "ADMIN", "ann"),
        (f"SELECT ) {'x ' * SHORT}", "SELECT", "ann"),
        (f"WITH ) {'x ' * SHORT}", "SELECT", "ann"),
    ],
)
def test_the_first_words_are_enough_to_refuse_a_statement(home: Lading, text: str, privilege: str, who: str) -> None:
    with pytest.raises(DeniedError, match=f"{privilege} command denied to user '{who}'"):
        home.session(who, "shop").sql(text)
    with pytest.raises(SqlError):
        home.sql(text)


def test_a_long_text_of_somebody_without_any_privilege_is_not_even_cut_into_words(home: Lading) -> None:
    for text in (f"SELECT {OPEN_STRING}", f"GRANT {OPEN_STRING}", f"information_schema {OPEN_STRING}"):
        with pytest.raises(DeniedError, match="denied to user 'eve'"):
            home.session("eve").sql(text)
        with pytest.raises(SqlError):
            home.session("ann").sql(text.replace("SELECT", "SHOW"))


def test_short_statements_that_need_no_privilege_are_read(home: Lading) -> None:
    eve = home.session("eve")
    assert list(eve.sql('SELECT Name FROM jobs("type"="insert")')[0].rows) == []
    eve.sql(f"SHOW GRANTS; ALTER USER eve IDENTIFIED BY '{secret('long-enough')}'")


# What advice says.


def test_advice_with_a_place_for_a_password_can_be_read() -> None:
    for place in PLACEHOLDERS:
        for advice in (f"Run ALTER USER root IDENTIFIED BY '{place}' first.", f'Write "s3.secret_key" = "{place}".'):
            assert redact(advice) == advice
    for real in (secret("a"), "…x", "<new password>x", "<newer password>"):
        assert real not in redact(f"ALTER USER root IDENTIFIED BY '{real}'")
        assert real not in redact(f'"s3.secret_key" = "{real}"')


def test_the_place_of_a_password_is_no_password(home: Lading) -> None:
    for place in PLACEHOLDERS:
        with pytest.raises(SqlError, match="not a password"):
            home.sql(f"CREATE USER joe IDENTIFIED BY '{place}'")


def test_no_advice_of_the_service_is_masked() -> None:
    pattern = re.compile(r"""todo = f?"([^"]*IDENTIFIED BY[^"]*)\"""")
    for path in SRC.rglob("*.py"):
        for advice in pattern.findall(path.read_text()):
            assert redact(advice) == advice, path
