"""Which addresses are public, private, or closed to everybody, however they are written."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lading.net.addresses import (
    EVERY_PRIVATE,
    AddressKind,
    AddressRules,
    is_closed_name,
    kind_of,
    literal_address_or_none,
    parse_networks,
)
from lading.net.peers import guard_peers
from lading.testing.marked import secret

CLOSED, PRIVATE, PUBLIC = AddressKind.CLOSED, AddressKind.PRIVATE, AddressKind.PUBLIC


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("169.254.169.254", CLOSED),
        ("2852039166", CLOSED),
        ("0xa9fea9fe", CLOSED),
        ("0251.0376.0251.0376", CLOSED),
        ("169.254.43518", CLOSED),
        ("::ffff:169.254.169.254", CLOSED),
        ("[::ffff:a9fe:a9fe]", CLOSED),
        ("64:ff9b::a9fe:a9fe", CLOSED),
        ("2002:a9fe:a9fe::1", CLOSED),
        ("fe80::1%eth0", CLOSED),
        ("fd00:ec2::254", CLOSED),
        ("100.100.100.200", CLOSED),
        ("168.63.129.16", CLOSED),
        ("224.0.0.1", CLOSED),
        ("\uff11\uff16\uff19.254.169.254", CLOSED),
        ("127.0.0.1", PRIVATE),
        ("127.1", PRIVATE),
        ("2130706433", PRIVATE),
        ("0x7f.1", PRIVATE),
        ("0", PRIVATE),
        ("0.0.0.0", PRIVATE),
        ("::", PRIVATE),
        ("::1", PRIVATE),
        ("::ffff:10.0.0.1", PRIVATE),
        ("10.2.3.4", PRIVATE),
        ("172.31.0.1", PRIVATE),
        ("192.168.1.1", PRIVATE),
        ("100.64.0.1", PRIVATE),
        ("fd12::1", PRIVATE),
        ("8.8.8.8", PUBLIC),
        ("2606:4700::1111", PUBLIC),
        ("64:ff9b::808:808", PUBLIC),
    ],
)
def test_an_address_is_known_in_every_form(host: str, kind: AddressKind) -> None:
    literal = literal_address_or_none(host)
    assert literal is not None
    assert kind_of(literal) is kind


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data"])
def test_names_of_metadata_services_are_closed(host: str) -> None:
    assert is_closed_name(host)
    assert EVERY_PRIVATE.refusal(host, []) is CLOSED


def test_closed_addresses_are_refused_also_where_everything_private_is_allowed() -> None:
    assert EVERY_PRIVATE.refusal("a.example", ["10.0.0.1"]) is None
    assert EVERY_PRIVATE.refusal("a.example", ["8.8.8.8", "169.254.169.254"]) is CLOSED
    assert AddressRules(hosts=("a.example",)).refusal("a.example", ["169.254.169.254"]) is CLOSED


def test_one_private_address_of_many_is_enough() -> None:
    rules = AddressRules()
    assert rules.refusal("a.example", ["8.8.8.8"]) is None
    assert rules.refusal("a.example", ["8.8.8.8", "10.0.0.1"]) is PRIVATE


def test_networks_and_hosts_open_what_they_name_and_no_more() -> None:
    rules = parse_networks("10.1.0.0/16, 127.0.0.1")
    assert rules.refusal("a", ["10.1.2.3", "127.0.0.1"]) is None
    assert rules.refusal("a", ["::ffff:10.1.2.3"]) is None
    assert rules.refusal("a", ["10.2.0.1"]) is PRIVATE
    named = AddressRules(hosts=("store.example",))
    assert named.refusal("shop.store.example", ["10.0.0.1"]) is None
    assert named.refusal("evilstore.example", ["10.0.0.1"]) is PRIVATE


class _Listener(http.server.BaseHTTPRequestHandler):
    asked: list[str]
    location = ""

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        self.send_response(302 if self.location else 404)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[tuple[int, type[_Listener]]]:
    handler = type("Handler", (_Listener,), {"asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, handler
        server.shutdown()


def ask(port: int, rules: AddressRules) -> str:
    client = boto3.client(
        "s3",
        endpoint_url=f"http://localhost:{port}",
        region_name="eu-west-1",
        aws_access_key_id="a",
        aws_secret_access_key=secret("key"),
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )
    with pytest.raises((BotoCoreError, ClientError)) as caught:
        guard_peers(client, rules).list_objects_v2(Bucket="b")
    client.close()
    return str(caught.value)


def test_a_client_of_aws_says_nothing_to_an_address_that_it_must_not_reach(
    listener: tuple[int, type[_Listener]],
) -> None:
    port, handler = listener
    assert "must not reach" in ask(port, AddressRules())
    assert handler.asked == []
    ask(port, AddressRules(hosts=("localhost",)))
    assert len(handler.asked) == 1


def test_a_client_of_aws_follows_no_redirect(listener: tuple[int, type[_Listener]]) -> None:
    port, handler = listener
    handler.location = f"http://127.0.0.1:{port}/elsewhere"
    ask(port, EVERY_PRIVATE)
    assert not any("elsewhere" in path for path in handler.asked)
