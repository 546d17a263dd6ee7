"""An S3 endpoint that redirects, or answers with a page for browsers: an error that says what to check."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.errors import ListingError, StorageError
from lading.jobs.record import JobState
from lading.model.s3_access import S3Access
from lading.storage.s3 import S3Store
from lading.testing.marked import secret
from tests.console.local import LocalLading

PAGE = b"<html><body>Please log in.</body></html>"
EMPTY = b'<?xml version="1.0"?><ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>'
ANSWERS: dict[str, tuple[int, str]] = {
    "moved": (301, "https://other.example/"),
    "moved nowhere": (301, ""),
    "found": (302, "http://other.example/login"),
    "to itself": (307, "/b/in?again"),
    "for good": (308, "/login"),
    "a page": (200, ""),
}


class Endpoint(ThreadingHTTPServer):
    """Answers everything in one way."""

    daemon_threads = True
    answer = "listing"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def properties(self, quote: str) -> str:
        given = {
            "s3.endpoint": f"http://127.0.0.1:{self.server_port}",
            "s3.region": "us-east-1",
            "s3.access_key": secret("access"),
            "s3.secret_key": secret("key"),
            "use_path_style": "true",
        }
        return ", ".join(f"{quote}{name}{quote}={quote}{value}{quote}" for name, value in given.items())


class _Handler(BaseHTTPRequestHandler):
    def answer(self) -> None:
        assert isinstance(self.server, Endpoint)
        self.rfile.read(int(self.headers.get("content-length") or 0))
        status, place = ANSWERS.get(self.server.answer, (200, ""))
        body = EMPTY if self.server.answer == "listing" else PAGE
        self.send_response(status)
        if place:
            self.send_header("Location", place)
        self.send_header("Content-Type", "application/xml" if body is EMPTY else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        yield server
        server.shutdown()


def job(endpoint: Endpoint) -> str:
    return (
        'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id FROM S3("uri"="s3://b/in/*.csv", '
        f'"format"="csv_with_names", "column_separator"=",", {endpoint.properties(chr(34))})'
    )


@pytest.mark.parametrize("answer", ANSWERS)
def test_strange_answers_are_errors_and_not_tracebacks(endpoint: Endpoint, answer: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with LocalLading(home) as lading:
        lading.sql("CREATE TABLE t (id BIGINT) USING delta")
    endpoint.answer = answer
    table = f"CREATE TABLE d (id BIGINT) USING delta LOCATION 's3://b/d' TBLPROPERTIES({endpoint.properties(chr(39))})"
    for statement, kind in ((job(endpoint), ListingError), (table, StorageError)):
        done = CliRunner().invoke(app, ["sql", "--home", str(home), "-e", statement])
        assert isinstance(done.exception, kind), done.exception
        assert f"http://127.0.0.1:{endpoint.server_port}" in done.exception.what
        assert "Check s3.endpoint" in done.exception.what
        place = ANSWERS[answer][1]
        assert place in done.exception.what


def test_a_page_in_the_place_of_an_object_leaves_no_connection_open(endpoint: Endpoint) -> None:
    endpoint.answer = "a page"
    access = S3Access(
        endpoint=f"http://127.0.0.1:{endpoint.server_port}", region="us-east-1", path_style=True, anonymous=True
    )
    before = {id(each) for each in _open_answers()}
    with pytest.raises(StorageError, match="without an ETag") as refused:
        S3Store("b", access).get("card")
    assert refused.tb is not None  # As long as the error is held, so is everything on its way.
    assert [each for each in _open_answers() if id(each) not in before] == []


def _open_answers() -> list[HTTPResponse]:
    return [each for each in gc.get_objects() if isinstance(each, HTTPResponse) and not each.isclosed()]


@pytest.mark.parametrize("answer", ["moved", "a page"])
def test_a_job_whose_endpoint_begins_to_redirect_says_so(endpoint: Endpoint, answer: str, tmp_path: Path) -> None:
    """A page in the place of a listing looked like an empty bucket: the job was RUNNING, and loaded nothing."""
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE TABLE t (id BIGINT) USING delta")
        lading.sql(job(endpoint))
        endpoint.answer = answer
        (record,) = lading.run().values()
        assert record.state is JobState.PAUSED
        assert record.reason is not None
        assert "Check s3.endpoint" in record.reason.message
        assert not record.reason.needs_attention
