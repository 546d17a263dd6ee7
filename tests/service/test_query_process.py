"""Queries run in a process of their own: they have limits, and whatever one does, loads go on.

One query process and one home serve all tests here; some of them end the process, and the next query starts another.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
from fastapi.testclient import TestClient
from pymysql.cursors import SSCursor
from pyspark.sql import SparkSession

from lading.clock import SystemClock
from lading.errors import ConfigError, LadingError, UnavailableError
from lading.http.app import create_app
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.home import Home
from lading.service.limits.cancellation import CancelToken
from lading.service.security.mysql_users import MysqlUsers
from lading.service.spark_queries import asking
from lading.service.spark_queries import process as process_module
from lading.service.spark_queries.asking import Queries
from lading.service.spark_queries.limits import MIB, QueryLimits, parse_limits
from lading.service.spark_queries.process import Line, QueryProcess
from lading.service.spark_queries.turns import QueryTurns
from lading.service.spark_queries.wire import QueryRequest
from lading.testing.marked import secret
from tests.http.rig import rules
from tests.service.conftest import Desk

BOB = secret("long-enough")
ENDLESS = "SELECT count(*) FROM " + ", ".join(f"shop.orders o{number}" for number in range(14))
"""Tasks of it do not look whether they should end."""
DEVOURING = "SELECT count(sequence(1, 500000000 + id)) FROM shop.orders"
Connect = Callable[..., "pymysql.connections.Connection[Any]"]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryProcess]:
    made = QueryProcess(Home(path=tmp_path_factory.mktemp("queries")), {"spark.master": "local[2]"}, QueryLimits())
    yield made
    made.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, process: QueryProcess) -> Iterator[Desk]:
    """Ten rows; loads run in the Spark of the tests, and queries in the process."""
    desk = Desk(tmp_path_factory.mktemp("shop"), spark)
    own = desk.lading.queries
    desk.lading._queries = Queries(process, QueryLimits(), SystemClock())
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.create()
    desk.run()
    desk.sql(f"CREATE USER bob IDENTIFIED BY '{BOB}'; CREATE USER carl IDENTIFIED BY '{BOB}'")
    desk.sql("GRANT SELECT ON shop.orders TO bob")
    yield desk
    desk.lading._queries = own  # The process outlives this home.
    desk.lading.close()


@pytest.fixture
def connect(shop: Desk) -> Iterator[Connect]:
    users = MysqlUsers(shop.lading.access)
    opened: list[pymysql.connections.Connection[Any]] = []
    with MysqlServer(shop.lading, authenticator=users, options=MysqlOptions(port=0, close_grace_s=2)) as server:

        def connect_as(user: str = "bob", **options: Any) -> pymysql.connections.Connection[Any]:
            options = {"host": "127.0.0.1", "port": server.port, "password": BOB, "database": "shop", **options}
            opened.append(pymysql.connect(user=user, **options))
            return opened[-1]

        yield connect_as
    for connection in opened:
        connection.close()


def rows(connection: pymysql.connections.Connection[Any], text: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall())


def fails(connection: pymysql.connections.Connection[Any], text: str) -> tuple[int, str]:
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, text)
    return caught.value.args[0], caught.value.args[1]


def pid_of(process: QueryProcess) -> int:
    assert process._child is not None
    return process._child.result()._process.pid


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def cpu_s(group: int) -> float:
    """Processor time that the processes of a group have had."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # It ended meanwhile.
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += (int(fields[2]) == group) * (int(fields[11]) + int(fields[12]))
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until(holds: Callable[[], bool], within_s: float = 60) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


class Asking:
    """A query of another client, from when the query process has it."""

    def __init__(self, process: QueryProcess, connection: pymysql.connections.Connection[Any], text: str) -> None:
        self._told: list[tuple[int, str]] = []
        self._thread = self.begin(process, lambda: self._told.append(fails(connection, text)))

    @staticmethod
    def begin(process: QueryProcess, ask_it: Callable[[], None]) -> threading.Thread:
        """The thread that asks, when the process has what it asks."""
        thread = threading.Thread(target=ask_it)
        has_it = threading.Event()
        with pytest.MonkeyPatch.context() as patched:
            ask = process.ask

            def ask_and_tell(stop: CancelToken) -> Line:
                line = ask(stop)
                has_it.set()
                return line

            patched.setattr(process, "ask", ask_and_tell)
            thread.start()
            assert has_it.wait(60)
        return thread

    def told(self) -> tuple[int, str]:
        """How it failed."""
        self._thread.join(60)
        return self._told[0]


