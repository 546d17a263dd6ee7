"""SELECT without a table is answered without waking Spark, as MySQL answers it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import parse_one

from lading.mysql.emulation.arithmetic import calculate
from lading.service.facade import Lading
from tests.mysql.conftest import Connect, rows


@pytest.fixture(autouse=True)
def no_spark(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lading, "spark", lambda: pytest.fail("Spark was started"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("1 + 1", 2),
        ("2 - 3 * 4", -10),
        ("(2 - 3) * 4", -4),
        ("7 / 2", Decimal("3.5000")),
        ("1 / 3", Decimal("0.3333")),
        ("2 / 3", Decimal("0.6667")),
        ("1.50 / 3", Decimal("0.500000")),
        ("1 / 0", None),
        ("1 % 0", None),
        ("7 DIV 2", 3),
        ("-7 DIV 2", -3),
        ("-7 % 3", -1),
        ("MOD(7, 3)", 1),
        ("0.1 + 0.2", Decimal("0.3")),
        ("1.10 * 2", Decimal("2.20")),
        ("1e3 * 2", 2000.0),
        ("1 + NULL", None),
        ("1 = 1", 1),
        ("1 <> 1", 0),
        ("2 > 1.5", 1),
        ("1 <= NULL", None),
        ("NOT 0", 1),
        ("NOT NULL", None),
        ("-(1 + 2)", -3),
        ("-(0.5 + 2)", Decimal("-2.5")),
        ("@@max_allowed_packet / 1048576", Decimal("16.0000")),
        ("IFNULL(NULL, 1 + 1)", 2),
        ("COALESCE(NULL, NULL)", None),
        ("18446744073709551615 + 0", 18446744073709551615),
        ("99999999999999999999 + 1", Decimal("100000000000000000000")),
        ("CURRENT_ROLE()", "NONE"),
        ("TIMEDIFF(NOW(), UTC_TIMESTAMP())", timedelta(0)),
        ("TIMEDIFF(NULL, NOW())", None),
        ("UNIX_TIMESTAMP() > 1700000000", 1),
    ],
)
def test_constants_are_calculated(connect: Connect, text: str, answer: Any) -> None:
    ((found,),) = rows(connect(), f"SELECT {text}")
    assert (found, str(found)) == (answer, str(answer))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1" * 5000, 1690),
        ("-" + "1" * 66, 1690),
        ("1" * 40 + "." + "1" * 40 + " + 1", 1690),
        ("9223372036854775807 * 3", 1690),
        ("-9223372036854775807 - 2", 1690),
        ("9" * 65 + " * 10", 1690),
        ("1e308 * 10", 1690),
        ("1e999", 1367),
    ],
)
def test_numbers_that_are_too_long_have_the_number_that_clients_know(connect: Connect, text: str, code: int) -> None:
    connection = connect()
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, f"SELECT {text}")
    assert caught.value.args[0] == code
    assert rows(connection, "SELECT 1") == [(1,)]


def test_a_number_of_sixty_five_digits_is_told(connect: Connect) -> None:
    assert rows(connect(), "SELECT " + "9" * 65) == [(Decimal("9" * 65),)]


SMALL = st.integers(-(2**31), 2**31)


@given(SMALL, SMALL)
def test_quotient_and_rest_make_the_whole(left: int, right: int) -> None:
    whole, rest = (calculate(parse_one(text, dialect="mysql"), left, right) for text in ("a DIV b", "a % b"))
    if right == 0:
        assert whole is None
        assert rest is None
    else:
        assert isinstance(whole, int)
        assert isinstance(rest, int)
        assert whole * right + rest == left
        assert abs(rest) < abs(right)
