"""`lading serve` with names and proxies of its own, without Spark."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.hush.watch import WATCH

SERVE = [
    sys.executable,
    "-c",
    "from lading.service.facade import Lading; Lading.warm_up = lambda self: None; "
    "from lading.cli.main import main; main()",
    "serve",
    "--mysql-port=0",
    "--http-port=0",
]
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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
                yield f"http://127.0.0.1:{line.split('HTTP on 127.0.0.1:')[1].split()[0]}"
                break
        process.terminate()
        said += process.stdout.read()
        WATCH.look(said, "log of the service")
        assert process.wait(60) == 0, said


@pytest.mark.parametrize("name", ["lading.example", "other.example", "localhost"])
def test_configured_names_are_answered(url: str, name: str) -> None:
    asked = httpx.get(f"{url}/api/jobs", headers={"host": name}, auth=("root", ""))
    assert asked.json()["jobs"] == []
    # Under a name that another site could have, the console still asks who is there.
    shown = httpx.get(url, headers={"host": name})
    assert shown.status_code == (200 if name == "localhost" else 303)


def test_other_names_get_neither_api_nor_console_nor_socket(url: str) -> None:
    for path in ("/", "/login", "/api/jobs", "/metrics"):
        refused = httpx.get(url + path, headers={"host": "evil.example"}, auth=("root", ""))
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


def test_through_a_proxy_the_console_asks_for_a_password(url: str) -> None:
    assert httpx.get(url).status_code == 200
    assert httpx.get(url, headers={"x-forwarded-for": "10.0.0.5"}).status_code == 303


@pytest.mark.parametrize("option", [("--allow-host", "https://lading.example"), ("--trust-proxy", "*")])
def test_what_is_neither_name_nor_address_is_refused(tmp_path: Path, option: tuple[str, str]) -> None:
    home = tmp_path / "home"
    command = [*SERVE, "--home", str(home), *option]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode != 0
    assert option[0] in refused.stderr
    assert not home.exists()
