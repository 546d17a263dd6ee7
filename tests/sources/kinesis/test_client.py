"""Who asks: keys, roles that refresh themselves, and imports that cost little."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.sources.kinesis.client import open_client
from lading.sources.kinesis.spec import Credentials
from tests.sources.kinesis.support import make_spec

ROLE = "arn:aws:iam::123456789012:role/reader"


class Sts:
    """A token service whose credentials are about to expire."""

    def __init__(self) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.life = timedelta(minutes=5)
        self.endpoint = ""


@pytest.fixture
def sts() -> Iterator[Sts]:
    service = Sts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            service.asked.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            until = (SystemClock().now() + service.life).isoformat()
            body = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
              <Credentials><AccessKeyId>ASIA{len(service.asked)}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
              <SessionToken>t</SessionToken><Expiration>{until}</Expiration></Credentials>
              </AssumeRoleResult></AssumeRoleResponse>""".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    service.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield service
    server.shutdown()
    server.server_close()
    thread.join()


def keys_of(client: object) -> str:
    return str(client._request_signer._credentials.get_frozen_credentials().access_key)  # type: ignore[attr-defined]


def test_given_keys_are_used() -> None:
    spec = make_spec(credentials=Credentials(access_key="AKIA", secret_key="s"), endpoint="http://127.0.0.1:1")
    assert keys_of(open_client(spec)) == "AKIA"


def test_keys_of_the_environment_are_used_when_the_job_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert keys_of(open_client(make_spec(credentials=Credentials(provider="env")))) == "FROMENV"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(ConfigError, match="No credentials"):
        open_client(make_spec(credentials=Credentials(provider="env")))


def test_keys_that_must_be_given_are_missed() -> None:
    with pytest.raises(ConfigError, match="No credentials"):
        open_client(make_spec(credentials=Credentials(provider="simple")))


def test_a_role_is_assumed_with_its_external_id_and_again_before_it_expires(sts: Sts) -> None:
    keys = Credentials(access_key="AKIA", secret_key="s", role_arn=ROLE, external_id="word", sts_endpoint=sts.endpoint)
    client = open_client(make_spec(credentials=keys))
    assert keys_of(client) == "ASIA1"
    assert sts.asked[0]["RoleArn"] == [ROLE]
    assert sts.asked[0]["ExternalId"] == ["word"]
    sts.life = timedelta(hours=1)
    assert keys_of(client) == "ASIA2"
    assert keys_of(client) == "ASIA2"
    assert len(sts.asked) == 2


def test_the_reader_is_imported_silently_and_without_boto3() -> None:
    code = (
        "import sys; import lading.sources.kinesis.reader; "
        "heavy = [m for m in ('boto3', 'botocore.session', 'pyspark', 'moto') if m in sys.modules]; "
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
