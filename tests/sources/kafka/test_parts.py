"""Starts, shares, settings and secrets: what needs no broker."""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.clock import SystemClock
from lading.errors import ConfigError, ListingError, SqlError
from lading.jobs.reasons import failure_of
from lading.sources.kafka.client import Complaints, open_consumer, without_secrets
from lading.sources.kafka.errors import beyond_end, trimmed
from lading.sources.kafka.msk import token_call
from lading.sources.kafka.reader import output_schema
from lading.sources.kafka.shares import share_bytes, share_rows
from lading.sources.kafka.source import KafkaSource
from lading.sources.kafka.spec import METADATA
from lading.sources.kafka.starts import OFFSET_END, Start, parse_start, render_start
from lading.sources.records.parser import RecordParser
from lading.testing.marked import secret
from tests.sources.kafka.support import FORMAT, spec_of

SECRET = secret("hunter2")
NOWHERE = "127.0.0.1:1"


@given(
    st.sampled_from(["OFFSET_END", "OFFSET_BEGINNING", "2026-01-02T03:04:05+00:00"]),
    st.dictionaries(st.integers(0, 9999), st.integers(0, 2**62).map(str)),
)
def test_a_start_survives_being_written(default: str, partitions: dict[int, str]) -> None:
    assert parse_start(render_start(default, partitions)) == Start(default=default, partitions=partitions)


def test_no_start_is_the_end() -> None:
    assert parse_start("") == Start(default=OFFSET_END)


@pytest.mark.parametrize("place", ["soon", "-1", "2026-01-02 03:04:05", ""])
def test_a_start_that_means_nothing_is_refused(place: str) -> None:
    with pytest.raises(SqlError, match="must be an integer or a date time"):
        parse_start(render_start(place))


@given(st.dictionaries(st.integers(0, 50), st.integers(1, 10**9), max_size=20), st.integers(1, 10**9))
def test_rows_are_shared_within_the_limit_and_nobody_starves(available: dict[int, int], limit: int) -> None:
    shares = share_rows(available, limit)
    assert shares.keys() == available.keys()
    assert all(0 < shares[number] <= count for number, count in available.items())
    assert sum(shares.values()) <= max(limit, len(available))
    if sum(available.values()) <= limit:
        assert shares == available
    else:
        unsated = [shares[number] for number, count in available.items() if shares[number] < count]
        assert not unsated or max(shares.values()) - min(unsated) <= 1


@given(st.dictionaries(st.integers(0, 50), st.integers(1, 10**9), max_size=20), st.integers(1000, 10**10))
def test_bytes_are_shared_within_the_limit(rows: dict[int, int], limit: int) -> None:
    shares = share_bytes(rows, limit)
    assert sum(shares.values()) <= limit
    assert all(share >= limit // 2 // len(rows) for share in shares.values())


def test_a_spec_pickles_and_shows_no_secret() -> None:
    spec = spec_of(NOWHERE, "t", client={"sasl.password": SECRET}, aws={"aws.secret_key": SECRET})
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert SECRET not in repr(spec)
    assert SECRET not in without_secrets(spec, f"login with {SECRET} failed")


def test_the_output_has_the_schema_that_is_announced() -> None:
    spec = spec_of(NOWHERE, "t", metadata=tuple(METADATA.names))
    assert output_schema(spec) == RecordParser(FORMAT, spec.metadata_schema).schema


def test_unknown_metadata_is_refused() -> None:
    with pytest.raises(ConfigError, match="_colour"):
        spec_of(NOWHERE, "t", metadata=("_colour",))


@pytest.mark.parametrize(
    ("name", "value"),
    [("isolation.level", "read_uncommitted"), ("enable.auto.commit", "true"), ("auto.offset.reset", "latest")],
)
def test_settings_that_would_break_the_promise_are_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        KafkaSource(spec_of(NOWHERE, "t", client={name: value}), SystemClock())


def test_settings_that_say_what_lading_does_anyway_are_fine() -> None:
    KafkaSource(spec_of(NOWHERE, "t", client={"isolation.level": "read_committed"}), SystemClock())


@pytest.mark.parametrize("settings", [{"no.such.setting": SECRET}, {"security.protocol": "CARRIER_PIGEON"}])
def test_a_setting_that_the_client_does_not_know_is_named(settings: dict[str, str]) -> None:
    spec = spec_of(NOWHERE, "t", client={**settings, "sasl.password": SECRET})
    with pytest.raises(ConfigError, match=next(iter(settings))) as caught:
        open_consumer(spec, Complaints(spec))
    assert SECRET not in str(caught.value)


def test_nobody_answers_is_an_error_that_passes_and_comes_in_time() -> None:
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    spec = spec_of(NOWHERE, "orders", client={**client, "sasl.password": SECRET})
    source = KafkaSource(spec, SystemClock(), timeout_s=1)
    clock = SystemClock()
    begun = clock.monotonic_s()
    with pytest.raises(ListingError, match="orders") as caught:
        source.open("")
    assert clock.monotonic_s() - begun < 8
    assert caught.value.retry
    assert not failure_of(caught.value).reason.needs_attention
    assert "Connection refused" in str(caught.value)
    assert SECRET not in str(caught.value)
    source.close()


def test_trimmed_and_cut_logs_need_a_person() -> None:
    for error, words in (
        (trimmed("t", 3, 5, 9), ("Offset out of range", "consume partition 3", "consume offset 5")),
        (beyond_end("t", 3, 9, 5), ("is greater than kafka latest offset 5",)),
    ):
        assert failure_of(error).reason.needs_attention
        assert all(word in str(error) for word in words)


def test_msk_without_its_signer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    spec = spec_of(NOWHERE, "t", aws={"aws.region": "eu-west-1"})
    with pytest.raises(ConfigError, match="aws-msk-iam-sasl-signer-python"):
        open_consumer(spec, Complaints(spec))


@pytest.mark.parametrize(
    ("aws", "way"),
    [
        ({}, "chain"),
        ({"aws.role_arn": "arn:1"}, "role arn:1"),
        ({"aws.access_key": "AK", "aws.secret_key": SECRET, "aws.session_key": "ST"}, f"keys AK {SECRET} ST"),
    ],
)
def test_msk_signs_in_the_way_that_is_set(aws: dict[str, str], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Signer:
        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            return "chain", 5000

        @staticmethod
        def generate_auth_token_from_role_arn(region: str, role: str) -> tuple[str, int]:
            return f"role {role}", 5000

        @staticmethod
        def generate_auth_token_from_credentials_provider(region: str, provider: Any) -> tuple[str, int]:
            keys = provider.load()
            return f"keys {keys.access_key} {keys.secret_key} {keys.token}", 5000

    module: Any = types.ModuleType("aws_msk_iam_sasl_signer")
    module.MSKAuthTokenProvider = Signer
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", module)
    assert token_call({"aws.region": "eu-west-1", **aws})("") == (way, 5.0)
