"""kinesis-local, started for a test: it splits, merges and ends shards as Kinesis does."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.settings import environment
from lading.testing.marked import secret
from lading.testing.npm import find_node, free_port, installed

VERSION = "0.6.2"
_START_S, _POLL_S = 60.0, 0.05
REGION, KEY = "us-east-1", secret("kinesis")


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisServer:
    endpoint: str
    region: str = REGION
    access_key: str = KEY
    secret_key: str = KEY

    def client(self, endpoint: str = "") -> Any:
        """A boto3 client for it, or for a proxy before it."""
        import boto3

        return boto3.client(
            "kinesis",
            endpoint_url=endpoint or self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )

    def create_stream(self, stream: str, shards: int = 1) -> Any:
        """A stream that is ready, and a client."""
        client = self.client()
        client.create_stream(StreamName=stream, ShardCount=shards)
        wait_until_active(client, stream)
        return client


def wait_until_active(client: Any, stream: str) -> None:
    """After making or resharding a stream."""
    clock = SystemClock()
    end_s = clock.monotonic_s() + _START_S
    while clock.monotonic_s() < end_s:
        summary = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
        if summary["StreamStatus"] == "ACTIVE":
            return
        clock.sleep(_POLL_S / 5)
    msg = f"Stream {stream} did not become active"
    raise ConfigError(msg, left="The server still runs.", todo="See what it printed.")


@contextmanager
def serve_kinesis(folder: Path | None = None) -> Iterator[KinesisServer]:
    """Start it on a free port and stop it afterwards. `folder` is where the package is kept between runs."""
    package = installed_package(folder)
    plain, secure = free_port(), free_port()
    settings = {
        "KINESIS_MOCK_PLAIN_PORT": str(plain),
        "KINESIS_MOCK_TLS_PORT": str(secure),
        "CREATE_STREAM_DURATION": "5ms",
        "DELETE_STREAM_DURATION": "5ms",
        "SPLIT_SHARD_DURATION": "5ms",
        "MERGE_SHARDS_DURATION": "5ms",
        "SHARD_LIMIT": "500",
        "LOG_LEVEL": "ERROR",
    }
    with tempfile.TemporaryFile() as log:
        # It opens server.json in its working folder.
        process = subprocess.Popen(  # noqa: S603
            [find_node(), "main.js"], cwd=package, env={**environment(), **settings}, stdout=log, stderr=log
        )
        try:
            server = KinesisServer(endpoint=f"http://127.0.0.1:{plain}")
            _wait_until_up(server, process)
            yield server
        finally:
            # It takes no notice of a polite signal, and keeps nothing.
            process.kill()
            process.wait(10)


def installed_package(folder: Path | None = None) -> Path:
    """The folder of the package, installed with npm when it is not there yet."""
    return installed("kinesis-local", VERSION, folder) / "node_modules" / "kinesis-local"


def _wait_until_up(server: KinesisServer, process: subprocess.Popen[bytes]) -> None:
    clock = SystemClock()
    end_s = clock.monotonic_s() + _START_S
    client = server.client()
    while clock.monotonic_s() < end_s and process.poll() is None:
        host, port = server.endpoint.removeprefix("http://").split(":")
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                client.list_streams()
                return
        clock.sleep(_POLL_S)
    msg = f"kinesis-local did not start (status {process.poll()})"
    raise ConfigError(msg, code="NoNode", left="It was ended.", todo="See what it printed.")
