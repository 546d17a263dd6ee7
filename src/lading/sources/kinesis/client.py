"""The door to the service: a client, and calls that are tried again by Lading's own rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from typing import Any, Protocol

from botocore.exceptions import ConnectionClosedError

from lading.clock import Clock
from lading.net.peers import guard_peers
from lading.sources.kinesis.errors import EXPIRED_ITERATOR, Foreign, code_of, is_passing, is_throttled, translated
from lading.sources.kinesis.spec import KinesisSpec
from lading.storage.aws import open_session

MAX_TRIES = 6
_FIRST_DELAY_S, _MAX_DELAY_S = 0.25, 10.0
_POOL = 32
_FAILED = 300


class Client(Protocol):
    """The calls of a boto3 client that are used. Safe for threads."""

    def describe_stream_summary(self, **arguments: Any) -> dict[str, Any]: ...
    def list_shards(self, **arguments: Any) -> dict[str, Any]: ...
    def get_shard_iterator(self, **arguments: Any) -> dict[str, Any]: ...
    def get_records(self, **arguments: Any) -> dict[str, Any]: ...


class Backoff:
    """Growing delays with jitter: between half of the delay and all of it, so that readers do not march in step."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or Random()  # noqa: S311  # jitter
        self._tries = 0

    def next_delay_s(self) -> float:
        delay = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2.0**self._tries)
        self._tries += 1
        return delay * self._random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._tries = 0


def call(
    stream: str, clock: Clock, ask: Callable[..., dict[str, Any]], *, max_tries: int = MAX_TRIES, **arguments: Any
) -> dict[str, Any]:
    """One call, tried again while that can help. For the driver, where a call is small and nobody else waits.

    Raises errors of botocore that trying again cannot fix, so that a caller may read their code; errors that did not
    pass are translated.
    """
    backoff = Backoff()
    for tries in range(1, max_tries + 1):
        try:
            return ask(**arguments)
        except Foreign as error:
            if code_of(error) == EXPIRED_ITERATOR or not (is_throttled(error) or is_passing(error)):
                raise
            if tries == max_tries:
                raise translated(error, stream, f"calling {getattr(ask, '__name__', 'it')}") from error
            clock.sleep(backoff.next_delay_s())
    raise AssertionError


def server_date_or_none(answer: Mapping[str, Any]) -> datetime | None:
    """The service's own time, cut to the second: never later than the moment it answered."""
    text = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        date = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return date if date is None or date.tzinfo else date.replace(tzinfo=UTC)


_PARTS = {
    "DescribeStreamSummary": "StreamDescriptionSummary",
    "GetRecords": "Records",
    "GetShardIterator": "ShardIterator",
    "ListShards": "Shards",
}
"""What every answer to a call has."""


def check_whole(*, model: Any, parsed: Mapping[str, Any], http_response: Any, **_: Any) -> None:
    """Refuse an answer that lacks what every answer of its kind has: the connection ended among its headers, and
    botocore takes it for an empty one."""
    part = _PARTS.get(model.name)
    if part is not None and http_response.status_code < _FAILED and part not in parsed:
        raise ConnectionClosedError(endpoint_url=http_response.url)


def open_client(spec: KinesisSpec) -> Client:
    """A boto3 client. botocore tries nothing again by itself: its own retries would hide throttling from the pace."""
    from botocore.config import Config

    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=spec.connection_timeout_ms / 1000,
        read_timeout=spec.request_timeout_ms / 1000,
        max_pool_connections=_POOL,
    )
    client: Client = open_session(spec.credentials, spec.region).client(
        "kinesis", region_name=spec.region, endpoint_url=spec.endpoint or None, config=config
    )
    client.meta.events.register("after-call.kinesis", check_whole)  # type: ignore[attr-defined]  # of boto3's clients
    return guard_peers(client, spec.addresses) if spec.endpoint else client
