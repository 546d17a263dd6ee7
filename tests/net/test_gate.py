"""The proxy that keeps libraries to one endpoint: real listeners, pyarrow and delta-rs."""

from __future__ import annotations

import base64
import multiprocessing
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import deltalake
import pyarrow.fs as pafs
import pytest
from deltalake.exceptions import DeltaError

from lading.model.s3_access import S3Access
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.net.gate import GateAddress, Route, gate_address
from lading.storage.libraries import arrow_filesystem, delta_options
from lading.storage.store import StoragePlace
from lading.testing.marked import secret
from tests.net.listeners import Listener, listening
from tests.tables.s3_server import S3Server

STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture
def inside() -> Iterator[Listener]:
    """What nobody may reach."""
    with listening() as server:
        yield server


@pytest.fixture
def front(s3: S3Server) -> Iterator[Listener]:
    """An honest store, as long as it is not told otherwise."""
    with listening(s3.endpoint) as server:
        yield server


def options(endpoint: str, rules: AddressRules = EVERY_PRIVATE) -> S3Access:
    return S3Access(
        endpoint=endpoint,
        region="us-east-1",
        access_key=secret("access"),
        secret_key=secret("key"),
        path_style=True,
        addresses=rules,
    )


def write(system: pafs.FileSystem, path: str) -> None:
    with system.open_output_stream(path) as stream:
        stream.write(b"content")


CALLS: dict[str, Callable[[pafs.FileSystem, str], object]] = {
    "head": lambda system, bucket: system.get_file_info(f"{bucket}/k"),
    "read": lambda system, bucket: system.open_input_stream(f"{bucket}/k").read(),
    "list": lambda system, bucket: system.get_file_info(pafs.FileSelector(f"{bucket}/k", recursive=True)),
    "write": lambda system, bucket: write(system, f"{bucket}/new"),
    "delete": lambda system, bucket: system.delete_file(f"{bucket}/k"),
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("call", CALLS)
def test_pyarrow_does_not_follow_a_redirect(
    s3: S3Server, front: Listener, inside: Listener, call: str, status: int
) -> None:
    """Also not after the endpoint was honest, on connections that are open already."""
    bucket, system = s3.make_bucket(), arrow_filesystem(options(front.url))
    write(system, f"{bucket}/k")
    assert system.open_input_stream(f"{bucket}/k").read() == b"content"
    front.redirect(status, inside.url)
    with pytest.raises(OSError, match=r"not followed|ACCESS_DENIED"):
        CALLS[call](system, bucket)
    assert front.heard
    assert inside.heard == []


@pytest.mark.parametrize("status", STATUSES)
def test_delta_rs_does_not_follow_a_redirect(front: Listener, inside: Listener, status: int) -> None:
    front.redirect(status, inside.url)
    with pytest.raises((OSError, DeltaError), match="not followed"):
        deltalake.DeltaTable("s3://b/t", storage_options=delta_options(options(front.url)))
    assert front.heard
    assert inside.heard == []


def test_a_name_is_looked_up_by_the_proxy_and_its_address_is_checked(inside: Listener) -> None:
    """A name server that answers differently each time wins nothing: what was checked is what is connected to."""
    endpoint = f"http://localhost:{inside.server_port}"
    with pytest.raises(OSError, match="must not reach"):
        arrow_filesystem(options(endpoint, AddressRules())).get_file_info(pafs.FileSelector("b"))
    assert inside.heard == []
    with pytest.raises(OSError, match="listing"):  # It is no S3, but it was asked.
        arrow_filesystem(options(endpoint, AddressRules(hosts=("localhost",)))).get_file_info(pafs.FileSelector("b"))
    assert inside.heard


def test_a_store_that_is_not_there_is_said_to_be_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
    answer = say(gate_address(endpoint, EVERY_PRIVATE), f"GET {endpoint}/b HTTP/1.1")
    assert answer.startswith("HTTP/1.1 502")
    assert "Connection refused" in answer


def say(gate: GateAddress, line: str, *, password: str | None = None) -> str:
    """The whole answer of the proxy to a request of one line."""
    word = base64.b64encode(f"{gate.user}:{gate.password if password is None else password}".encode()).decode()
    with socket.create_connection(("127.0.0.1", gate.port)) as peer:
        peer.sendall(f"{line}\r\nProxy-Authorization: Basic {word}\r\nConnection: close\r\n\r\n".encode())
        peer.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: peer.recv(65536), b"")).decode("latin-1")


def test_nobody_else_of_the_machine_can_use_it(inside: Listener) -> None:
    gate = gate_address(inside.url, EVERY_PRIVATE)
    assert say(gate, f"GET {inside.url}/b HTTP/1.1", password="guess").startswith("HTTP/1.1 407")
    assert inside.heard == []
    assert "role-credentials" in say(gate, f"GET {inside.url}/b HTTP/1.1")
    assert gate.password not in repr(gate)


@pytest.mark.parametrize("target", ["127.0.0.1:{inside}", "169.254.169.254:80", "127.0.0.1:{front}x", "[::1]:{front}"])
def test_a_tunnel_leads_to_the_endpoint_only(front: Listener, inside: Listener, target: str) -> None:
    gate = gate_address(front.url, EVERY_PRIVATE)
    asked = target.format(inside=inside.server_port, front=front.server_port)
    assert not say(gate, f"CONNECT {asked} HTTP/1.1").startswith("HTTP/1.1 200")
    assert inside.heard == front.heard == []
    place = urlsplit(front.url).netloc
    assert say(gate, f"CONNECT {place} HTTP/1.1").startswith("HTTP/1.1 200")


def test_buckets_may_be_part_of_the_host_and_nothing_else() -> None:
    route = Route.to("https://store.example:9000", EVERY_PRIVATE)
    assert route.leads_to("store.example", 9000)
    assert route.leads_to("Shop.store.example.", 9000)
    for host, port in (("store.example", 80), ("evilstore.example", 9000), ("store.example.evil", 9000)):
        assert not route.leads_to(host, port)
    assert Route.to("store.example", EVERY_PRIVATE).port == 443
    assert Route.to("http://[::1]", EVERY_PRIVATE).leads_to("::1", 80)


def test_a_proxy_of_the_environment_is_used_and_told_its_password(
    front: Listener, inside: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as company:

        def answer() -> None:
            peer, _ = company.accept()
            with peer:
                said.append(peer.recv(65536))
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

        threading.Thread(target=answer, daemon=True).start()
        monkeypatch.setenv("http_proxy", f"http://ann:p%40ss@127.0.0.1:{company.getsockname()[1]}")
        gate = gate_address("http://store.example:9000", EVERY_PRIVATE)
        assert say(gate, "GET http://store.example:9000/b HTTP/1.1").endswith("hi")
    assert said[0].startswith(b"GET http://store.example:9000/b HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic YW5uOnBAc3M=" in said[0]
    assert gate.user.encode() not in said[0]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert Route.to(front.url, EVERY_PRIVATE).via == ""


def read_in_another_process(place: bytes, path: str, to: object) -> None:
    system, root = pickle.loads(place).arrow()
    to.put(system.open_input_stream(f"{root}/{path}").read())  # type: ignore[attr-defined]


def test_another_process_has_a_proxy_of_its_own(s3: S3Server, front: Listener) -> None:
    """As Spark's Python workers, which are forked."""
    place = StoragePlace(uri=f"s3://{s3.make_bucket()}/root", access=options(front.url))
    system, root = place.arrow()
    write(system, f"{root}/k")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    arguments = (pickle.dumps(place), "k", answers)
    process = context.Process(target=read_in_another_process, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert answers.get() == b"content"
