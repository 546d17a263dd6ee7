"""One client that takes all it can get, and the others, who must not notice."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Iterator

import pymysql
import pytest

from lading.mysql.emulation import statements
from lading.mysql.emulation.constants import Surroundings, select_constants
from lading.mysql.protocol import packets
from lading.mysql.protocol.answers import READY
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.protocol.wire import Wire
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.limits import sqlite_sandbox
from lading.service.limits.sqlite_sandbox import Bounds
from lading.service.result import Result
from lading.service.session import Session
from tests.mysql.conftest import Connect, rows
from tests.mysql.raw import Raw, code_of
from tests.mysql.test_robust import wait_until

COUNTING = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
ENDLESS = [
    pytest.param(f'{COUNTING}, (SELECT count(*) FROM jobs("type"="insert")) AS j', id="jobs"),
    pytest.param(f"{COUNTING}, information_schema.engines", id="schema"),
]
WORKERS = 2


@pytest.fixture
def narrow(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> Iterator[MysqlServer]:
    """A server with few workers, and queries that take long."""
    monkeypatch.setattr(sqlite_sandbox, "BOUNDS", Bounds(seconds=60))
    with MysqlServer(lading, options=MysqlOptions(port=0, workers=WORKERS, close_grace_s=0.5)) as started:
        yield started


def begin(server: MysqlServer, text: str) -> list[Raw]:
    """Take all workers."""
    clients = [Raw(server.port) for _ in range(WORKERS)]
    for client in clients:
        client.login()
        client.command(3, text.encode())
    other = pymysql.connect(host="127.0.0.1", port=server.port, user="root")
    wait_until(lambda: sum(row[4] == "Query" for row in rows(other, "SHOW PROCESSLIST")) > WORKERS)
    other.close()
    return clients


@pytest.mark.parametrize("text", ENDLESS)
def test_statements_keep_nobody_out_and_can_be_killed(narrow: MysqlServer, connect: Connect, text: str) -> None:
    clients = begin(narrow, text)
    other = connect(narrow.port, database="sales", connect_timeout=5, read_timeout=10)
    assert rows(other, "SELECT DATABASE()") == [("sales",)]
    taken = [row[0] for row in rows(other, "SHOW PROCESSLIST") if row[0] != other.thread_id()]
    for number in taken:
        rows(other, f"KILL QUERY {number}")
    for client in clients:
        assert code_of(client.read()) == 1317
    assert ("sales",) in rows(other, "SHOW DATABASES")
    for client in clients:
        assert client.query("SHOW DATABASES")
        client.socket.close()


def test_who_is_gone_takes_no_worker(narrow: MysqlServer, connect: Connect) -> None:
    for client in begin(narrow, COUNTING + ", information_schema.engines"):
        client.socket.close()
    assert ("sales",) in rows(connect(narrow.port, read_timeout=10), "SHOW DATABASES")
    wait_until(lambda: narrow.connections == 1)


@pytest.mark.parametrize("text", ENDLESS)
def test_closing_ends_what_does_not_end(narrow: MysqlServer, text: str) -> None:
    clients = begin(narrow, text)
    closing = threading.Thread(target=narrow.close)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    wait_until(lambda: not any(thread.name.startswith("lading-mysql_") for thread in threading.enumerate()))
    for client in clients:
        client.socket.close()


def test_closing_does_not_wait_for_a_thread_that_hears_nothing(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = threading.Event(), threading.Event()

    def deaf(self: Session, statement: object) -> Result:
        began.set()
        go_on.wait(60)
        return Result()

    server = MysqlServer(lading, options=MysqlOptions(port=0, close_grace_s=0.2)).start()
    with Raw(server.port) as client:
        client.login()
        monkeypatch.setattr(Session, "execute", deaf)
        client.command(3, b"SHOW DATABASES")
        assert began.wait(10)
        closing = threading.Thread(target=server.close)
        closing.start()
        closing.join(15)
        is_closed = not closing.is_alive()
        go_on.set()
        assert is_closed


def test_closing_does_not_wait_for_a_reader_that_takes_nothing(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Result(columns=("text",), rows=(("x" * 1000,),) * 50_000)
    server = MysqlServer(lading, options=MysqlOptions(port=0, close_grace_s=0.2)).start()
    with Raw(server.port, receive_buffer=4096) as stuck:
        stuck.login()
        monkeypatch.setattr(Session, "execute", lambda *_: answer)
        stuck.command(3, b"SHOW DATABASES")
        stuck.read()
        closing = threading.Thread(target=server.close)
        closing.start()
        closing.join(15)
        assert not closing.is_alive()


def test_a_long_select_of_constants_is_not_read_in_the_place_of_others(
    server: MysqlServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading one takes a second: the thread of the loop has no time for that."""
    where: list[str] = []

    def watched(text: str, around: Surroundings) -> Result | None:
        where.append(threading.current_thread().name)
        return select_constants(text, around)

    monkeypatch.setattr(statements, "select_constants", watched)
    connection = connect()
    where.clear()
    for count in (10, 100, 8000):
        assert rows(connection, "SELECT " + "1," * count + "1") == [(1,) * (count + 1)]
    assert [name.startswith("lading-mysql_") for name in where] == [False, True, True]