def test_values_come_through_as_they_are(shop: Desk) -> None:
    found = shop.lading.sql(
        "SELECT id, city, amount, id AS id, CAST('2024-02-03 04:05:06' AS timestamp), DATE '2024-02-03', "
        "array(1, NULL), map('k', amount), named_struct('b', 1, 'a', array(named_struct('x', city))), NULL, true, "
        "CAST('ab' AS binary), CAST(1.5 AS double), INTERVAL '3' MONTH FROM orders WHERE id = 3"
    )[-1]
    import datetime
    from decimal import Decimal

    (row,) = found.rows
    amount = Decimal("3.50")
    at = datetime.datetime(2024, 2, 3, 4, 5, 6)  # noqa: DTZ001 - as every face tells it
    assert row[:6] == (3, "essen", amount, 3, at, datetime.date(2024, 2, 3))
    assert row[6:12] == ([1, None], {"k": amount}, {"b": 1, "a": [{"x": "essen"}]}, None, True, b"ab")
    assert (row[12], "3" in str(row[13])) == (1.5, True)
    assert found.columns[:4] == ("id", "city", "amount", "id")


def test_an_answer_of_300_mb_comes_whole(connect: Connect) -> None:
    """With the limits that a service has when nobody sets them."""
    with closing(connect().cursor(SSCursor)) as cursor:
        many = "SELECT explode(sequence(1, 300)) AS n, id FROM orders"
        cursor.execute(f"SELECT n, repeat('x', 100000) FROM ({many}) m")
        assert sum(len(text) for _, text in cursor) == 300_000_000


