"""Bad input and bad luck: an error for that client, no effect on others, nothing left behind."""

from __future__ import annotations

import gc
import random
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from lading.errors import ConfigError
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.result import Result
from lading.service.session import Session
from tests.mysql.conftest import Connect, rows
from tests.mysql.raw import Raw, code_of

pytestmark = pytest.mark.long

FILES = Path("/proc/self/fd")


def wait_until(holds: Callable[[], bool], within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def memory_bytes() -> int:
    """What this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def hasty(lading: Lading) -> Iterator[MysqlServer]:
    """A server without patience."""
    options = MysqlOptions(
        port=0,
        handshake_timeout_s=0.3,
        idle_timeout_s=0.5,
        write_timeout_s=1,
        max_connections=3,
        close_grace_s=1,
    )
    with MysqlServer(lading, options=options) as started:
        yield started


def test_garbage_is_refused_and_others_do_not_notice(server: MysqlServer, connect: Connect) -> None:
    other = connect()
    dice = random.Random(7)
    before = len(list(FILES.iterdir()))
    for size in (1, 3, 4, 36, 100, 5000, 200_000):
        for _ in range(4):
            with socket.create_connection(("127.0.0.1", server.port)) as sock:
                sock.settimeout(10)
                try:
                    sock.sendall(dice.randbytes(size))
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
                except OSError:
                    continue
    for text in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 64):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(text)
    assert rows(other, "SELECT 1") == [(1,)]
    wait_until(lambda: server.connections == 1)
    wait_until(lambda: len(list(FILES.iterdir())) <= before)


def test_who_speaks_http_is_told_what_is_wrong(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.read()
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert code_of(client.read()) in (1156, 1835)


def test_logins_that_end_too_early_or_lie_about_their_length_are_refused(server: MysqlServer) -> None:
    whole = b"\x00\x82\x08\x00" + bytes([0, 0, 0, 1, 45]) + bytes(23) + b"root\0\x14" + bytes(20) + b"plugin\0"
    for payload in (b"\0", whole[:20], whole[:33], whole[:40], b"\xff" * 300, b"\x00\x82\x08\x00" + b"a" * 3000):
        with Raw(server.port) as client:
            client.read()
            client.write(payload)
            assert client.read()[:1] in (b"\xff", b"\xfe")
    wait_until(lambda: server.connections == 0)


@pytest.mark.parametrize("command", [*range(0x21), 0x7F, 0xFF])
def test_commands_with_nonsense_in_them_are_answered_or_ended(server: MysqlServer, command: int) -> None:
    if command in (0x01, 0x18, 0x19):  # quit; and two that have no answer
        return
    dice = random.Random(command)
    for size in (0, 1, 5, 9, 64):
        with Raw(server.port) as client:
            client.login()
            client.command(command, dice.randbytes(size))
            try:
                assert client.read() is not None
            except EOFError:
                continue


def test_packets_out_of_order_end_the_connection(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        client.write(b"\x03SELECT 1", sequence=9)
        assert code_of(client.read()) == 1156
        with pytest.raises(EOFError):
            client.read()


def test_an_empty_command_is_an_error_and_no_silence(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        client.write(b"", sequence=0)
        assert code_of(client.read()) == 1835
        assert client.query("SELECT 1")


def test_text_that_is_not_text_is_refused(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        client.command(3, b"SELECT '\xff\xfe'")
        assert code_of(client.read()) == 1835
        assert client.query("SELECT 1")


def test_half_open_connections_are_dropped(hasty: MysqlServer) -> None:
    with Raw(hasty.port) as silent, Raw(hasty.port) as slow:
        silent.read()
        slow.read()
        slow.socket.sendall(b"\x40\0")
        for client in (silent, slow):
            with pytest.raises(EOFError):
                client.read()
    wait_until(lambda: hasty.connections == 0)


def test_idle_connections_are_dropped(hasty: MysqlServer) -> None:
    with Raw(hasty.port) as client:
        client.login()
        with pytest.raises(EOFError):
            client.read()
    wait_until(lambda: hasty.connections == 0)


def test_one_connection_too_many_is_told_so(lading: Lading, connect: Connect) -> None:
    """On a server with patience: connections that a hasty one drops on a slow machine leave room."""
    with MysqlServer(lading, options=MysqlOptions(port=0, max_connections=3, close_grace_s=1)) as few:
        open_ones = [connect(few.port) for _ in range(3)]
        with pytest.raises(pymysql.OperationalError) as caught:
            connect(few.port)
        assert caught.value.args == (1040, "Too many connections")
        open_ones[0].close()
        wait_until(lambda: few.connections < 3)
        assert rows(connect(few.port), "SELECT 1") == [(1,)]


def test_a_packet_that_is_too_large_is_skipped(server: MysqlServer) -> None:
    with Raw(server.port) as client:
        client.login()
        assert code_of(client.query("SELECT '" + "x " * 10_000_000 + "'")[0]) == 1153
        assert client.query("SELECT 1")


def large_statements(letters: int) -> dict[str, str]:
    return {
        "one word": "a" * letters,
        "one string": "SELECT '" + "x" * letters + "'",
        "a string of words": "SELEKT '" + "word " * (letters // 50) + " " * (letters // 2) + "'",
        "many columns": "SELECT " + "a," * (letters // 2) + "a",
        "brackets": "(" * letters,
        "semicolons": ";" * letters,
        "quotes": "'" * letters,
        "an open string": "SELECT '" + "\\'" * (letters // 2),
        "comments": "/**/" * (letters // 4) + "FOO",
        "spaces": " " * letters + "FOO",
        "pairs": 'CREATE JOB j PROPERTIES("a"="' + "b=" * (letters // 2) + '")',
    }


LARGE = 10_000_000
JUST_TAKEN = 1024 * 1024 - 100
LARGE_STATEMENTS = [
    pytest.param(text, id=f"{letters} letters, {name}")
    for letters in (LARGE, JUST_TAKEN)
    for name, text in large_statements(letters).items()
]


@pytest.mark.parametrize("text", LARGE_STATEMENTS)
def test_a_large_statement_is_answered_while_others_are_served(
    server: MysqlServer, connect: Connect, text: str
) -> None:
    other = connect(read_timeout=20)
    slowest_s = 0.0
    stop = threading.Event()
    with Raw(server.port) as client, ThreadPoolExecutor(1) as pool:
        client.socket.settimeout(60)
        client.login()

        def ask() -> bytes:
            try:
                return client.query(text)[0]
            finally:
                stop.set()

        answer = pool.submit(ask)
        while not stop.is_set():
            began = time.monotonic()
            assert rows(other, "SELECT 1") == [(1,)]
            slowest_s = max(slowest_s, time.monotonic() - began)
        packet = answer.result()
        assert packet[:1] in (b"\xff", b"\0", b"\x01")  # an error, OK, or a row of one column
        assert len(packet) < 40_000
        assert client.query("SELECT 1")
    assert slowest_s < 10


def test_memory_falls_back_after_large_statements(server: MysqlServer) -> None:
    def ask() -> None:
        with Raw(server.port) as client:
            client.login()
            client.query("SELECT '" + "x " * (LARGE // 2))
            client.query("SELECT '" + "x " * 90_000)

    ask()
    gc.collect()
    before = memory_bytes()
    for _ in range(8):
        ask()
    wait_until(lambda: server.connections == 0)
    gc.collect()
    assert memory_bytes() - before < 60_000_000


def test_five_hundred_connections_at_once_are_all_answered(server: MysqlServer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2048:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    clients = [Raw(server.port) for _ in range(500)]
    try:
        for client in clients:
            assert client.login()[:1] == b"\0"
        assert server.connections == 500
        for client in clients:
            client.command(3, b"SHOW DATABASES")
        for client in clients:
            assert b"\x05sales" in client.answer()
    finally:
        for client in clients:
            client.socket.close()
    wait_until(lambda: server.connections == 0, within_s=20)


@pytest.fixture
def many_rows(monkeypatch: pytest.MonkeyPatch) -> int:
    """A large answer to SHOW DATABASES."""
    number = 200_000
    result = Result(columns=("n", "text"), rows=tuple((n, "x" * 200) for n in range(number)))
    execute = Session.execute

    def answer(self: Session, statement: object) -> Result:
        shown = type(statement).__name__ == "ShowDatabases"
        return result if shown else execute(self, statement)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(Session, "execute", answer)
    return number


def test_long_results_arrive_whole(connect: Connect, many_rows: int) -> None:
    cursor = connect().cursor(pymysql.cursors.SSCursor)
    cursor.execute("SHOW DATABASES")
    assert sum(1 for _ in cursor) == many_rows
    cursor.close()


def test_a_slow_reader_holds_nobody_up_and_takes_no_memory(
    server: MysqlServer, connect: Connect, many_rows: int
) -> None:
    other = connect()
    rows(other, "SELECT 1")
    before = memory_bytes()
    slow_ones: list[Raw] = []
    try:
        for _ in range(20):
            slow = Raw(
                server.port, receive_buffer=4096
            )  # A client that is silent for long before its login is dropped.
            slow_ones.append(slow)
            slow.login()
            slow.command(3, b"SHOW DATABASES")
            slow.read()
        for _ in range(50):
            began = time.monotonic()
            assert rows(other, "SELECT 1") == [(1,)]
            assert time.monotonic() - began < 10
        # 20 answers of 42 MB are under way.
        assert memory_bytes() - before < 120_000_000
    finally:
        for slow in slow_ones:
            slow.socket.close()
    wait_until(lambda: server.connections == 1)


def test_a_reader_that_takes_nothing_is_dropped(hasty: MysqlServer, many_rows: int) -> None:
    with Raw(hasty.port, receive_buffer=4096) as stuck:
        stuck.login()
        stuck.command(3, b"SHOW DATABASES")
        wait_until(lambda: hasty.connections == 1)
        wait_until(lambda: hasty.connections == 0)


def test_clients_that_vanish_leave_nothing_behind(server: MysqlServer, many_rows: int) -> None:
    before = len(list(FILES.iterdir()))
    for _ in range(20):
        with Raw(server.port) as client:
            client.login()
            client.command(3, b"SHOW DATABASES")
    wait_until(lambda: server.connections == 0)
    wait_until(lambda: len(list(FILES.iterdir())) <= before)


def test_errors_that_nobody_expected_are_told_without_their_insides(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Session, statement: object) -> Result:
        raise ZeroDivisionError("secret inside")

    connection = connect()
    monkeypatch.setattr(Session, "execute", fail)
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, "SHOW DATABASES")
    assert caught.value.args[0] == 1105
    assert "secret" not in caught.value.args[1]
    assert "secret inside" in caplog.text
    assert rows(connection, "SELECT 1") == [(1,)]


def test_closing_lets_a_running_statement_end(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(self: Session, statement: object) -> Result:
        began.set()
        go_on.wait(10)
        return Result(columns=("x",), rows=(("done",),))

    server = MysqlServer(lading, options=MysqlOptions(port=0, close_grace_s=10)).start()
    with Raw(server.port) as idle, Raw(server.port) as busy, Raw(server.port) as unknown:
        idle.login()
        busy.login()
        unknown.read()
        monkeypatch.setattr(Session, "execute", slow)
        busy.command(3, b"SHOW DATABASES")
        assert began.wait(10)
        closing = threading.Thread(target=server.close)
        closing.start()
        assert code_of(idle.read()) == 1053
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", server.port)).close()
        go_on.set()
        assert b"\x04done" in busy.answer()
        closing.join(15)
        assert not closing.is_alive()
    server.close()


def test_a_port_that_is_taken_is_an_error_and_no_silence(lading: Lading, server: MysqlServer) -> None:
    with pytest.raises(ConfigError, match="cannot be served"):
        MysqlServer(lading, options=MysqlOptions(port=server.port)).start()
