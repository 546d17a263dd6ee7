"""`lading serve` with names and proxies of its own, without Spark."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.logins import read_root_login
from tests.mysql.client import run_mysql
from tests.secret_leaks.watch import WATCH

pytestmark = pytest.mark.long

SERVE = [
    sys.executable,
    "-c",
    "from lading.cli.main import main; main()",
    "serve",
    "--init",
    "--mysql-port=0",
    "--http-port=0",
]
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A service that runs."""

    url: str
    home: Path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("names") / "home"
    names = ["--allow-host", "lading.example", "--allow-host", "other.example:8443"]
    with subprocess.Popen(
        [*SERVE, "--home", str(home), *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Lading is ready"):
                port = line.split("HTTP on 127.0.0.1:")[1].split()[0]
                yield Serving(url=f"http://127.0.0.1:{port}", home=home)
                break
        process.terminate()
        said += process.stdout.read()
        WATCH.look(said, "log of the service")
        assert process.wait(60) == 0, said
        # What is no terminal is a log: it learns where the password is, and not what it is.
        assert f"the password of root is in {home}/root.password" in said
        assert read_root_login(home)[1] not in said


@pytest.mark.parametrize("name", ["lading.example", "other.example", "localhost"])
def test_configured_names_are_answered(service: Serving, name: str) -> None:
    asked = httpx.get(f"{service.url}/api/jobs", headers={"host": name}, auth=read_root_login(service.home))
    assert asked.json()["jobs"] == []
    # The console asks who is there under every name, also of this machine.
    assert httpx.get(service.url, headers={"host": name}).status_code == 303


def test_other_names_get_neither_api_nor_console_nor_socket(service: Serving) -> None:
    url = service.url
    for path in ("/", "/login", "/api/jobs", "/metrics"):
        refused = httpx.get(url + path, headers={"host": "evil.example"}, auth=read_root_login(service.home))
        assert (refused.status_code, refused.json()["error"]["code"]) == (421, "WrongHost")
    here = url.replace("http", "ws", 1)
    with connect(here + SOCKET, proxy=None) as opened:
        assert str(opened.recv(timeout=30)).startswith("0{")
    port = int(url.rsplit(":", 1)[1])
    with (
        closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as link,
        pytest.raises(InvalidStatus) as told,
        connect(f"ws://evil.example:{port}{SOCKET}", sock=link),
    ):
        pass
    assert told.value.response.status_code == 403


def test_nobody_is_root_by_being_on_the_machine(service: Serving) -> None:
    """No password, an empty one, a wrong one: over HTTP, in the console and over MySQL."""
    mysql_port = json.loads((service.home / "service.json").read_text())["mysql_port"]
    assert httpx.get(f"{service.url}/api/jobs").status_code == 401
    for password in ("", "root"):
        refused = httpx.get(f"{service.url}/api/jobs", auth=("root", password))
        assert refused.status_code == 401
        assert "root.password" in refused.json()["error"]["todo"]
        denied = run_mysql(mysql_port, "SELECT 1", f"--password={password}")
        assert denied.returncode != 0
        assert "Access denied for user 'root'@'127.0.0.1'" in denied.stderr
        assert "root.password of the service's home folder" in denied.stderr
    for headers in ({}, {"x-forwarded-for": "127.0.0.1"}):
        assert httpx.get(service.url, headers=headers).status_code == 303
    told = run_mysql(mysql_port, "SELECT CURRENT_USER()", f"--password={read_root_login(service.home)[1]}")
    assert "root@%" in told.stdout, told.stderr


@pytest.mark.parametrize("option", [("--allow-host", "https://lading.example"), ("--trust-proxy", "*")])
def test_what_is_neither_name_nor_address_is_refused(tmp_path: Path, option: tuple[str, str]) -> None:
    home = tmp_path / "home"
    command = [*SERVE, "--home", str(home), *option]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode != 0
    assert option[0] in refused.stderr
    assert not home.exists()
