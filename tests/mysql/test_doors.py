"""Passwords, TLS, and who is let in."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from lading.mysql.protocol.auth import LocalRoot, is_loopback, is_proof, verifier
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.certificates import CertificateFiles
from lading.service.security.passwords import sha2_digest
from lading.testing.marked import secret
from tests.mysql.client import run_mysql
from tests.mysql.conftest import Connect, rows
from tests.mysql.raw import Raw, code_of, scramble
from tests.support.certificates import self_signed

HORSE, BATTERY = secret("correct horse"), secret("battery")

PASSWORDS = {"root": "", "ann": HORSE, "bob": BATTERY}
DELAY_S = 0.4


class Book:
    """Users of a test."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.successes: list[str] = []
        self.locked: set[str] = set()

    def native_verifier(self, user: str) -> bytes | None:
        return verifier(PASSWORDS[user]) if user in PASSWORDS else None

    def is_from_directory(self, user: str) -> bool:
        return False

    def sha2_verifier(self, user: str) -> bytes | None:
        return sha2_digest(PASSWORDS[user]) if PASSWORDS.get(user) else b"" if user == "root" else None

    def check_password(self, user: str, password: str, peer: str) -> bool:
        return PASSWORDS.get(user) == password

    def may_connect(self, user: str, peer: str) -> bool:
        return True

    def delay_s(self, user: str, peer: str) -> float | None:
        return None if user in self.locked else 0.0

    def succeeded(self, user: str, peer: str) -> None:
        self.successes.append(f"{user}@{peer}")

    def failed(self, user: str, peer: str) -> float:
        self.failures.append(f"{user}@{peer}")
        return DELAY_S

    def sees(self, user: str, database: str, table: str) -> bool:
        return user != "bob" or (database == "sales" and table in ("", "clicks"))

    def is_admin(self, user: str) -> bool:
        return user == "root"


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def tls(tmp_path: Path) -> tuple[Path, CertificateFiles]:
    """A certificate of 127.0.0.1 that signs itself."""
    signed = self_signed(tmp_path)
    return signed.certificate, CertificateFiles(signed.certificate, signed.key)


@pytest.fixture
def guarded(lading: Lading, book: Book, tls: tuple[Path, CertificateFiles]) -> Iterator[MysqlServer]:
    options = MysqlOptions(port=0, tls=tls[1], close_grace_s=2)
    with MysqlServer(lading, authenticator=book, options=options) as started:
        yield started


def test_the_right_password_opens_and_the_user_is_known(guarded: MysqlServer, book: Book, connect: Connect) -> None:
    connection = connect(guarded.port, user="ann", password=HORSE)
    assert rows(connection, "SELECT USER()") == [("ann@127.0.0.1",)]
    assert book.successes == ["ann@127.0.0.1"]


@pytest.mark.parametrize(
    ("user", "password"), [("ann", "wrong"), ("ann", ""), ("nobody", "x"), ("root", "x"), ("", "")]
)
def test_a_wrong_password_is_refused_late(
    guarded: MysqlServer, book: Book, connect: Connect, user: str, password: str
) -> None:
    began = time.monotonic()
    with pytest.raises(pymysql.OperationalError) as caught:
        connect(guarded.port, user=user or "nobody2", password=password)
    assert caught.value.args[0] == 1045
    assert time.monotonic() - began >= DELAY_S
    assert len(book.failures) == 1
    assert not book.successes


def test_nobody_gets_in_by_ignoring_the_refusal(guarded: MysqlServer) -> None:
    with Raw(guarded.port) as client:
        assert code_of(client.login(user="ann", password="wrong")) == 1045
        with pytest.raises((EOFError, OSError)):
            client.query("SHOW DATABASES")


def test_while_one_waits_for_a_refusal_others_are_served(guarded: MysqlServer, connect: Connect) -> None:
    """A busy machine may be slow once; a client that was made to wait would be slow each time."""
    took = []
    for _ in range(5):
        with Raw(guarded.port) as client:
            client.read()
            began = time.monotonic()
            client.write(b"\x00\x82\x08\x00" + bytes([0, 0, 0, 1, 45]) + bytes(23) + b"ann\0\1x\0")
            assert rows(connect(guarded.port), "SELECT 1") == [(1,)]
            took.append(time.monotonic() - began)
            assert code_of(client.read()) == 1045
        if took[-1] < DELAY_S:
            return
    pytest.fail(f"others waited: {took}")


def test_a_client_with_another_method_is_asked_again(guarded: MysqlServer) -> None:
    with Raw(guarded.port) as client:
        client.read()
        client.write(b"\x00\x82\x08\x00" + bytes([0, 0, 0, 1, 45]) + bytes(23) + b"ann\0\0client_ed25519\0")
        assert client.read().startswith(b"\xfecaching_sha2_password\0")


def test_an_old_client_that_waits_to_be_asked_is_asked_in_its_way(guarded: MysqlServer) -> None:
    with Raw(guarded.port) as client:
        client.read()
        client.write(b"\x00\x82\x08\x00" + bytes([0, 0, 0, 1, 45]) + bytes(23) + b"ann\0\0mysql_native_password\0")
        asked = client.read()
        assert asked.startswith(b"\xfemysql_native_password\0")
        client.write(scramble(HORSE, asked[1:].partition(b"\0")[2].rstrip(b"\0")))
        assert client.read()[:1] == b"\0"


def test_a_locked_user_is_refused_with_the_right_password(guarded: MysqlServer, book: Book, connect: Connect) -> None:
    book.locked.add("ann")
    with pytest.raises(pymysql.OperationalError, match="1045"):
        connect(guarded.port, user="ann", password=HORSE)


