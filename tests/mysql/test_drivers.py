"""What drivers and tools send beside statements, one by one. test_jdbc.py has the drivers themselves."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pymysql
import pytest

from tests.mysql.conftest import Connect, rows


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT '' TABLE_SCHEM, '' TABLE_CATALOG FROM DUAL WHERE 1=0", []),
        ("SELECT 'TABLE' TABLE_TYPE UNION SELECT 'VIEW' ORDER BY 1 DESC", [("VIEW",), ("TABLE",)]),
        ("SELECT 1 FROM dual WHERE 1 < 2", [(1,)]),
        ("SELECT 1.50", [(Decimal("1.50"),)]),
        ("SELECT host, db, grantor FROM mysql.tables_priv WHERE db LIKE 'sales'", []),
        (
            "SELECT TABLE_NAME, IF(TABLE_TYPE='BASE TABLE', 'TABLE', TABLE_TYPE) AS KIND "
            "FROM information_schema.tables WHERE TABLE_SCHEMA LIKE 'sales' HAVING KIND IN ('TABLE', NULL) "
            "ORDER BY TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME",
            [("clicks", "TABLE"), ("orders", "TABLE")],
        ),
        ("SELECT count(*) AS n FROM information_schema.tables WHERE TABLE_SCHEMA = 'sales' HAVING n > 5", []),
        (
            "SELECT TABLE_SCHEMA, count(*) AS n FROM information_schema.tables WHERE TABLE_SCHEMA = 'sales' "
            "GROUP BY TABLE_SCHEMA HAVING n = 2",
            [("sales", 2)],
        ),
    ],
)
def test_queries_of_drivers(connect: Connect, text: str, answer: list[Any]) -> None:
    assert rows(connect(), text) == answer


def test_names_may_stand_in_a_list_of_settings(connect: Connect) -> None:
    connection = connect()
    rows(connection, "set sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),time_zone='+00:00',NAMES utf8mb4")
    assert rows(connection, "SELECT @@time_zone, @@character_set_client") == [("+00:00", "utf8mb4")]
    assert "STRICT_TRANS_TABLES" in str(rows(connection, "SELECT @@sql_mode"))
    rows(connection, "SET NAMES latin1 COLLATE latin1_swedish_ci, @a = 1")
    assert rows(connection, "SELECT @@character_set_client, @a") == [("latin1", 1)]


@pytest.mark.parametrize("text", ["DROP USER nobody", "CREATE USER root"])
def test_users_that_are_not_there_or_there_already(connect: Connect, text: str) -> None:
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connect(), text)
    assert caught.value.args[0] == 1396


def test_numbers_keep_their_kind_in_prepared_statements(connect: Connect) -> None:
    connection = connect()
    rows(connection, "SET @exact = 1.50, @double = 2.5e0")
    rows(connection, "PREPARE p FROM 'SELECT ?, ?'")
    assert rows(connection, "EXECUTE p USING @exact, @double") == [(Decimal("1.50"), 2.5)]
