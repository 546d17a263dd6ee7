"""A proxy between Lading and a server, which delays, cuts, loses answers and refuses: by a script, or by a seed.

It runs in a process of its own: some calls of delta-rs hold Python's lock while they wait for an answer. HTTP requests
are taken one by one; of other protocols it knows connections and pieces of bytes alone.

    pass       as if it were not there
    delay      a moment later
    cut        the connection ends before the server hears of the request
    lose       the server has done it, and the answer is lost
    partial    half of the answer comes
    error      500, and the server has not heard of it
    late-error 500, and the server has done it
    busy       503 SlowDown, or what Kinesis says when it is asked too often
    denied     403 AccessDenied, of S3; it is no weather, and happens by a script or an `only` alone
    late-busy  503, and the server has done it, as a gateway between them may say
    silent     the server has not heard of it, and no answer ever comes; by a script or an `only` alone
    mute       the same, but the server has done it
"""

from __future__ import annotations

import json
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HTTP_FAULTS = ("delay", "cut", "lose", "partial", "error", "late-error", "busy")
REST_FAULTS = (*HTTP_FAULTS, "late-busy")
TCP_FAULTS = ("delay", "cut")
_ROOT = Path(__file__).parent.parent.parent
_PIECE = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What happens to requests from now on."""

    rate: float = 0.0
    """The part of the requests, or of the pieces, that something happens to."""
    faults: Sequence[str] = ()
    only: str = ""
    """Requests whose first line matches this, with what AWS's JSON services are asked for behind it; all when empty."""
    script: Sequence[str] = ()
    """What happens to the next ones that match, before `rate` holds."""
    seed: int = 0
    delay_s: float = 0.05
    is_down: bool = False
    """No connection is taken, and those that are there end."""


