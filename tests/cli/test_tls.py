"""`lading serve` with TLS, without Spark: who is refused, and certificates that are replaced while it runs."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pymysql
import pytest

from lading.service.facade import Lading
from lading.service.security.users import ROOT
from lading.testing.marked import secret
from tests.mysql.client import find_mysql
from tests.mysql.conftest import rows
from tests.secret_leaks.watch import WATCH
from tests.support.certificates import Certificate, self_signed

HORSE = secret("correct horse")
SERVE = [
    sys.executable,
    "-c",
    "from lading.cli.main import main; main()",
    "serve",
    "--init",
    "--mysql-port=0",
    "--http-port=0",
]


@dataclass(slots=True)
class Served:
    signed: Certificate
    mysql: int = 0
    http: int = 0
    said: list[str] = field(default_factory=list)
    has_said: threading.Condition = field(default_factory=threading.Condition)

    def listen(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            with self.has_said:
                self.said.append(line)
                self.has_said.notify_all()

    def wait_for(self, words: str) -> str:
        with self.has_said:
            assert self.has_said.wait_for(lambda: any(words in line for line in self.said), 60), self.said
            return next(line for line in self.said if words in line)

    def connect(self, host: str = "127.0.0.1", trusted: Path | None = None) -> pymysql.connections.Connection[Any]:
        trust = ssl.create_default_context(cafile=str(trusted)) if trusted else None
        if trust is not None:
            trust.check_hostname = False
        return pymysql.connect(
            host=host, port=self.mysql, user="root", password=HORSE, ssl=trust, ssl_disabled=trusted is None
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("tls")
    with Lading(folder / "home") as lading:
        lading.access.set_password("root", HORSE, by=ROOT)
    signed = self_signed(folder)
    made = Served(signed)
    options = ["--home", str(folder / "home"), "--host=0.0.0.0"]
    options += [f"--tls-cert={signed.certificate}", f"--tls-key={signed.key}"]
    with subprocess.Popen([*SERVE, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        listener = threading.Thread(target=made.listen, args=(process,))
        listener.start()
        ready = made.wait_for("Lading is ready")
        made.mysql = int(ready.split("MySQL on 0.0.0.0:")[1].split(",")[0])
        made.http = int(ready.split("HTTP on 0.0.0.0:")[1].split()[0])
        yield made
        process.terminate()
        listener.join(60)
        WATCH.look("".join(made.said), "log of the service")
        assert process.wait(60) == 0, made.said


@pytest.fixture(scope="module")
def elsewhere() -> str:
    """An address of this machine that is not loopback; nothing leaves the machine on the way to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # Sends nothing: it chooses the address to send from.
            found = str(asking.getsockname()[0])
        except OSError:
            found = "127.0.0.1"
    if found.startswith("127."):
        pytest.skip("NOT PROVED, nobody came from elsewhere: this machine has no other address than loopback")
    return found


def test_from_elsewhere_nobody_comes_in_without_tls(served: Served, elsewhere: str) -> None:
    with pytest.raises(pymysql.MySQLError) as caught:
        served.connect(elsewhere)
    assert caught.value.args[0] == 3159
    assert "asks for TLS" in caught.value.args[1]
    with served.connect(elsewhere, served.signed.certificate) as link:
        assert rows(link, "SELECT USER()") == [(f"root@{elsewhere}",)]


def test_the_cipher_is_the_real_one(served: Served) -> None:
    with served.connect() as plain:
        assert rows(plain, "SHOW STATUS LIKE 'Ssl_%'") == [("Ssl_cipher", ""), ("Ssl_version", "")]
    with served.connect(trusted=served.signed.certificate) as link:
        used = link._sock
        assert isinstance(used, ssl.SSLSocket)
        cipher, version = (used.cipher() or ("?",))[0], used.version()
        assert rows(link, "SHOW SESSION STATUS LIKE 'Ssl_%'") == [("Ssl_cipher", cipher), ("Ssl_version", version)]
        asked = "SELECT variable_value FROM performance_schema.session_status WHERE variable_name = 'Ssl_cipher'"
        assert rows(link, asked) == [(cipher,)]
    command = [find_mysql(), "--no-defaults", "-h127.0.0.1", f"-P{served.mysql}", "-uroot", f"-p{HORSE}", "--ssl"]
    shown = subprocess.run([*command, "-e", "status"], capture_output=True, text=True, timeout=60, check=False)
    assert f"Cipher in use is {cipher}" in shown.stdout, shown.stderr


def test_http_is_not_spoken_without_tls(served: Served) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{served.http}/healthz")


def shown_by_http(served: Served) -> bytes:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", served.http), timeout=30))


def shown_by_mysql(served: Served, trusted: Path) -> bytes:
    with served.connect(trusted=trusted) as link:
        used = link._sock
        assert isinstance(used, ssl.SSLSocket)
        return used.getpeercert(binary_form=True) or b""


def test_a_certificate_that_is_replaced_is_used_without_a_restart(served: Served, tmp_path: Path) -> None:
    def der(path: Path) -> bytes:
        return ssl.PEM_cert_to_DER_cert(path.read_text())

    first = der(served.signed.certificate)
    assert shown_by_http(served) == shown_by_mysql(served, served.signed.certificate) == first
    with served.connect(trusted=served.signed.certificate) as open_before:
        renewed = self_signed(tmp_path)
        # A half of the new pair does not fit: the old one stays in use until the other half is there.
        old = tmp_path / "old.pem"
        shutil.copy(served.signed.certificate, old)
        shutil.copy(renewed.certificate, served.signed.certificate)
        assert shown_by_http(served) == shown_by_mysql(served, old) == first
        assert "ERROR" in served.wait_for("cannot be used")
        shutil.copy(renewed.key, served.signed.key)
        assert shown_by_http(served) == shown_by_mysql(served, renewed.certificate) == der(renewed.certificate) != first
        served.wait_for("was read again")
        served.signed.key.unlink()
        assert shown_by_http(served) == der(renewed.certificate)
        assert rows(open_before, "SELECT 1") == [(1,)]


def test_tls_cannot_be_asked_for_without_a_certificate(tmp_path: Path) -> None:
    command = [*SERVE, "--home", str(tmp_path / "home"), "--require-tls"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "--require-tls needs a certificate" in done.stderr
    assert not (tmp_path / "home").exists()
