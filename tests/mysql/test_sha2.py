"""caching_sha2_password, with the clients that people use."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pymysql
import pytest

from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.certificates import CertificateFiles
from lading.service.security.mysql_users import MysqlUsers
from lading.service.security.users import ROOT
from lading.testing.marked import secret
from tests.mysql.client import find_mysql
from tests.mysql.conftest import Connect, rows
from tests.mysql.connector import log_in
from tests.mysql.raw import CAPABILITIES, Raw, code_of
from tests.mysql.test_jdbc import DRIVERS
from tests.support.certificates import self_signed
from tests.support.maven import JarsMissingError, find_jars

HORSE, BATTERY = secret("correct horse"), secret("battery")
SHA2 = "caching_sha2_password"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lading]:
    with Lading(tmp_path_factory.mktemp("sha2") / "home") as lading:
        lading.access.create_user("ann", HORSE, by=ROOT)
        lading.access.set_password("root", BATTERY, by=ROOT)
        yield lading


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("certificate")).certificate


def start(home: Lading, certificate: Path | None = None) -> MysqlServer:
    tls = CertificateFiles(certificate, certificate.with_name("key.pem")) if certificate else None
    options = MysqlOptions(port=0, close_grace_s=2, tls=tls)
    return MysqlServer(home, authenticator=MysqlUsers(home.access), options=options)


@pytest.fixture(scope="module")
def plain(home: Lading) -> Iterator[int]:
    with start(home) as server:
        yield server.port


@pytest.fixture(scope="module")
def encrypted(home: Lading, certificate: Path) -> Iterator[int]:
    with start(home, certificate) as server:
        yield server.port


@pytest.fixture
def old_user(home: Lading) -> Iterator[str]:
    """A user as an older Lading kept them: there is the argon2 hash alone."""
    home.access.create_user("old", HORSE, by=ROOT)
    entry = home.store.find_user("old")
    assert entry is not None
    assert entry.sha2_verifier
    home.store.save_user(replace(entry, sha2_verifier="", native_verifier=""))
    yield "old"
    home.access.drop_user("old", by=ROOT)


@pytest.mark.parametrize("is_pure", [True, False], ids=["python", "libmysqlclient"])
def test_clients_of_mysql_9_come_in(
    plain: int, encrypted: int, old_user: str, certificate: Path, is_pure: bool
) -> None:
    """They know no mysql_native_password any more."""
    bare: dict[str, Any] = {"port": plain, "ssl_disabled": True, "use_pure": is_pure, "password": HORSE}
    tls: dict[str, Any] = {"port": encrypted, "ssl_ca": str(certificate), "use_pure": is_pure, "password": HORSE}
    told = log_in(
        {**bare, "user": "ann"},
        {**bare, "user": "ann", "becomes": ["root", BATTERY]},
        {**tls, "user": "ann"},
        {**tls, "user": old_user},
        {**tls, "user": "ann", "password": "wrong"},
    )
    assert told == ["ann@127.0.0.1", "root@127.0.0.1", "ann@127.0.0.1", "old@127.0.0.1", "1045"]


def test_a_password_without_tls_comes_encrypted_and_is_known_from_then_on(
    plain: int, home: Lading, old_user: str, connect: Connect
) -> None:
    assert home.access.sha2_verifier(old_user) is None
    with pytest.raises(pymysql.OperationalError) as caught:
        connect(plain, user=old_user, password="wrong")
    assert caught.value.args[0] == 1045
    assert rows(connect(plain, user=old_user, password=HORSE), "SELECT USER()") == [("old@127.0.0.1",)]
    assert home.access.sha2_verifier(old_user) is not None
    with Raw(plain) as client:
        assert quick(client, old_user, HORSE) == b"\x01\x03"
        assert client.read()[:1] == b"\0"


@pytest.mark.parametrize("plugin", ["mysql_native_password", SHA2])
def test_mariadbs_client_comes_in_by_either_way(plain: int, encrypted: int, plugin: str) -> None:
    for port, tls in ((plain, "--skip-ssl"), (encrypted, "--ssl")):
        command = [find_mysql(), "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uann", f"-p{HORSE}"]
        command += [f"--default-auth={plugin}", tls, "-N", "-e", "SELECT USER()"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "ann@127.0.0.1\n", done.stderr
        command[command.index(f"-p{HORSE}")] = "-pwrong"
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "ERROR 1045 (28000): Access denied for user 'ann'@'127.0.0.1' (using password: YES)" in done.stderr


@pytest.mark.java
def test_the_drivers_of_java_come_in(plain: int, encrypted: int, certificate: Path, tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("NOT PROVED, no JDBC driver was tried: there is no JDK")
    try:
        jars = find_jars("jdbc-1", DRIVERS)
    except JarsMissingError as missing:
        pytest.skip(f"NOT PROVED, no JDBC driver was tried: {missing}")
    login = f"user=ann&password={HORSE}"
    urls = (
        f"jdbc:mysql://127.0.0.1:{plain}/?{login}&sslMode=DISABLED",
        f"jdbc:mysql://127.0.0.1:{encrypted}/?{login}&sslMode=REQUIRED",
        f"jdbc:mariadb://127.0.0.1:{plain}/?{login}",
        f"jdbc:mariadb://127.0.0.1:{encrypted}/?{login}&sslMode=verify-ca&serverSslCert={certificate}",
    )
    source = Path(__file__).parent / "jdbc" / "WhoAmI.java"
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(source), *urls]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["ann@127.0.0.1"] * 4, done.stderr


def quick(client: Raw, user: str, password: str) -> bytes:
    """The answer to the quick proof."""
    greeting = client.read()
    assert greeting.rstrip(b"\0").endswith(SHA2.encode())
    end = greeting.index(b"\0", 1)
    nonce = greeting[end + 5 : end + 13] + greeting[end + 32 : end + 44]
    once = sha256(password.encode()).digest()
    mask = sha256(sha256(once).digest() + nonce).digest()
    proof = bytes(left ^ right for left, right in zip(once, mask, strict=True))
    head = CAPABILITIES.to_bytes(4, "little") + bytes([0, 0, 0, 1, 45]) + bytes(23)
    client.write(head + user.encode() + b"\0" + bytes([len(proof)]) + proof + SHA2.encode() + b"\0")
    return client.read()


def test_who_guesses_and_hangs_up_is_counted(plain: int, home: Lading) -> None:
    home.access.throttle.forgive("ann", "127.0.0.1")
    with Raw(plain) as client:
        assert quick(client, "ann", "guess") == b"\x01\x04"
        assert home.access.throttle.reserve("ann", "127.0.0.1") > 0  # Already now: others may be open.
    home.access.throttle.forgive("ann", "127.0.0.1")


def test_nobody_and_somebody_are_answered_alike(plain: int, home: Lading) -> None:
    home.access.create_user("token_only", by=ROOT)
    for user in ("nobody", "ann", "token_only"):
        with Raw(plain) as client:
            assert quick(client, user, "guess") == b"\x01\x04"
            client.write(b"guess\0")  # In the clear, without TLS: not looked at.
            assert code_of(client.read()) == 1045
        home.access.throttle.forgive(user, "127.0.0.1")


def test_a_password_in_the_clear_is_not_taken_without_tls(plain: int, encrypted: int, old_user: str) -> None:
    with Raw(plain) as client:
        assert quick(client, old_user, "guess") == b"\x01\x04"
        client.write(HORSE.encode() + b"\0")
        assert code_of(client.read()) == 1045


def test_what_is_stored_does_not_open_the_door(home: Lading, plain: int) -> None:
    entry = home.store.find_user("ann")
    kept = home.access.sha2_verifier("ann")
    assert entry is not None
    assert kept is not None
    assert kept == sha256(sha256(HORSE.encode()).digest()).digest()
    assert kept.hex() not in entry.sha2_verifier  # It is sealed.
    with Raw(plain) as client:
        assert quick(client, "ann", kept.hex()) == b"\x01\x04"
    home.access.throttle.forgive("ann", "127.0.0.1")


def test_a_new_password_ends_the_old_one(home: Lading, encrypted: int, connect: Connect, certificate: Path) -> None:
    trust = ssl.create_default_context(cafile=str(certificate))
    home.access.create_user("eve", HORSE, by=ROOT)
    assert connect(encrypted, user="eve", password=HORSE, ssl=trust)
    home.access.set_password("eve", BATTERY, by=ROOT)
    with pytest.raises(pymysql.OperationalError):
        connect(encrypted, user="eve", password=HORSE, ssl=trust)
    home.access.throttle.forgive("eve", "127.0.0.1")
    assert connect(encrypted, user="eve", password=BATTERY, ssl=trust)
