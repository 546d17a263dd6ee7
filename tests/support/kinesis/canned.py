"""A Kinesis endpoint for measuring: a stream that is full from the start, made of nothing while it is read.

`python -m tests.support.kinesis.canned SHARDS RECORDS_PER_SHARD` prints its port and serves until its input ends.
Every record is about one kilobyte of JSON. It keeps none of them, so a million cost no memory, and its own work is
small beside that of a client.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lading.testing.kinesis.server import KinesisServer

STREAM = "canned"
MAX_PAGE = 1_000
_SPAN = 2**128
_FIRST = 49_600_000_000_000_000_000_000
_ARRIVED = 1_760_000_000.0
_AGENTS = tuple(f"Mozilla/5.0 (made up; number {n}) {'AppleGecko ' * 8}{n}" for n in range(50))
_NOTES = tuple("".join(chr(97 + (n * 7 + k * k) % 26) for k in range(760)) for n in range(64))


def message(number: int) -> bytes:
    """One kilobyte of JSON, the same for the same number."""
    return (
        f'{{"id": {number}, "city": "city {number % 100}", "amount": "{number % 1000}.25", '
        f'"url": "https://shop.example/catalogue/{number % 5000}/item/{number}", '
        f'"agent": "{_AGENTS[number % 50]}", "note": "{_NOTES[number % 64]}"}}'
    ).encode()


@contextmanager
def serve_canned(shards: int, records: int) -> Iterator[KinesisServer]:
    """Start it in a process of its own."""
    command = [sys.executable, "-m", "tests.support.kinesis.canned", str(shards), str(records)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline()) if process.stdout else 0
        try:
            yield KinesisServer(endpoint=f"http://127.0.0.1:{port}")
        finally:
            process.kill()


class Canned:
    """The answers."""

    def __init__(self, shards: int, records: int) -> None:
        self._shards, self._records = shards, records

    def answer(self, call: str, asked: dict[str, Any]) -> bytes:
        match call:
            case "DescribeStreamSummary":
                return json.dumps({"StreamDescriptionSummary": self._summary()}).encode()
            case "ListShards":
                return json.dumps({"Shards": [self._shard(number) for number in range(self._shards)]}).encode()
            case "GetShardIterator":
                return json.dumps({"ShardIterator": self._iterator(asked)}).encode()
            case "GetRecords":
                return self._page(asked)
        msg = f"The canned stream has no answer to {call}"
        raise ValueError(msg)

    def _summary(self) -> dict[str, Any]:
        return {
            "StreamName": STREAM,
            "StreamARN": f"arn:aws:kinesis:us-east-1:000000000000:stream/{STREAM}",
            "StreamStatus": "ACTIVE",
            "RetentionPeriodHours": 24 * 365,
            "StreamCreationTimestamp": _ARRIVED,
            "EnhancedMonitoring": [],
            "OpenShardCount": self._shards,
        }

    def _shard(self, number: int) -> dict[str, Any]:
        low, high = _SPAN * number // self._shards, _SPAN * (number + 1) // self._shards - 1
        return {
            "ShardId": f"shardId-{number:012d}",
            "HashKeyRange": {"StartingHashKey": str(low), "EndingHashKey": str(high)},
            "SequenceNumberRange": {"StartingSequenceNumber": str(_FIRST)},
        }

    def _iterator(self, asked: dict[str, Any]) -> str:
        shard, kind = int(asked["ShardId"][-12:]), asked["ShardIteratorType"]
        at = int(asked.get("StartingSequenceNumber", _FIRST)) - _FIRST
        if kind == "AFTER_SEQUENCE_NUMBER":
            at += 1
        elif kind == "LATEST":
            at = self._records
        elif kind in ("TRIM_HORIZON", "AT_TIMESTAMP"):
            at = 0
        return f"{shard}/{at}"

    def _page(self, asked: dict[str, Any]) -> bytes:
        shard, at = map(int, asked["ShardIterator"].split("/"))
        end = min(self._records, at + min(MAX_PAGE, asked.get("Limit", MAX_PAGE)))
        first, encode = shard * self._records, base64.b64encode
        records = b",".join(
            b'{"SequenceNumber":"%d","ApproximateArrivalTimestamp":%.3f,"PartitionKey":"k","Data":"%b"}'
            % (_FIRST + number, _ARRIVED + number / 1000, encode(message(first + number)))
            for number in range(at, end)
        )
        behind = 0 if end >= self._records else 1_000 + (self._records - end)
        return b'{"Records":[%b],"NextShardIterator":"%d/%d","MillisBehindLatest":%d}' % (records, shard, end, behind)


def _serve(canned: Canned) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            body = canned.answer(self.headers.get("X-Amz-Target", "").rpartition(".")[2], asked)
            head = f"HTTP/1.1 200 OK\r\nDate: {formatdate(usegmt=True)}\r\nContent-Type: application/x-amz-json-1.1\r\n"
            self.wfile.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(Canned(int(sys.argv[1]), int(sys.argv[2])))
