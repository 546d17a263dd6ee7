"""One user, one address or one who says nothing takes no more than a share."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.limits import sqlite_sandbox
from lading.service.limits.sqlite_sandbox import Bounds
from tests.mysql.conftest import Connect, rows
from tests.mysql.raw import Raw, code_of
from tests.mysql.test_doors import BATTERY, HORSE, Book
from tests.mysql.test_endless import COUNTING
from tests.mysql.test_robust import wait_until

ENDLESS = f"{COUNTING}, information_schema.engines"
SILENT = 3


@pytest.fixture
def narrow(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> Iterator[MysqlServer]:
    monkeypatch.setattr(sqlite_sandbox, "BOUNDS", Bounds(seconds=120))
    options = MysqlOptions(port=0, workers=2, workers_each=1, close_grace_s=0.5)
    with MysqlServer(lading, authenticator=Book(), options=options) as started:
        yield started


@pytest.fixture
def small(lading: Lading) -> Iterator[MysqlServer]:
    options = MysqlOptions(port=0, max_connections=SILENT, handshake_timeout_s=120, close_grace_s=0.5)
    with MysqlServer(lading, options=options) as started:
        yield started


def test_statements_of_one_user_leave_room_for_those_of_another(narrow: MysqlServer, connect: Connect) -> None:
    greedy = [Raw(narrow.port) for _ in range(4)]
    for client in greedy:
        client.login(user="ann", password=HORSE)
        client.command(3, ENDLESS.encode())
    watcher = connect(narrow.port)
    wait_until(lambda: sum(row[4] == "Query" for row in rows(watcher, "SHOW PROCESSLIST")) > len(greedy))
    other = connect(narrow.port, user="bob", password=BATTERY, read_timeout=30)
    assert rows(other, "SELECT count(*) > 0 FROM information_schema.engines") == [(1,)]
    for client in greedy:
        client.socket.close()


def test_a_statement_that_waits_for_its_turn_can_be_killed(narrow: MysqlServer, connect: Connect) -> None:
    with Raw(narrow.port) as first, Raw(narrow.port) as second:
        for client in (first, second):
            client.login(user="ann", password=HORSE)
            client.command(3, ENDLESS.encode())
        root = connect(narrow.port)
        wait_until(lambda: sum(row[4] == "Query" for row in rows(root, "SHOW PROCESSLIST")) > 2)
        numbers = sorted(row[0] for row in rows(root, "SHOW PROCESSLIST") if row[1] == "ann")
        rows(root, f"KILL QUERY {numbers[1]}")
        assert code_of(second.read()) == 1317
        rows(root, f"KILL QUERY {numbers[0]}")
        assert code_of(first.read()) == 1317
        for client in (first, second):
            assert client.query("SELECT count(*) FROM information_schema.engines")[0] == b"\x01"


def test_who_says_nothing_makes_room_and_is_told(small: MysqlServer, connect: Connect) -> None:
    silent = [Raw(small.port) for _ in range(SILENT)]
    for client in silent:
        client.read()
    assert rows(connect(small.port), "SELECT 1") == [(1,)]
    assert code_of(silent[0].read()) == 1040
    with pytest.raises(EOFError):
        silent[0].read()
    for client in silent:
        client.socket.close()
    wait_until(lambda: small.connections == 1)


def test_room_is_made_by_the_address_that_has_most(small: MysqlServer, connect: Connect) -> None:
    with socket.create_connection(("127.0.0.1", small.port), 10, source_address=("127.0.0.2", 0)) as elsewhere:
        assert elsewhere.recv(4)
        crowd = [Raw(small.port) for _ in range(SILENT - 1)]
        for client in crowd:
            client.read()
        assert rows(connect(small.port), "SELECT 1") == [(1,)]
        assert code_of(crowd[0].read()) == 1040
        elsewhere.setblocking(False)
        assert elsewhere.recv(65536)[:1] != b"\xff"  # The rest of the greeting, and no error after it.
        with pytest.raises(BlockingIOError):
            elsewhere.recv(65536)
        for client in crowd:
            client.socket.close()


class Late(Book):
    """Strangers have been wrong so often that they wait for long."""

    def delay_s(self, user: str, peer: str) -> float | None:
        return 0.0 if user == "ann" else 300.0


def test_who_waits_after_a_wrong_password_keeps_nobody_out(lading: Lading, connect: Connect) -> None:
    options = MysqlOptions(port=0, login_workers=1, close_grace_s=0.5)
    with MysqlServer(lading, authenticator=Late(), options=options) as server:
        strangers = [Raw(server.port) for _ in range(4)]

        def guess(client: Raw, number: int) -> None:
            with pytest.raises((EOFError, OSError)):
                client.login(user=f"stranger{number}", password="wrong")

        guesses = [threading.Thread(target=guess, args=(client, n)) for n, client in enumerate(strangers)]
        for one in guesses:
            one.start()
        wait_until(lambda: server.connections == len(strangers))
        assert rows(connect(server.port, user="ann", password=HORSE, connect_timeout=10), "SELECT 1") == [(1,)]
    for one in guesses:
        one.join(20)
    for client in strangers:
        client.socket.close()