class FaultProxy:
    """The test's side."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process, self.port = process, port
        self.endpoint = f"http://127.0.0.1:{port}"

    def set(self, weather: Weather) -> None:
        """Change the weather. Holds for requests that begin after this has returned."""
        self._ask({"weather": asdict(weather)})

    def calm(self) -> None:
        self.set(Weather())

    def counts(self) -> Counter[str]:
        """What happened how often since the proxy began."""
        return Counter(self._ask({})["counts"])

    def _ask(self, told: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(told), file=self._process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


@contextmanager
def serve_faults(upstream: str, kind: str, port: int = 0) -> Iterator[FaultProxy]:
    """A proxy before `host:port` or a Unix socket. `kind` is s3, kinesis, glue, rest or tcp."""
    command = [sys.executable, "-m", "tests.support.fault_proxy", upstream.removeprefix("http://"), kind, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        try:
            yield FaultProxy(process, int(process.stdout.readline()))
        finally:
            process.kill()


# The proxy's own process.


@dataclass(slots=True)
class _Sky:
    """The weather now, shared by all connections."""

    weather: Weather = field(default_factory=Weather)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open_sockets: set[socket.socket] = field(default_factory=set)
    _rng: random.Random = field(default_factory=lambda: random.Random(0))
    _script: list[str] = field(default_factory=list)

    def change(self, weather: Weather) -> None:
        with self.lock:
            self.weather, self._rng = weather, random.Random(weather.seed)
            self._script = list(weather.script)
            ending = list(self.open_sockets) if weather.is_down else []
        for each in ending:
            _end(each)

    def fault(self, line: str = "") -> str:
        with self.lock:
            weather, found = self.weather, "pass"
            if re.search(weather.only, line):
                if self._script:
                    found = self._script.pop(0)
                elif weather.faults and self._rng.random() < weather.rate:
                    found = self._rng.choice(list(weather.faults))
            self.counts[found] += 1
        if found == "delay":
            time.sleep(self.weather.delay_s)
        return found


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        each.close()


def _connect(upstream: str) -> socket.socket:
    if upstream.startswith("/"):
        found = socket.socket(socket.AF_UNIX)
        found.connect(upstream)
        return found
    host, _, port = upstream.rpartition(":")
    return socket.create_connection((host, int(port)))


def _serve_tcp(client: socket.socket, upstream: str, sky: _Sky) -> None:
    server = _connect(upstream)
    sky.open_sockets |= {client, server}

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                fault = sky.fault()
                if fault == "cut":
                    break
                if fault != "silent":
                    target.sendall(piece)
        _end(client)
        _end(server)

    threading.Thread(target=copy, args=(server, client), daemon=True).start()
    copy(client, server)
    sky.open_sockets -= {client, server}


def _head_and_body(stream: Any, method: str = "") -> tuple[bytes, bytes] | None:
    """One message of HTTP. `method` is that of the request, when an answer is read."""
    head = stream.readline()
    if not head:
        return None
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return None
        head += line
    if head.startswith(b"HTTP/1.1 100"):
        return _head_and_body(stream, method)
    status = head.split(b" ", 2)[1]
    if method == "HEAD" or (method and status in (b"204", b"304")):
        return head, b""
    lengths = re.findall(rb"(?im)^content-length:\s*(\d+)", head)
    if lengths:
        return head, stream.read(int(lengths[-1]))
    if re.search(rb"(?im)^transfer-encoding:\s*chunked", head):
        return head, _chunks(stream)
    return head, stream.read() if method else b""


def _chunks(stream: Any) -> bytes:
    found = b""
    while True:
        size: bytes = stream.readline()
        rest: bytes = stream.read(int(size.split(b";")[0], 16) + 2)
        found += size + rest
        if int(size.split(b";")[0], 16) == 0:
            return found


_S3 = {"error": (500, "InternalError"), "busy": (503, "SlowDown"), "denied": (403, "AccessDenied")}
_REST = {"error": (500, "InternalServerError"), "busy": (503, "ServiceUnavailableException")}
_GLUE = {"error": (500, "InternalServiceException"), "busy": (400, "ThrottlingException")}
_KINESIS = {"error": (500, "InternalFailure"), "busy": (400, "ProvisionedThroughputExceededException")}


def _refusal(kind: str, fault: str) -> bytes:
    if kind in ("kinesis", "glue"):
        status, name = (_GLUE if kind == "glue" else _KINESIS)[fault]
        body, form = json.dumps({"__type": name, "message": "by the proxy"}), "application/x-amz-json-1.1"
    elif kind == "rest":
        status, name = _REST[fault]
        body, form = (
            json.dumps({"error": {"message": "by the proxy", "type": name, "code": status}}),
            "application/json",
        )
    else:
        status, name = _S3[fault]
        body, form = f"<Error><Code>{name}</Code><Message>by the proxy</Message></Error>", "application/xml"
    return (
        f"HTTP/1.1 {status} {name}\r\nContent-Type: {form}\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}"
    ).encode()


def _serve_http(client: socket.socket, upstream: str, kind: str, sky: _Sky) -> None:
    asks = client.makefile("rb")
    sky.open_sockets.add(client)
    while (request := _request(client, asks)) is not None:
        head, body = request
        line = head.split(b"\r\n", 1)[0].decode("latin-1")
        target = re.search(rb"(?im)^x-amz-target:\s*(\S+)", head)
        fault = sky.fault(f"{line} {target[1].decode('latin-1')}" if target else line)
        if fault in ("cut", "error", "busy", "denied"):
            if fault != "cut":
                client.sendall(_refusal(kind, fault))
            break
        if fault == "silent":
            _wait_until_given_up(asks, sky)
            break
        with _connect(upstream) as server:
            server.sendall(re.sub(rb"(?im)^(connection|expect):[^\r]*\r\n", b"", head))
            server.sendall(body)
            answer = _head_and_body(server.makefile("rb"), line.split(" ")[0])
        if fault == "mute":
            _wait_until_given_up(asks, sky)
        if answer is None or fault in ("lose", "mute"):
            break
        if fault.startswith("late-"):
            client.sendall(_refusal(kind, fault.removeprefix("late-")))
            break
        whole = b"".join(answer)
        client.sendall(whole[: len(whole) // 2] if fault == "partial" else whole)
        if fault == "partial":
            break
    sky.open_sockets.discard(client)


def _wait_until_given_up(asks: Any, sky: _Sky) -> None:
    """Until the client ends the connection, which it does not do because of anything that it hears."""
    with suppress(OSError):
        asks.read()
    sky.counts["given up"] += 1


def _request(client: socket.socket, asks: Any) -> tuple[bytes, bytes] | None:
    """The next one. A client that waits to be told to send its content is told so."""
    head = asks.readline()
    while head and not head.endswith(b"\r\n\r\n"):
        line = asks.readline()
        head = head + line if line else b""
    if not head:
        return None
    if re.search(rb"(?im)^expect:\s*100-continue", head):
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    lengths = re.findall(rb"(?im)^content-length:\s*(\d+)", head)
    if lengths:
        return head, asks.read(int(lengths[-1]))
    return head, _chunks(asks) if re.search(rb"(?im)^transfer-encoding:\s*chunked", head) else b""


def _serve(client: socket.socket, upstream: str, kind: str, sky: _Sky) -> None:
    try:
        if kind == "tcp":
            _serve_tcp(client, upstream, sky)
        else:
            _serve_http(client, upstream, kind, sky)
    except (OSError, ValueError):
        sky.counts["broken"] += 1
    finally:
        _end(client)


def _accept(listener: socket.socket, upstream: str, kind: str, sky: _Sky) -> None:
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sky.weather.is_down:
            sky.counts["refused"] += 1
            _end(client)
            continue
        threading.Thread(target=_serve, args=(client, upstream, kind, sky), daemon=True).start()


def main(upstream: str, kind: str, port: str) -> None:
    """Serve until the test ends, or kills it."""
    sky = _Sky()
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=256)
    threading.Thread(target=_accept, args=(listener, upstream, kind, sky), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if "weather" in told:
            sky.change(Weather(**told["weather"]))
        print(json.dumps({"counts": sky.counts}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
