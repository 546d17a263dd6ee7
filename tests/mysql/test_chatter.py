"""What clients send before anybody typed anything, and what tools ask to draw their trees."""

from __future__ import annotations

import pymysql
import pytest

from lading.mysql.server import MysqlServer
from tests.mysql.conftest import Connect, rows

NOTHING_TO_FETCH = [
    "SET NAMES utf8mb4",
    "SET NAMES 'utf8' COLLATE 'utf8_general_ci'",
    "SET character_set_results = NULL",
    "SET autocommit=1, sql_mode='STRICT_TRANS_TABLES'",
    "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI')",
    "SET @@session.net_write_timeout := 600",
    "SET SQL_SAFE_UPDATES=1, SQL_SELECT_LIMIT=500",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET TRANSACTION READ ONLY",
    "SET @old = @@sql_mode, @x := 5",
    "BEGIN",
    "START TRANSACTION READ ONLY",
    "COMMIT",
    "ROLLBACK",
    "LOCK TABLES sales.orders READ",
    "UNLOCK TABLES",
    "/*!40101 SET NAMES utf8 */",
    "USE sales",
    "USE information_schema",
]


@pytest.mark.parametrize("text", NOTHING_TO_FETCH)
def test_settings_and_transactions_are_answered_with_ok(connect: Connect, text: str) -> None:
    with connect().cursor() as cursor:
        cursor.execute(text)
        assert cursor.description is None


def test_connector_j_learns_its_variables_at_once(connect: Connect) -> None:
    text = (
        "/* mysql-connector-j-8.4.0 (Revision: 1) */SELECT  @@session.auto_increment_increment AS "
        "auto_increment_increment, @@character_set_client AS character_set_client, @@collation_server AS "
        "collation_server, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, "
        "@@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS "
        "max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, "
        "@@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, "
        "@@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout"
    )
    with connect().cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(text)
        (found,) = cursor.fetchall()
    assert found["max_allowed_packet"] == 16 * 1024 * 1024
    assert found["character_set_client"] == "utf8mb4"


def test_functions_of_the_connection(connect: Connect) -> None:
    connection = connect(database="sales")
    ((database, user, number, version, one, text, nothing),) = rows(
        connection, "SELECT DATABASE(), USER(), CONNECTION_ID(), VERSION(), 1, 'it''s', NULL"
    )
    assert (database, user, number) == ("sales", "root@127.0.0.1", connection.thread_id())
    assert version.startswith("8.0")
    assert (one, text, nothing) == (1, "it's", None)


def test_names_of_columns_are_as_they_were_written(connect: Connect) -> None:
    with connect().cursor() as cursor:
        cursor.execute("select @@Version_Comment, database(), 1 AS `one`, 'x' from dual limit 1")
        assert [column[0] for column in cursor.description or ()] == ["@@Version_Comment", "database()", "one", "x"]


def test_a_variable_that_was_set_is_read_back(connect: Connect) -> None:
    connection = connect()
    rows(connection, "SET @mine = 'a', sql_mode = 'ANSI', something_new = ON")
    assert rows(connection, "SELECT @mine, @@sql_mode, @@something_new, @never") == [("a", "ANSI", 1, None)]
    assert rows(connect(), "SELECT @mine, @@sql_mode") == [(None, "STRICT_TRANS_TABLES")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT @@no_such_thing", 1193),
        ("SET version = '1'", 1238),
        ("SET NAMES klingon", 1115),
        ("SET GLOBAL sql_mode = ''", 1235),
        ("SELECT * FROM mysql.user", 1146),
        ("SELECT * FROM information_schema.no_such", 1146),
        ("SELECT nope FROM information_schema.tables", 1054),
        ("SELECT * FROM information_schema.tables t JOIN sales.orders o ON t.table_name = o.city", 1235),
        ("SHOW TABLES FROM nowhere", 1049),
        ("SHOW FULL COLUMNS FROM nothing", 1146),
        ("KILL 4000000", 1094),
        ("EXECUTE nothing", 1243),
        ("SHOW NONSENSE", 1064),
        ("SET nonsense", 1064),
        ("EXPLAIN SELECT 1", 1235),
        ("EXPLAIN WITH x AS (SELECT 1) SELECT * FROM x", 1235),
        ("DESCRIBE `sales`.`nope`", 1146),
        ("SELECT * FROM performance_schema.threads", 1146),
        ("SHOW GRANTS FOR CURRENT_USER() nonsense", 1064),
    ],
)
def test_what_cannot_be_answered_has_the_number_that_clients_know(connect: Connect, text: str, code: int) -> None:
    connection = connect()
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, text)
    assert caught.value.args[0] == code
    assert rows(connection, "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    "text",
    [
        "SHOW VARIABLES",
        "SHOW SESSION VARIABLES LIKE 'sql_mode'",
        "SHOW GLOBAL STATUS",
        "SHOW ENGINES",
        "SHOW STORAGE ENGINES",
        "SHOW COLLATION",
        "SHOW COLLATION WHERE Charset = 'utf8mb4'",
        "SHOW CHARACTER SET",
        "SHOW CHARSET LIKE 'utf8%'",
        "SHOW PROCESSLIST",
        "SHOW FULL PROCESSLIST",
        "SHOW FULL TABLES FROM `sales` LIKE 'ord%'",
        "SHOW FULL TABLES FROM sales WHERE Table_type = 'BASE TABLE'",
        "SHOW TABLE STATUS FROM `sales` LIKE 'orders'",
        "SHOW TABLE STATUS IN sales",
        "SHOW FULL COLUMNS FROM `orders` FROM `sales`",
        "SHOW FIELDS IN sales.orders LIKE 'c%'",
        "SHOW CREATE TABLE sales.orders",
        "SHOW CREATE DATABASE sales",
        "SHOW DATABASES LIKE 'sa%'",
        "SHOW SCHEMAS",
        "SHOW TABLES FROM information_schema",
        "SHOW FULL TABLES FROM `information_schema` LIKE 'TAB%'",
        "SHOW COLUMNS FROM information_schema.tables",
        "SHOW FULL COLUMNS FROM `TABLES` FROM `information_schema`",
        "SHOW GRANTS FOR CURRENT_USER()",
        "SHOW GRANTS FOR CURRENT_USER",
        "SELECT * FROM performance_schema.session_status",
        "SELECT VARIABLE_VALUE FROM performance_schema.session_variables WHERE VARIABLE_NAME = 'sql_mode'",
        "SELECT VARIABLE_VALUE FROM information_schema.session_status WHERE VARIABLE_NAME = 'Uptime'",
        "DESCRIBE `sales`.`orders`",
        "SELECT * FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'sales'",
        "SELECT * FROM information_schema.ENGINES",
        "SELECT * FROM INFORMATION_SCHEMA.CHARACTER_SETS",
        "SELECT COUNT(*) FROM information_schema.processlist",
    ],
)
def test_shows_have_rows(connect: Connect, text: str) -> None:
    assert rows(connect(), text)