def test_tls_is_used_when_it_is_asked_for(
    guarded: MysqlServer, tls: tuple[Path, CertificateFiles], connect: Connect
) -> None:
    context = ssl.create_default_context(cafile=str(tls[0]))
    context.check_hostname = False
    for _ in range(5):
        connection = connect(guarded.port, user="ann", password=HORSE, ssl=context)
        assert rows(connection, "SHOW VARIABLES LIKE 'have_ssl'") == [("have_ssl", "YES")]
    done = run_mysql(guarded.port, "status", "--ssl", f"-p{HORSE}", user="ann")
    assert "Cipher in use is TLS" in done.stdout, done.stderr


def test_tls_can_be_asked_of_everybody(lading: Lading, book: Book, tls: tuple[Path, CertificateFiles]) -> None:
    options = MysqlOptions(port=0, tls=tls[1], require_tls=True, close_grace_s=2)
    with MysqlServer(lading, authenticator=book, options=options) as server:
        with Raw(server.port) as client:
            assert code_of(client.login(user="ann", password=HORSE)) == 3159
        assert (book.failures, book.successes) == ([], [])  # Nothing was looked at.
        trust = ssl.create_default_context(cafile=str(tls[0]))
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="ann", password=HORSE, ssl=trust)
        with link:
            assert rows(link, "SELECT @@require_secure_transport") == [("ON",)]


def test_a_clear_password_is_taken_over_tls_only(
    guarded: MysqlServer, tls: tuple[Path, CertificateFiles], book: Book
) -> None:
    with Raw(guarded.port) as client:
        client.read()
        head = b"\x00\x82\x08\x00" + bytes([0, 0, 0, 1, 45]) + bytes(23)
        client.write(head + b"ann\0" + bytes([len(HORSE) + 1]) + HORSE.encode() + b"\0mysql_clear_password\0")
        answer = client.read()
        assert answer[:1] == b"\xfe"  # not looked at: it is asked for in a way that does not show it
    context = ssl.create_default_context(cafile=str(tls[0]))
    context.check_hostname = False
    with Raw(guarded.port) as client:
        client.read()
        head = b"\x00\x8a\x08\x00" + bytes([0, 0, 0, 1, 45]) + bytes(23)
        client.write(head)
        client.socket = context.wrap_socket(client.socket)
        client.write(head + b"ann\0" + bytes([len(HORSE) + 1]) + HORSE.encode() + b"\0mysql_clear_password\0")
        assert client.read()[:1] == b"\0"


def test_who_fails_to_become_somebody_else_is_nobody(guarded: MysqlServer) -> None:
    def change(client: Raw, user: str, password: str) -> bytes:
        client.command(0x11, user.encode() + b"\0\0\0" + b"\x2d\0mysql_native_password\0")
        asked = client.read()
        assert asked[:1] == b"\xfe"
        client.write(scramble(password, asked[1:].partition(b"\0")[2].rstrip(b"\0")))
        return client.read()

    with Raw(guarded.port) as client:
        client.login()
        assert change(client, "ann", HORSE)[:1] == b"\0"
        assert b"ann@" in client.query("SELECT USER()")[-1]
        assert code_of(change(client, "bob", "wrong")) == 1045
        with pytest.raises((EOFError, OSError)):
            client.query("SELECT 1")


def test_tables_that_a_user_may_not_know_of_are_not_told(guarded: MysqlServer, connect: Connect) -> None:
    connection = connect(guarded.port, user="bob", password=BATTERY)
    told = "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
    assert rows(connection, told) == [("clicks",)]
    assert rows(connection, "SHOW FULL TABLES FROM sales") == [("clicks", "BASE TABLE")]
    for text in ("SHOW CREATE TABLE sales.orders", "SHOW FULL COLUMNS FROM sales.orders", "DESCRIBE sales.orders"):
        with pytest.raises(pymysql.ProgrammingError) as caught:
            rows(connection, text)
        assert caught.value.args[0] == 1146
        assert "Unknown table 'orders' in" in caught.value.args[1]


def test_only_admins_end_the_connections_of_others(guarded: MysqlServer, connect: Connect) -> None:
    ann = connect(guarded.port, user="ann", password=HORSE)
    bob = connect(guarded.port, user="bob", password=BATTERY)
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(bob, f"KILL {ann.thread_id()}")
    assert caught.value.args[0] == 1095
    assert {row[1] for row in rows(bob, "SHOW PROCESSLIST")} == {"bob"}
    rows(connect(guarded.port), f"KILL {ann.thread_id()}")


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "127.8.9.1", "::ffff:127.0.0.1"])
def test_root_without_a_password_may_come_from_this_machine(peer: str) -> None:
    assert LocalRoot().may_connect("root", peer)


@pytest.mark.parametrize("peer", ["10.0.0.1", "::", "fe80::1%eth0", "::ffff:10.0.0.1", "", "localhost.example"])
def test_root_without_a_password_may_not_come_from_elsewhere(peer: str) -> None:
    assert not is_loopback(peer)
    assert not LocalRoot().may_connect("root", peer)


def test_a_proof_fits_one_password_and_one_nonce() -> None:
    nonce = b"a" * 20
    answer: Any = scramble("secret", nonce)
    assert is_proof(answer, nonce, verifier("secret"))
    assert not is_proof(answer, b"b" * 20, verifier("secret"))
    assert not is_proof(answer, nonce, verifier("other"))
    assert not is_proof(b"", nonce, verifier("secret"))
    assert not is_proof(answer, nonce, b"")
    assert not is_proof(answer[:10], nonce, verifier("secret"))
    assert is_proof(b"", nonce, b"")
