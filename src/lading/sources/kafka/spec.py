"""What a job says about its topic: where it is, how to sign in, and what its records are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lading.errors import ConfigError
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.sources.records.spec import RecordFormat

METADATA = pa.schema(
    [
        ("_key", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", pa.timestamp("us", tz="UTC")),
        ("_headers", pa.string()),
    ]
)
"""What Kafka knows of a record beside its value. Bytes that are no UTF-8 become U+FFFD in keys and headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSpec:
    """Everything that driver and executors must agree on. Pickles, so that Spark can carry it."""

    brokers: str
    """`host:port`, with commas between them."""
    topic: str
    format: RecordFormat
    partitions: tuple[int, ...] = ()
    """Only these are read. Empty: all, also those that are added later."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of librdkafka. May hold secrets. `group.id` is where positions are acknowledged, and nothing else."""
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How to sign in to a cluster of MSK: `aws.region` and the others. May hold secrets."""
    metadata: tuple[str, ...] = ()
    """Names of METADATA that the job wants beside the columns of the records."""
    addresses: AddressRules = EVERY_PRIVATE
    """What the hosts of brokers may lead to, also of those that the cluster tells."""
    patience_s: float = 60.0
    """How long a reader waits for the next record of a range before it gives up."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.metadata if name not in METADATA.names]
        if unknown:
            msg = f"Kafka has no metadata column {', '.join(unknown)}"
            raise ConfigError(msg, left="Nothing was read.", todo=f"Known are: {', '.join(METADATA.names)}.")
        twice = sorted(set(self.metadata) & set(self.format.columns))
        if twice:
            msg = f"The records and Kafka's metadata both give a column {', '.join(twice)}"
            raise ConfigError(msg, left="Nothing was read.", todo="Name it once.")

    @property
    def metadata_schema(self) -> pa.Schema:
        """The wanted metadata columns."""
        return pa.schema([METADATA.field(name) for name in self.metadata])