@pytest.mark.parametrize(
    "text",
    [
        "SHOW WARNINGS",
        "SHOW WARNINGS LIMIT 5",
        "SHOW PLUGINS",
        "SHOW TRIGGERS FROM sales LIKE '%'",
        "SHOW INDEX FROM sales.orders",
        "SHOW KEYS FROM `orders` FROM `sales`",
        "SHOW PROCEDURE STATUS",
        "SHOW FUNCTION STATUS WHERE Db = 'sales'",
        "SHOW EVENTS",
        "SHOW TABLES FROM performance_schema",
        "SHOW FULL TABLES FROM mysql",
        "SHOW TABLE STATUS FROM information_schema",
        "SHOW VARIABLES LIKE 'aurora\\\\_version'",
        "SELECT * FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'sales'",
        "SELECT * FROM information_schema.VIEWS",
        "SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = 'sales' AND "
        "REFERENCED_TABLE_NAME IS NOT NULL",
        "SELECT cc.CONSTRAINT_NAME, cc.CHECK_CLAUSE FROM (SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM "
        "INFORMATION_SCHEMA.CHECK_CONSTRAINTS) cc",
    ],
)
def test_shows_without_rows_have_columns(connect: Connect, text: str) -> None:
    with connect().cursor() as cursor:
        cursor.execute(text)
        assert cursor.description
        assert not cursor.fetchall()


def test_columns_are_told_with_mysqls_types(connect: Connect) -> None:
    wanted = [
        ("id", "bigint", "NO", "the key"),
        ("city", "varchar(20)", "YES", ""),
        ("amount", "decimal(10,2)", "YES", ""),
        ("at", "datetime(6)", "YES", ""),
        ("open", "tinyint(1)", "YES", ""),
    ]
    connection = connect(database="sales")
    assert [(r[0], r[1], r[3], r[8]) for r in rows(connection, "SHOW FULL COLUMNS FROM orders")] == wanted
    text = (
        "SELECT c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE, c.COLUMN_COMMENT FROM information_schema.COLUMNS c "
        "JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME "
        "WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = 'ORDERS' ORDER BY c.ORDINAL_POSITION"
    )
    assert rows(connection, text) == wanted


def test_tables_of_information_schema_can_be_asked_without_its_name_after_use(connect: Connect) -> None:
    connection = connect(database="information_schema")
    found = rows(connection, "SELECT table_name FROM tables WHERE table_schema = 'sales' ORDER BY 1")
    assert found == [("clicks",), ("orders",)]
    rows(connection, "USE sales")
    assert rows(connection, "SELECT DATABASE()") == [("sales",)]


def test_a_table_can_be_made_again_from_show_create_table(connect: Connect) -> None:
    connection = connect()
    ((name, text),) = rows(connection, "SHOW CREATE TABLE sales.orders")
    assert name == "orders"
    again = text.replace("sales.orders", "sales.again").replace("/orders'", "/again'")
    rows(connection, again)
    ((_, made),) = rows(connection, "SHOW CREATE TABLE sales.again")
    assert made == again
    rows(connection, "DROP TABLE sales.again")


def test_secrets_are_not_shown_to_those_who_list_processes(connect: Connect, server: MysqlServer) -> None:
    connection = connect()
    text = "SHOW PROCESSLIST /* 'kinesis.secret_key'='hunter2' */"
    ((_, _, _, _, _, _, _, shown),) = [row for row in rows(connection, text) if row[7]]
    assert "hunter2" not in shown


def test_tables_are_shown_after_use_of_information_schema(connect: Connect) -> None:
    connection = connect(database="information_schema")
    assert ("TABLES",) in rows(connection, "SHOW TABLES")
    assert ("SCHEMATA", "SYSTEM VIEW") in rows(connection, "SHOW FULL TABLES")


def test_information_schema_tells_of_routine_loads(connect: Connect) -> None:
    assert rows(connect(), "SELECT JOB_NAME, STATE FROM information_schema.routine_load_jobs") == []
