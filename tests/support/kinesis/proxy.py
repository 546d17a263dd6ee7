"""A proxy that stands before a Kinesis endpoint and makes trouble, for consumers in any language."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from urllib.parse import urlsplit

_SKIPPED = {"connection", "transfer-encoding", "content-length", "keep-alive"}
READ_CALLS = frozenset({"GetRecords", "GetShardIterator", "ListShards", "DescribeStreamSummary"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The probability of each trouble, for each call that can have it."""

    throttled: float = 0.0
    """GetRecords, GetShardIterator, ListShards: ProvisionedThroughputExceeded or LimitExceeded, no data."""
    expired: float = 0.0
    """GetRecords: ExpiredIterator. ListShards with a token: ExpiredNextToken."""
    failed: float = 0.0
    """Every reading call: InternalFailure, status 500, before the service sees it."""
    dropped: float = 0.0
    """Every reading call: the service answers, and the connection breaks before the answer arrives."""


@dataclass(slots=True)
class FaultyProxy:
    """A running proxy."""

    endpoint: str
    rates: Rates
    """May be changed while it runs."""
    made: Counter[str] = field(default_factory=Counter)
    """How often each trouble was made."""


@contextmanager
def serve_faults(endpoint: str, rates: Rates, *, seed: int = 0) -> Iterator[FaultyProxy]:
    """Start it on a free port. Writing calls pass untouched, so that what was sent stays known."""
    target, random, lock = urlsplit(endpoint), Random(seed), threading.Lock()
    proxy = FaultyProxy(endpoint="", rates=rates)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            call = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            with lock:
                trouble = _choose(call, body, proxy.rates, random)
                proxy.made[trouble] += bool(trouble)
            if trouble and trouble != "dropped":
                self._refuse(trouble)
                return
            status, headers, answer = self._ask(body)
            if trouble == "dropped":
                self.close_connection = True
                self.connection.close()
                return
            self.send_response_only(status)  # the date is the one of the service
            for name, value in headers:
                if name.lower() not in _SKIPPED:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _SKIPPED}
                connection.request("POST", self.path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        def _refuse(self, code: str) -> None:
            answer = json.dumps({"__type": code, "message": "made by the proxy"}).encode()
            self.send_response(500 if code == "InternalFailure" else 400)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _choose(call: str, body: bytes, rates: Rates, random: Random) -> str:
    if call not in READ_CALLS:
        return ""
    if random.random() < rates.throttled and call != "DescribeStreamSummary":
        return "LimitExceededException" if call == "ListShards" else "ProvisionedThroughputExceededException"
    if random.random() < rates.expired:
        if call == "GetRecords":
            return "ExpiredIteratorException"
        if call == "ListShards" and b"NextToken" in body:
            return "ExpiredNextTokenException"
    if random.random() < rates.failed:
        return "InternalFailure"
    return "dropped" if random.random() < rates.dropped else ""
