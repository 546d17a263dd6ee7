"""An S3-compatible store for the tests.

It runs in a process of its own: some calls of delta-rs hold Python's lock while they wait for an answer, and a server
in the same process could never give it.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import boto3

from lading.model.s3_access import S3Access
from lading.testing.marked import secret


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request, and who signed it."""

    method: str
    path: str
    access_key: str
    session_token: str


class S3Server:
    """Where the store listens, how to reach it, and fresh buckets in it."""

    def __init__(self, endpoint: str, process: subprocess.Popen[str]) -> None:
        self.endpoint = endpoint
        self._process = process
        self.options = S3Access(
            endpoint=endpoint,
            region="us-east-1",
            access_key=secret("access"),
            secret_key=secret("key"),
            path_style=True,
        )
        self._numbers = itertools.count()
        self._s3 = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=secret("owner"),
            aws_secret_access_key=secret("owner"),
        )

    def make_bucket(self) -> str:
        """Make a bucket that nobody has used and return its name."""
        name = f"lading-{next(self._numbers):04d}"
        self._s3.create_bucket(Bucket=name)
        return name

    def requests(self) -> list[SignedRequest]:
        """Those since the last call, the last ten thousand at most."""
        return [SignedRequest(*each) for each in json.loads(self._tell({"take": True}))]

    def refuse(self, key: str) -> None:
        """Treat an access key as one that has ended."""
        self._tell({"refuse": key})

    def refuse_after(self, key: str, *, path: str) -> None:
        """Let an access key end when something was done with it to a path that has this in it."""
        self._tell({"after": [key, path]})

    def has_ended(self, key: str) -> bool:
        """Whether an access key is refused by now."""
        return bool(json.loads(self._tell({"has_ended": key})))

    def _tell(self, said: dict[str, object]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(said), file=self._process.stdin, flush=True)
        return self._process.stdout.readline()

    def objects(self) -> Iterator[tuple[str, str, bytes]]:
        """All there are: URL, metadata, content. Not by requests: for thousands of them that takes half a minute."""
        with TemporaryDirectory() as folder:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(folder, file=self._process.stdin, flush=True)
            assert self._process.stdout.readline() == "copied\n"
            for number, (bucket, key, metadata) in enumerate(json.loads(Path(folder, "names").read_text())):
                yield f"s3://{bucket}/{key}", metadata, Path(folder, str(number)).read_bytes()


_SERVER = """
import collections, datetime, functools, json, logging, sys, threading
from pathlib import Path
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.s3.models import FakeMultipart, s3_backends
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer
from werkzeug.serving import WSGIRequestHandler

# Half of the time of a request went into a new connection, and into looking through moto's folders for its service.
WSGIRequestHandler.protocol_version = "HTTP/1.1"
DomainDispatcherApplication.get_backend_for_host = functools.cache(DomainDispatcherApplication.get_backend_for_host)

# moto says of every upload that it was begun in 2010.
begun, make_upload, serialized = {}, FakeMultipart.__init__, S3Response.serialized

def begin_upload(self, *words, **options):
    make_upload(self, *words, **options)
    begun[self.id] = datetime.datetime.now(datetime.timezone.utc).isoformat()

def serialized_with_times(self, answer):
    for upload in answer.result.get("Uploads", ()) if isinstance(answer.result, dict) else ():
        upload["Initiated"] = begun[upload["UploadId"]]
    return serialized(self, answer)

FakeMultipart.__init__, S3Response.serialized = begin_upload, serialized_with_times

# moto looks whether an object is there and then puts it: two conditional puts at once can both win, unlike in S3.
one_at_a_time, put_object = threading.Lock(), S3Response.put_object

def put_one_at_a_time(self):
    with one_at_a_time:
        return put_object(self)

S3Response.put_object = put_one_at_a_time
answer_any = DomainDispatcherApplication.__call__
seen, ended, ending = collections.deque(maxlen=10_000), set(), {}

def answer(self, environ, start_response):
    key = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
    token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
    seen.append([environ["REQUEST_METHOD"], environ["PATH_INFO"], key, token])
    if key not in ended:
        if key in ending and ending[key] in environ["PATH_INFO"] and environ["REQUEST_METHOD"] in ("PUT", "POST"):
            ended.add(key)
        return answer_any(self, environ, start_response)
    said = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
    head = [("Content-Type", "application/xml"), ("Content-Length", str(len(said))), ("Connection", "close")]
    start_response("400 Bad Request", head)
    return [said]

DomainDispatcherApplication.__call__ = answer

def answer_deaf(self, environ, start_response):
    environ.pop("HTTP_IF_NONE_MATCH", None)
    return answer(self, environ, start_response)

if "deaf" in sys.argv:
    DomainDispatcherApplication.__call__ = answer_deaf
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)

def copy_all(folder):
    backends = [backend for account in s3_backends.values() for backend in account.values()]
    buckets = [bucket for backend in backends for bucket in backend.buckets.values()]
    objects = [(bucket.name, key) for bucket in buckets for key in bucket.keys.values()]
    for number, (_, key) in enumerate(objects):
        (folder / str(number)).write_bytes(key.value)
    names = [[bucket, key.name, str(dict(key.metadata))] for bucket, key in objects]
    (folder / "names").write_text(json.dumps(names))

for line in sys.stdin:
    if not line.startswith("{"):
        copy_all(Path(line.strip()))
        print("copied", flush=True)
        continue
    said = json.loads(line)
    ended.add(said.get("refuse", "nobody"))
    ending.update([said["after"]] if "after" in said else [])
    taken = [seen.popleft() for _ in range(len(seen))] if "take" in line else []
    print(json.dumps(said["has_ended"] in ended if "has_ended" in said else taken), flush=True)
"""


@contextmanager
def serve_s3(*ways: str) -> Iterator[S3Server]:
    """Run the store on a free port until the block ends. "deaf": it does not know `If-None-Match`."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, *ways], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            host, port = server.stdout.readline().split()
            yield S3Server(f"http://{host}:{port}", server)
        finally:
            server.kill()
