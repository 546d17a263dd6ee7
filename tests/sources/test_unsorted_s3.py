"""Stores that do not list in the order of keys: S3 directory buckets, and some that only look like S3."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from lading.model.batch import Limits
from lading.testing.marked import secret
from tests.sources.support import Job, bare_spec_of, with_columns

PAGE = 3
SESSION = (
    f"<CreateSessionResult><Credentials><SessionToken>{secret('token')}</SessionToken>"
    f"<SecretAccessKey>{secret('key')}</SecretAccessKey><AccessKeyId>{secret('access')}</AccessKeyId>"
    "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>"
)
"""What a directory bucket gives before it answers anything else."""


class UnsortedS3(ThreadingHTTPServer):
    """One bucket, whose listings come in an order of its own, in small pages, some keys twice."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.keys: list[str] = []
        self.asked: list[dict[str, str]] = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def list(self, asked: dict[str, str]) -> str:
        self.asked.append(asked)
        keys = [key for key in self.keys if key.startswith(asked.get("prefix", ""))]
        if after := asked.get("start-after"):
            keys = [key for key in keys if key > after]
        at = int(asked.get("continuation-token", "0"))
        items = "".join(
            f"<Contents><Key>{key}</Key><Size>2</Size><ETag>&quot;e&quot;</ETag>"
            "<LastModified>2026-03-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys[at : at + PAGE]
        )
        more = at + PAGE < len(keys)
        token = f"<NextContinuationToken>{at + PAGE}</NextContinuationToken>" if more else ""
        return f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{items}</ListBucketResult>"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, UnsortedS3)
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        is_listing = "list-type" in query
        body = self.server.list(query).encode() if is_listing else b"x\n"
        if "session" in url.query.split("&"):
            is_listing, body = True, SESSION.encode()
        self.send_response(200 if is_listing else 206)
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are silent."""


@pytest.fixture
def store() -> Iterator[UnsortedS3]:
    server = UnsortedS3()
    yield server
    server.shutdown()
    server.server_close()


def job(store: UnsortedS3, bucket: str, **properties: str) -> Job:
    access = {
        "s3.endpoint": f"http://127.0.0.1:{store.server_port}",
        "s3.region": "us-east-1",
        "s3.access_key": secret("access"),
        "s3.secret_key": secret("key"),
        "use_path_style": "true",
    }
    return Job(with_columns(bare_spec_of(uri=f"s3://{bucket}/in/0*.csv", **access, **properties), "c1"))


@pytest.mark.parametrize("late_files", ["LOAD", "SHOW"])
@pytest.mark.parametrize("first_pages", ["sorted", "unsorted"])
def test_every_file_is_loaded_once_whatever_the_order_of_listings(
    store: UnsortedS3, late_files: str, first_pages: str
) -> None:
    """Files that were listed after a later key were passed over, and counted as late for ever."""
    names = [f"in/{number:03d}.csv" for number in range(20)]
    store.keys = [*names[:6], *random.Random(3).sample(names[6:], 14)]
    if first_pages == "unsorted":
        store.keys.reverse()
    store.keys += ["in/other.csv", store.keys[0]]
    load = job(store, "b", **{"s3.late_files": late_files})
    loaded = []
    while batch := load.files(Limits(files=3)):
        loaded += batch
    assert loaded == [name.removeprefix("in/") for name in names]
    assert load.source.survey(load.positions).late.files == 0


def test_a_directory_bucket_is_asked_only_for_what_it_knows(store: UnsortedS3) -> None:
    """It knows no start, and only prefixes that end with a slash."""
    store.keys = ["in/02.csv", "in/01.csv"]
    load = job(store, "shop--euc1-az1--x-s3")
    assert load.files(Limits(files=1)) == ["01.csv"]
    assert load.files() == ["02.csv"]
    assert {asked["prefix"] for asked in store.asked} == {"in/"}
    assert not any("start-after" in asked for asked in store.asked)
