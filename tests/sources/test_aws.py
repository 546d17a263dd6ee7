"""Keys and roles: assumed, used, renewed in time; and clients that are shared."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lading.clock import SystemClock
from lading.errors import ConfigError, ListingError
from lading.model.s3_access import S3Access
from lading.sources.files.listing import list_files
from lading.storage.aws import Credentials, open_session, sts_endpoint_of
from lading.storage.s3 import S3Store
from lading.storage.s3_client import client_of
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from tests.guarded_s3 import GuardedStore
from tests.tables.s3_server import S3Server

ROLE = "arn:aws:iam::123456789012:role/reader"
MINUTE = 60.0


@pytest.mark.parametrize(
    ("endpoint", "given", "asked"),
    [
        ("", "", ""),
        ("https://s3.eu-west-1.amazonaws.com", "", ""),
        ("https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com", "", ""),
        ("https://s3.cn-north-1.amazonaws.com.cn/", "", ""),
        ("http://minio:9000", "", "http://minio:9000"),
        ("https://amazonaws.com.evil.example", "", "https://amazonaws.com.evil.example"),
        ("http://minio:9000", "http://sts:1", "http://sts:1"),
        ("", "http://sts:1", "http://sts:1"),
    ],
)
def test_a_store_of_its_own_gives_its_own_roles(endpoint: str, given: str, asked: str) -> None:
    assert sts_endpoint_of(endpoint, given) == asked


def test_a_role_is_assumed_once_and_renewed_before_it_expires(s3: S3Server) -> None:
    clock = ManualClock(SystemClock().now())
    asked = Credentials(access_key=secret("access"), secret_key=secret("key"), role_arn=ROLE, sts_endpoint=s3.endpoint)
    held = open_session(asked, "us-east-1", now=clock.now).get_credentials()
    first = held.get_frozen_credentials()
    assert first.token
    clock.sleep(40 * MINUTE)
    assert held.get_frozen_credentials() == first
    clock.sleep(6 * MINUTE)  # A quarter of an hour is left of the hour that they are good for.
    assert held.get_frozen_credentials().access_key != first.access_key


def test_credentials_that_come_expired_say_to_look_at_the_clock(s3: S3Server) -> None:
    clock = ManualClock(SystemClock().now())
    clock.sleep(10 * 60 * MINUTE)
    asked = Credentials(access_key=secret("access"), secret_key=secret("key"), role_arn=ROLE, sts_endpoint=s3.endpoint)
    with pytest.raises(ConfigError, match="had expired when they came"):
        open_session(asked, "us-east-1", now=clock.now).get_credentials().get_frozen_credentials()


def test_nobody_can_assume_a_role_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(ConfigError, match="No credentials were found to assume the role"):
        client_of(S3Access(role_arn=ROLE, region="us-east-1"))


def access_of(store: GuardedStore, role: str = "", external_id: str = "") -> S3Access:
    return S3Access(
        endpoint=store.endpoint,
        region="us-east-1",
        access_key=store.key["AccessKeyId"],
        secret_key=store.key["SecretAccessKey"],
        role_arn=role,
        external_id=external_id,
        path_style=True,
    )


def test_the_role_may_what_its_keys_may_not(guarded: GuardedStore) -> None:
    guarded.put("aws/a.csv", "1\n")
    with pytest.raises(ListingError, match=r"Can not build s3: .*AccessDenied.*ListObjectsV2"):
        list(list_files(S3Store(guarded.bucket, access_of(guarded)), "aws/", "", None))
    store = S3Store(guarded.bucket, access_of(guarded, guarded.role, guarded.external_id))
    found = list(store.list("aws/", ""))
    assert [item.key for item in found] == ["aws/a.csv"]
    assert store.open(found[0].key, if_match=found[0].etag, size=found[0].size).read() == b"1\n"


def test_a_role_that_does_not_trust_the_keys_or_the_external_id_is_said_to_be_so(guarded: GuardedStore) -> None:
    for role, word in ((guarded.closed_role, ""), (guarded.role, "another word")):
        store = S3Store(guarded.bucket, access_of(guarded, role, word))
        with pytest.raises(ListingError, match=f"the role {role} cannot be assumed") as caught:
            list(list_files(store, "aws/", "", None))
        assert "trust policy" in caught.value.todo


def test_keys_that_nobody_knows_are_said_to_be_so(guarded: GuardedStore) -> None:
    access = replace(access_of(guarded), access_key="AKIANOBODY")
    with pytest.raises(ListingError, match=r"Can not build s3: .*InvalidAccessKeyId"):
        list(list_files(S3Store(guarded.bucket, access), "aws/", "", None))


def test_an_answer_that_is_not_of_a_store_is_a_failed_listing() -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Portal(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!doctype html><title>Please log in</title>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Portal)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    access = S3Access(
        endpoint=f"http://127.0.0.1:{server.server_address[1]}",
        region="us-east-1",
        access_key="a",
        secret_key="b",
        path_style=True,
    )
    try:
        with pytest.raises(ListingError, match="Failed to fetch meta"):
            list(list_files(S3Store("b", access), "in/", "", None))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_thousand_jobs_with_one_access_share_one_client() -> None:
    access = S3Access(endpoint="http://127.0.0.1:1", region="us-east-1", access_key="shared", secret_key="s")
    gate = threading.Barrier(8)

    def make(number: int) -> int:
        if number < 8:
            gate.wait()
        return id(S3Store(f"bucket-{number}", replace(access))._s3)  # what is shared is inside

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(1_000)))) == 1
    assert client_of(replace(access, secret_key="another")) is not client_of(access)


def test_importing_it_is_quick_and_silent() -> None:
    code = (
        "import sys, lading.storage.aws, lading.sources.files.reader; "
        "heavy = [m for m in ('boto3', 'botocore') if m in sys.modules]; assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_clients_share_what_is_read_of_the_services_of_aws() -> None:
    """It is most of the work of making one, and a service makes many."""
    with ThreadPoolExecutor(8) as pool:
        asked = Credentials(access_key="a", secret_key=secret("b"))
        sessions = list(pool.map(lambda _: open_session(asked, "us-east-1"), range(16)))
    first, *others = (session._session.get_component("data_loader") for session in sessions)
    assert all(other is first for other in others)
    assert len(first.search_paths) == len(set(first.search_paths))
    models = [session.client("s3").meta.service_model for session in sessions[:2]]
    assert models[0]._service_description is models[1]._service_description
