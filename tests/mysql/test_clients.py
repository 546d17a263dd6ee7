"""Statements of Lading through PyMySQL and through Debian's mysql."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT, FIELD_TYPE

from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from tests.mysql.client import run_mysql
from tests.mysql.conftest import Connect, rows

CREATE_JOB = """CREATE JOB {name} ON STREAMING DO INSERT INTO sales.copied SELECT id, city FROM
FILE("uri"="{folder}/*.csv", "format"="csv_with_names", "column_separator"=",")"""


@pytest.fixture
def folder(tmp_path: Path, lading: Lading) -> Path:
    (tmp_path / "a.csv").write_text("id,city\n1,Bonn\n")
    lading.sql("CREATE TABLE IF NOT EXISTS sales.copied (id bigint, city string) USING delta")
    return tmp_path


def test_a_job_is_made_shown_and_dropped_with_mysql(server: MysqlServer, folder: Path) -> None:
    text = f"""{CREATE_JOB.format(name="by_mysql", folder=folder)};
    SELECT Name, Status FROM jobs("type"="insert") WHERE Name = 'by_mysql'\\G
    SHOW CREATE JOB by_mysql;
    DROP JOB WHERE jobName = 'by_mysql';
    SELECT COUNT(*) FROM jobs("type"="insert") WHERE Name = 'by_mysql';"""
    done = run_mysql(server.port, text, "-vvv")
    assert done.returncode == 0, done.stderr
    assert "job by_mysql created" in done.stdout
    assert "Name: by_mysql" in done.stdout
    assert "csv_with_names" in done.stdout
    assert "|        0 |" in done.stdout


def test_mysql_completes_names_and_shows_its_status(server: MysqlServer) -> None:
    done = run_mysql(server.port, "status\nuse sales\nshow tables;\nselect user();\n", "--auto-rehash", "-t")
    assert done.returncode == 0, done.stderr
    assert "Lading" in done.stdout
    assert "| orders" in done.stdout
    assert "root@127.0.0.1" in done.stdout


def test_mysql_is_told_where_a_statement_is_wrong(server: MysqlServer) -> None:
    done = run_mysql(server.port, "CREATE JOB x ON STREEMING DO INSERT;")
    assert done.returncode == 1
    assert "ERROR 1064 (42000)" in done.stderr
    assert "^^^^^^^^^" in done.stderr


def test_mysql_goes_on_after_an_error_when_it_is_told_to(server: MysqlServer) -> None:
    done = run_mysql(server.port, "USE nowhere; SELECT 'still here';", "--force")
    assert "ERROR 1049 (42000)" in done.stderr
    assert "still here" in done.stdout


def test_mysql_prepares_statements_by_name(server: MysqlServer) -> None:
    text = """PREPARE p FROM 'SELECT Name FROM jobs("type"="insert") WHERE Name = ? OR ? = 5';
    SET @a = 'it''s \\\\ " ; ?', @b = 7; EXECUTE p USING @a, @b;
    PREPARE q FROM 'SELECT ?'; EXECUTE q USING @a; EXECUTE q; DEALLOCATE PREPARE q; EXECUTE q USING @a;"""
    done = run_mysql(server.port, text, "--force", "-N", "-r")
    assert done.stdout == "it's \\ \" ; ?\n"
    assert "ERROR 1210" in done.stderr
    assert "ERROR 1243" in done.stderr


def test_statements_of_lading_reach_its_own_parser(connect: Connect, folder: Path) -> None:
    connection = connect(database="sales")
    rows(connection, CREATE_JOB.format(name="by_pymysql", folder=folder))
    found = rows(connection, 'SELECT Name, Status FROM jobs("type"="insert") WHERE Name = \'by_pymysql\'')
    assert found[0][0] == "by_pymysql"
    assert rows(connection, "EXPLAIN JOB by_pymysql")
    rows(connection, "DROP JOB WHERE jobName = 'by_pymysql'")
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, "PAUSE JOB WHERE jobName = 'by_pymysql'")
    assert caught.value.args == (1105, caught.value.args[1])
    assert "job not exist: by_pymysql" in caught.value.args[1]


def test_routine_loads_are_understood_by_lading_and_not_by_another_parser(connect: Connect) -> None:
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connect(), 'CREATE ROUTINE LOAD sales.j ON clicks PROPERTIES("format"="jsn") FROM KINESIS("a"="b")')
    assert caught.value.args[0] in (1064, 1105, 1235)
    assert "Traceback" not in caught.value.args[1]


def test_several_statements_have_several_answers(connect: Connect) -> None:
    with connect(client_flag=CLIENT.MULTI_STATEMENTS).cursor() as cursor:
        cursor.execute("SET @a = 1; SELECT @a, ';'; -- nothing; here\nSHOW DATABASES; SELECT 2;")
        answers = [cursor.fetchall()]
        while cursor.nextset():
            answers.append(cursor.fetchall())
    assert answers[1:] == [((1, ";"),), (("default",), ("sales",)), ((2,),)]


def test_the_first_of_several_statements_that_fails_ends_them(connect: Connect) -> None:
    connection = connect(client_flag=CLIENT.MULTI_STATEMENTS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1; SELEKT 2; CREATE DATABASE never")
        with pytest.raises(pymysql.ProgrammingError, match="SELEKT"):
            cursor.nextset()
    assert ("never",) not in rows(connection, "SHOW DATABASES")


def test_several_statements_are_refused_from_clients_that_do_not_expect_them(connect: Connect) -> None:
    connection = connect()
    with pytest.raises(pymysql.ProgrammingError, match="more than one"):
        rows(connection, "SELECT 1; CREATE DATABASE never")
    assert ("never",) not in rows(connection, "SHOW DATABASES")


def test_types_and_letters_arrive_as_they_are(connect: Connect) -> None:
    with connect().cursor() as cursor:
        cursor.execute("SELECT 1 AS i, 1.5 AS f, 'Zürich 🚢' AS s, NULL AS n, NOW() AS t, CURRENT_DATE AS d")
        kinds = [column[1] for column in cursor.description or ()]
        (row,) = cursor.fetchall()
    assert kinds[:3] == [FIELD_TYPE.LONGLONG, FIELD_TYPE.NEWDECIMAL, FIELD_TYPE.VAR_STRING]
    assert kinds[4:] == [FIELD_TYPE.DATETIME, FIELD_TYPE.DATE]
    assert row[:4] == (1, 1.5, "Zürich 🚢", None)
    assert row[4].date() == row[5]


def test_old_character_sets_are_spoken(connect: Connect) -> None:
    connection = connect(charset="latin1")
    assert rows(connection, "SELECT 'Zürich'") == [("Zürich",)]
    rows(connection, "SET NAMES utf8mb4")


def test_parameters_of_pymysql_are_quoted_so_that_lading_reads_them(connect: Connect) -> None:
    for value in ("it's", 'say "x"', "back\\slash", "a\nb", "100%", "?", "ü", ""):
        with connect().cursor() as cursor:
            cursor.execute("SELECT %s", (value,))
            assert cursor.fetchall() == ((value,),)


def test_a_database_that_is_not_there_is_refused_at_the_door(server: MysqlServer, connect: Connect) -> None:
    with pytest.raises(pymysql.OperationalError) as caught:
        connect(database="nowhere")
    assert caught.value.args[0] == 1049


def test_each_connection_has_its_own_database(connect: Connect) -> None:
    first, second = connect(database="sales"), connect()
    rows(first, "CREATE DATABASE IF NOT EXISTS elsewhere")
    second.select_db("elsewhere")
    assert rows(first, "SELECT DATABASE()") == [("sales",)]
    assert rows(second, "SELECT DATABASE()") == [("elsewhere",)]
    assert second.ping() is None


def test_a_connection_can_be_killed(connect: Connect, server: MysqlServer) -> None:
    victim, other = connect(), connect()
    rows(other, f"KILL {victim.thread_id()}")
    deadline = time.monotonic() + 5
    while victim.thread_id() in [row[0] for row in rows(other, "SHOW PROCESSLIST")]:
        assert time.monotonic() < deadline
    with pytest.raises(pymysql.MySQLError):
        rows(victim, "SELECT 1")


def test_a_statement_can_be_killed_and_the_connection_lives_on(lading: Lading, connect: Connect) -> None:
    go_on = threading.Event()
    began = threading.Event()
    store = lading.store
    listing = store.list_databases

    def slow() -> object:
        began.set()
        go_on.wait(20)
        return listing()

    victim, other = connect(), connect()
    caught: list[Exception] = []

    def run() -> None:
        try:
            rows(victim, "SHOW DATABASES")
        except pymysql.MySQLError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    store.list_databases = slow  # type: ignore[method-assign,assignment]  # a statement that takes its time
    try:
        thread.start()
        assert began.wait(10)
        rows(other, f"KILL QUERY {victim.thread_id()}")
        thread.join(10)
        assert not thread.is_alive()
    finally:
        store.list_databases = listing  # type: ignore[method-assign]
        go_on.set()
    assert caught[0].args[0] == 1317
    assert ("sales",) in rows(victim, "SHOW DATABASES")
