"""A real service makes Java, Spark's workers and Python complain: every line of its log is JSON and shows no secret."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pymysql
import pytest

from lading.testing.marked import secret
from tests.cli.test_serve import until
from tests.logins import read_root_login

KEY = secret("s3-key-of-a-job")
TROUBLE = """
import os, sys, threading

def raise_once():
    sys.stdin.readline()
    raise RuntimeError("the thread failed with " + os.environ["TROUBLE_KEY"])

threading.Thread(target=raise_once, name="trouble", daemon=True).start()
from lading.cli.main import main
main()
"""
LIST = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>shop</Name><KeyCount>1</KeyCount>
<IsTruncated>false</IsTruncated>{files}</ListBucketResult>"""
FILE = """<Contents><Key>{name}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>
<ETag>"5d41402abc4b2a76b9719d911017c592"</ETag><Size>8</Size></Contents>"""
ROWS = "1,essen\n"


class _Store(BaseHTTPRequestHandler):
    """An S3 with one good file. Of files that were added it repeats the secret key in the error when they are read."""

    files: ClassVar[list[str]] = ["a.csv"]

    def do_GET(self) -> None:
        if "list-type=2" in self.path:
            after = re.search(r"start-after=([^&]*)", self.path)
            names = [name for name in self.files if after is None or name > after[1]]
            self._say(200, LIST.format(files="".join(FILE.format(name=name) for name in names)))
        elif "a.csv" in self.path:
            self._say(200, ROWS)
        else:
            self._say(400, f"<Error><Code>Odd</Code><Message>no signature for {KEY}</Message></Error>")

    def _say(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("ETag", '"5d41402abc4b2a76b9719d911017c592"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def talkative_s3() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    # The thread of this test is one of the process that it starts, so that one must be the service itself.
    words = [
        "serve",
        "--init",
        "--no-supervise",
        "--home",
        str(tmp_path / "home"),
        "--mysql-port",
        "0",
        "--http-port",
        "0",
        "--spark-conf",
        "spark.sql.shuffle.partitions=2",  # Batches go to Spark from the first on.
    ]
    with (tmp_path / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", TROUBLE, *words, "--log-format", "json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "TROUBLE_KEY": KEY},
        )
    yield process
    process.kill()
    process.wait(30)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


@pytest.mark.java
def test_with_log_format_json_every_line_is_json_without_secrets(
    tmp_path: Path, service: subprocess.Popen[str]
) -> None:
    assert service.stdout is not None
    assert service.stdin is not None
    ready = service.stdout.readline()
    assert ready.startswith("Lading is ready"), (tmp_path / "stderr").read_text()
    port = json.loads((tmp_path / "home" / "service.json").read_text())["mysql_port"]

    def said() -> str:
        return (tmp_path / "stderr").read_text()

    user, password = read_root_login(tmp_path / "home")
    with (
        talkative_s3() as endpoint,
        pymysql.connect(host="127.0.0.1", port=port, user=user, password=password) as connection,
    ):
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE orders (id BIGINT, city STRING) USING delta")
        cursor.execute(
            f'CREATE JOB j PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO orders SELECT c1, c2 FROM S3('
            f'"uri"="s3://shop/*.csv", "format"="csv", "column_separator"=",", "s3.endpoint"="{endpoint}", '
            f'"s3.access_key"="shop", "s3.secret_key"="{KEY}", "s3.region"="eu-central-1", "use_path_style"="true")'
        )
        _Store.files.append("b.csv")
        service.stdin.write("now\n")
        service.stdin.flush()
        until(lambda: "batch failed" in said() and "TaskSetManager" in said(), "the batch that fails")
        with pytest.raises(pymysql.err.Error):
            cursor.execute(f"SELECT nothing FROM orders WHERE city = '{KEY}'")
    service.send_signal(signal.SIGTERM)
    assert service.wait(90) == 0
    assert service.stdout.read() == ""
    records = [json.loads(line) for line in said().splitlines()]
    raw = "\n".join(record["message"] for record in records if record["logger"] == "lading.java")
    assert "no signature for ******" in raw, "Java says what its worker raised"
    assert "TaskSetManager" in raw
    uncaught = next(record for record in records if record["logger"] == "lading.uncaught")
    assert uncaught["message"] == "Thread trouble ended with an error"
    assert "RuntimeError: the thread failed with ******" in uncaught["error"]
    assert KEY not in said()