def test_answers_are_bounded(shop: Desk, process: QueryProcess) -> None:
    many = "SELECT id FROM (SELECT id, explode(sequence(1, 1000)) FROM orders) x"
    client = TestClient(create_app(shop.lading, rules=rules()), raise_server_exceptions=False)
    for limits, said in (
        (QueryLimits(rows=9_999), "more than 9,999 rows"),
        (QueryLimits(size_bytes=50_000), "more than 50,000 bytes"),
    ):
        shop.lading._queries = Queries(process, limits, SystemClock())
        answer = client.post("/api/sql", json={"sql": many, "database": "shop"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "QueryLimit")
        assert said in answer.json()["error"]["message"]
    shop.lading._queries = Queries(process, QueryLimits(), SystemClock())
    long = "SELECT repeat('x', 70000000) FROM orders LIMIT 1"
    answer = client.post("/api/sql", json={"sql": long, "database": "shop"})
    assert "A row of the answer takes" in answer.json()["error"]["message"]
    answer = client.post("/api/sql", json={"sql": "SELECT repeat('x', 20000000) FROM orders", "database": "shop"})
    assert (answer.status_code, answer.json()["results"][0]["is_cut"]) == (200, True)
    assert len(answer.content) < 64 * MIB


def test_spark_is_not_for_users_who_read_no_table(connect: Connect) -> None:
    users = {"carl": connect("carl", database=None), "bob": connect("bob")}
    for name, user in users.items():
        for text in ("SELECT repeat('x', 2000000000)", "SELECT sequence(1, 1000000000)", "SELECT upper('a')"):
            code, said = fails(user, text)
            assert (code, f"denied to user '{name}'" in said) == (1227, True)
        assert rows(user, "SELECT 1, 'a', NULL") == [(1, "a", None)]
    assert rows(users["bob"], "SELECT upper('a') FROM orders LIMIT 1") == [("A",)]


def test_a_query_takes_no_longer_than_it_may(
    connect: Connect, process: QueryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "LET_GO_WITHIN_S", 1.0)
    bob, other = connect(), connect()
    assert rows(bob, "SELECT @@query_timeout") == [(300,)]
    assert rows(bob, "SELECT count(*) FROM orders") == [(10,)]
    first = pid_of(process)
    rows(bob, "SET query_timeout = 4")  # Long enough that its tasks run.
    assert fails(bob, ENDLESS)[0] == 3024
    wait_until(lambda: not is_there(first))  # Its tasks held on to their cores.
    rows(bob, "SET query_timeout = 120")
    assert rows(bob, "SELECT count(*) FROM orders") == [(10,)]
    second = pid_of(process)
    assert second != first

    before_s = cpu_s(second)
    query = Asking(process, other, ENDLESS)
    wait_until(lambda: cpu_s(second) > before_s + 4)  # A query that is only planned lets go, and its process stays.
    rows(bob, f"KILL QUERY {other.thread_id()}")
    assert query.told()[0] == 1317
    wait_until(lambda: not is_there(second))
    assert rows(bob, "SELECT count(*) FROM orders") == [(10,)]


def test_a_query_process_that_is_killed_is_told_and_replaced(connect: Connect, process: QueryProcess) -> None:
    bob, other = connect(), connect()
    rows(bob, "SELECT count(*) FROM orders")
    query = Asking(process, other, ENDLESS)
    os.kill(pid_of(process), signal.SIGKILL)
    assert "killed by signal 9" in query.told()[1]
    assert rows(bob, "SELECT count(*) FROM orders") == [(10,)]


def test_a_query_without_memory_ends_no_load(
    shop: Desk, connect: Connect, process: QueryProcess, spark: SparkSession
) -> None:
    """The last one with the shop: it loads ten rows more."""
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    bob, victim = connect(), connect()
    rows(victim, "SELECT count(*) FROM orders")
    query = Asking(process, victim, ENDLESS)
    shop.put_orders("b.csv", 10, 10)
    loading = threading.Thread(target=shop.run)
    loading.start()
    code, said = fails(bob, DEVOURING)
    assert (code, "The query ran out of memory" in said) == (1041, True), said
    loading.join(240)
    assert shop.ids() == list(range(20))
    assert "another query" in query.told()[1]
    assert spark.sparkContext._gateway.proc.pid == java  # type: ignore[union-attr]
    assert rows(bob, "SELECT count(*) FROM orders") == [(20,)]


DYING = """
import socket, sys
from lading.service.spark_queries.wire import *
control = socket.socket(fileno=int(sys.argv[1]))
read_frame(control)
send_frame(control, READY)
asked = [socket.recv_fds(control, NAME_BYTES, 1) for _ in range(2)]
send_frame(control, OUT_OF_MEMORY, asked[0][0] if KNOWN else b"")
"""


@pytest.mark.java  # It is asked for its version.
@pytest.mark.parametrize("is_known", [True, False])
def test_the_end_of_the_process_tells_who_took_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """Also when Java died in such a way that no query could be answered any more."""
    monkeypatch.setattr(process_module, "_WORKER", DYING.replace("KNOWN", str(is_known)))
    dying = QueryProcess(Home(path=tmp_path), {}, QueryLimits())
    told: dict[str, LadingError] = {}

    def ask(user: str) -> None:
        with pytest.raises(LadingError) as caught:
            Queries(dying, QueryLimits(), SystemClock()).ask(QueryRequest(text=""), user=user, stop=CancelToken())
        told[user] = caught.value

    first = Asking.begin(dying, lambda: ask("bob"))
    ask("carl")
    first.join(60)
    dying.close()
    if is_known:
        assert (told["bob"].code, "because of another query" in str(told["carl"])) == ("QueryMemory", True)
    else:
        assert all("by this query or another one is not known" in str(error) for error in told.values())


KILLED = """
import os, signal, socket, sys
from lading.service.spark_queries.wire import *
control = socket.socket(fileno=int(sys.argv[1]))
read_frame(control)
send_frame(control, READY)
socket.recv_fds(control, NAME_BYTES, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.java  # It is asked for its version.
def test_a_process_that_is_killed_before_it_reads_what_is_asked_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "_WORKER", KILLED)
    dying = QueryProcess(Home(path=tmp_path), {}, QueryLimits())
    ask = dying.ask

    def ask_and_wait(stop: CancelToken) -> Line:
        line = ask(stop)
        assert line.peer.recv(1) == b""  # It is gone.
        return line

    monkeypatch.setattr(dying, "ask", ask_and_wait)
    with pytest.raises(UnavailableError, match="killed by signal 9"):
        Queries(dying, QueryLimits(), SystemClock()).ask(QueryRequest(text=""), user="bob", stop=CancelToken())
    dying.close()


def test_limits_are_read_from_words() -> None:
    limits = parse_limits(["timeout=60", "memory=1g", "bytes=10m", "per_user=9"])
    assert (limits.seconds, limits.memory_bytes, limits.size_bytes, limits.each) == (60, 1024 * MIB, 10 * MIB, 4)
    for wrong in ("time=1", "rows=0", "rows=many", "memory=1t", "memory=1m", "timeout"):
        with pytest.raises(ConfigError):
            parse_limits([wrong])


def test_turns_are_shared_between_users() -> None:
    turns = QueryTurns(replace(QueryLimits(), at_once=2, each=1, waiting=4), SystemClock())
    bob = turns.take("bob", CancelToken(), 1)
    carl = turns.take("carl", CancelToken(), 1)
    with pytest.raises(UnavailableError, match="waited"):
        turns.take("bob", CancelToken(), 0.01)
    went: list[str] = []

    def take_second() -> None:
        turns.take("bob", CancelToken(), 30)
        went.append("bob")

    second = threading.Thread(target=take_second)
    second.start()
    wait_until(lambda: len(turns._waiting) == 1)
    with pytest.raises(UnavailableError, match="1 queries of user 'bob' wait"):
        turns.take("bob", CancelToken(), 30)
    carl()  # Bob has one already.
    turns.take("dora", CancelToken(), 30)
    assert went == []
    bob()
    second.join(10)
    assert went == ["bob"]
    stop = CancelToken()
    stop.set()
    with pytest.raises(ConfigError, match="was ended"):
        turns.take("carl", stop, 30)
