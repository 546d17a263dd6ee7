"""What a job says about its stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pyarrow as pa

from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.sources.records.spec import RecordFormat
from lading.storage.aws import Credentials as Credentials

SHARD, SEQUENCE, SUB_SEQUENCE, ARRIVAL, PARTITION_KEY = (
    "_shard",
    "_sequence",
    "_sub_sequence",
    "_arrival",
    "_partition_key",
)
META = pa.schema(
    [
        (SHARD, pa.string()),
        (SEQUENCE, pa.string()),
        (SUB_SEQUENCE, pa.int64()),
        (ARRIVAL, pa.timestamp("us", tz="UTC")),
        (PARTITION_KEY, pa.string()),
    ]
)
"""Columns that a job may ask for beside those of its records."""


class Kpl(Enum):
    """What is done with records that a producer of Amazon's library put together."""

    ON = "ON"
    """They are taken apart."""
    OFF = "OFF"
    """They stay as they are."""
    HASH_RANGE = "HASH_RANGE"
    """They are taken apart, and one that holds a key of another shard is left out whole, as Amazon's client does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What one shard gives to all of its readers together. The numbers are those of the service."""

    calls_per_s: float = 5.0
    bytes_per_s: float = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisSpec:
    """Everything that driver and executors must agree on. Pickles, so that Spark can carry it."""

    stream: str
    region: str
    format: RecordFormat
    endpoint: str = ""
    stream_arn: str = ""
    """Instead of the name, for a stream of another account."""
    credentials: Credentials = field(default_factory=Credentials)
    request_timeout_ms: int = 30_000
    connection_timeout_ms: int = 10_000
    shards: tuple[str, ...] = ()
    """Only these are read. Empty: all, also those that a reshard makes."""
    kpl: Kpl = Kpl.ON
    max_records: int = 10_000
    """Records of one GetRecords call."""
    max_results: int = 1_000
    """Shards of one page of a listing."""
    meta: tuple[str, ...] = ()
    """Names out of `META`."""
    pace: Pace = Pace()
    addresses: AddressRules = EVERY_PRIVATE
    """What the endpoint may lead to."""

    @property
    def meta_schema(self) -> pa.Schema:
        """The metadata columns that are wanted, in the order of `META`."""
        return pa.schema([column for column in META if column.name in self.meta])

    @property
    def target(self) -> dict[str, Any]:
        """How calls name the stream."""
        return {"StreamARN": self.stream_arn} if self.stream_arn else {"StreamName": self.stream}
