"""A name of another site that points to this machine opens nothing."""

from __future__ import annotations

import base64

import pytest
from fastapi import FastAPI, WebSocket
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from lading.errors import ConfigError
from lading.http.app import create_app
from lading.http.hosts import Hosts
from lading.http.middleware import DoorRules
from tests.http.rig import JSON, Rig
from tests.logins import ROOT_LOGIN

ROOT = {"authorization": "Basic " + base64.b64encode(":".join(ROOT_LOGIN).encode()).decode()}


def open_app(rig: Rig) -> FastAPI:
    """As `lading serve` makes it at first."""
    return create_app(rig.lading, access=rig.access())


def test_a_rebound_name_is_not_root(loaded: Rig) -> None:
    client = TestClient(open_app(loaded), base_url="http://evil.example:8030", client=("127.0.0.1", 50000))
    same_site = ROOT | {"origin": "http://evil.example:8030"}
    refused = client.post("/api/sql", json={"sql": "SHOW USERS"}, headers=same_site)
    assert (refused.status_code, refused.json()["error"]["code"]) == (421, "WrongHost")
    assert "--allow-host" in refused.json()["error"]["todo"]
    here = client.post("/api/sql", json={"sql": "SHOW USERS"}, headers=ROOT | {"host": "127.0.0.1:8030"})
    assert here.status_code == 200, here.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/", "/login", "/_nicegui_ws/socket.io/", "/api/jobs", "/api/openapi.json", "/metrics", "/readyz"]
)
def test_every_path_is_only_for_those_who_know_the_name(loaded: Rig, method: str, path: str) -> None:
    app = open_app(loaded)
    app.mount("/", lambda *_: pytest.fail("Somebody got in."))
    client = TestClient(app, base_url="http://evil.example")
    assert client.request(method, path, headers=ROOT | JSON).status_code == 421


def test_health_is_answered_to_whoever_knows_no_name(rig: Rig) -> None:
    assert TestClient(open_app(rig), base_url="http://10.9.8.7:8030").get("/healthz").status_code == 200


def test_a_rebound_name_opens_no_socket(rig: Rig) -> None:
    app = open_app(rig)

    @app.websocket("/socket")
    async def socket(opened: WebSocket) -> None:
        await opened.accept()
        await opened.close()

    with pytest.raises(WebSocketDisconnect) as refused, TestClient(app).websocket_connect("ws://evil.example/socket"):
        pass
    assert refused.value.code == 1008
    with TestClient(app).websocket_connect("ws://localhost/socket"):
        pass


LOOPBACK = [
    "localhost",
    "localhost:8030",
    "LOCALHOST.",
    "127.0.0.1",
    "127.9.9.9:80",
    "[::1]:8030",
    "[::ffff:127.0.0.1]",
]
NAMES = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:127", "machine.evil.example"]
BROKEN = ["", "[", "[]", "[::1", "a b", "a/b", "user@localhost", "localhost:", "localhost:x", "localhost, evil.example"]


@pytest.mark.parametrize("listens_on", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "10.0.0.5"])
def test_loopback_is_always_known_and_other_names_never(listens_on: str) -> None:
    hosts = Hosts(listens_on=listens_on, machine="machine.example")
    assert [host for host in LOOPBACK if not hosts.know(host)] == []
    assert [host for host in NAMES + BROKEN if hosts.know(host)] == []


def test_beyond_this_machine_addresses_and_the_name_of_the_machine_are_known() -> None:
    everywhere = Hosts(listens_on="0.0.0.0", machine="Node7.example")
    here = Hosts(machine="Node7.example")
    for host in ("10.0.0.5:8030", "[2001:db8::1]:8030", "node7", "node7.example:8030"):
        assert everywhere.know(host), host
        assert not here.know(host), host


def test_the_address_that_is_listened_on_is_known_by_its_name_too() -> None:
    assert Hosts(listens_on="Lading.internal").know("lading.internal:8030")
    assert Hosts(listens_on="[2001:db8::1]").know("[2001:db8::1]:8030")


def test_names_are_configured_as_people_write_them(loaded: Rig) -> None:
    hosts = Hosts.configured("127.0.0.1", ["Lading.Example", "proxy:443", "2001:db8::1", "10.0.0.5", "[2001:db8::2]:1"])
    for host in ("lading.example:8443", "LADING.example.", "proxy", "[2001:db8::1]", "10.0.0.5:80", "[2001:db8::2]"):
        assert hosts.know(host), host
    assert not hosts.know("other.example")
    for wrong in ("", "https://lading.example", "*", "a b"):
        with pytest.raises(ConfigError, match="not the name of a host"):
            Hosts.configured("127.0.0.1", [wrong])
    app = create_app(loaded.lading, rules=DoorRules(hosts=hosts))
    assert TestClient(app, base_url="http://lading.example").get("/api/jobs").status_code == 200


def test_two_hosts_or_none_are_refused(loaded: Rig) -> None:
    client = TestClient(open_app(loaded), base_url="http://localhost")
    two = [("host", "localhost"), ("host", "evil.example")]
    assert client.get("/api/openapi.json", headers=two).status_code == 421