def test_a_kill_that_comes_after_the_last_packet_adds_none(
    server: MysqlServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has not taken all of an answer that is written: one packet more would be taken for the next."""
    flush = Wire.flush
    waits, go_on = threading.Event(), threading.Event()

    async def slow(self: Wire) -> None:
        is_last = bytes(self._buffer[-5:]) == packets.eof(READY)
        await flush(self)
        if is_last and not waits.is_set():
            waits.set()
            while not go_on.is_set():
                await asyncio.sleep(0.01)

    other = connect()
    with Raw(server.port) as client:
        client.login()
        victim = max(row[0] for row in rows(other, "SHOW PROCESSLIST"))
        monkeypatch.setattr(Wire, "flush", slow)
        client.command(3, b"SELECT * FROM information_schema.engines")
        assert waits.wait(10)
        with connect().cursor() as cursor:
            cursor.execute(f"KILL QUERY {victim}")
        go_on.set()
        assert len(client.answer()) > 2
        client.command(0x0E)
        assert client.read()[:1] == b"\0"
        assert client.sequence == 2
        assert client.query("SELECT 1")[-1] == b"\x011"


def test_commands_without_an_answer_have_none_when_they_are_wrong(server: MysqlServer) -> None:
    for command, rest in ((0x18, b"\1"), (0x18, struct.pack("<IH", 9, 0)), (0x19, b"\1"), (0x18, b""), (0x19, b"")):
        with Raw(server.port) as client:
            client.login()
            client.command(command, rest)
            client.command(0x0E)
            assert client.read()[:1] == b"\0"
            assert client.query("SELECT 1")[-1] == b"\x011"


def test_a_connection_keeps_only_so_much_of_what_comes_in_pieces(lading: Lading) -> None:
    limit = 15_000
    with (
        MysqlServer(lading, options=MysqlOptions(port=0, max_packet_bytes=limit, close_grace_s=1)) as server,
        Raw(server.port) as client,
    ):
        client.login()
        first, _ = client.prepare("SELECT ?, ?")
        second, _ = client.prepare("SELECT ?")
        for statement, parameter in ((first, 0), (first, 1), (second, 0)):
            client.command(0x18, struct.pack("<IH", statement, parameter) + b"x" * (limit * 2 // 5))
        client.command(0x17, struct.pack("<IBI", second, 0, 1) + b"\0\1\xfd\0")
        assert code_of(client.answer()[0]) == 1153
        client.command(0x17, struct.pack("<IBI", first, 0, 1) + b"\0\1\xfd\0\xfd\0")
        assert client.answer()[-1].count(b"x") == 2 * (limit * 2 // 5)
        client.command(0x18, struct.pack("<IH", second, 0) + b"now there is room")
        client.command(0x17, struct.pack("<IBI", second, 0, 1) + b"\0\1\xfd\0")
        assert client.answer()[-1].endswith(b"now there is room")


def test_texts_of_prepared_statements_are_bounded_too(lading: Lading) -> None:
    with (
        MysqlServer(lading, options=MysqlOptions(port=0, max_packet_bytes=10_000, close_grace_s=1)) as server,
        Raw(server.port) as client,
    ):
        client.login()
        for _ in range(3):
            client.prepare("SELECT '" + "x" * 3000 + "'")
        client.command(0x16, b"SELECT '" + b"x" * 3000 + b"'")
        assert code_of(client.read()) == 1461
        client.command(0x19, (1).to_bytes(4, "little"))
        client.prepare("SELECT '" + "x" * 3000 + "'")


@pytest.mark.parametrize("text", ["", " ", ";", " ; ;"])
def test_nothing_cannot_be_prepared(server: MysqlServer, text: str) -> None:
    with Raw(server.port) as client:
        client.login()
        client.command(0x16, text.encode())
        assert code_of(client.read()) == 1065
        assert client.query("SELECT 1")


def code_from(connection: pymysql.connections.Connection[pymysql.cursors.Cursor], text: str) -> int:
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, text)
    return int(caught.value.args[0])


def test_statements_by_name_and_variables_do_not_grow_without_end(connect: Connect) -> None:
    connection = connect()
    for number in range(1000):
        rows(connection, f"PREPARE p{number} FROM 'SELECT 1'")
    assert code_from(connection, "PREPARE p1000 FROM 'SELECT 1'") == 1461
    rows(connection, "PREPARE p999 FROM 'SELECT 2'")
    rows(connection, "SET @a = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    for _ in range(12):
        rows(connection, "SET @a = CONCAT(@a, @a)")
    assert code_from(connection, "SET @a = CONCAT(@a, @a)") == 3170
    assert code_from(connection, "SET sql_mode = CONCAT(@a, @a)") == 3170
    assert code_from(connection, "SELECT CONCAT(" + "@a, " * 60 + "@a)") == 1301
    assert code_from(connection, "SELECT " + "@a, " * 60 + "@a") == 1301
    rows(connection, "SET @a = ''")
    for number in range(999):
        rows(connection, f"SET @v{number} = 1")
    assert code_from(connection, "SET @v999 = 1") == 3170
    assert rows(connection, "SELECT @v998, @v999") == [(1, None)]
