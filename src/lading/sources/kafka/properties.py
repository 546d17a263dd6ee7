"""Properties of FROM KAFKA(…)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lading.errors import NotSupportedError
from lading.sources.kafka.settings import check_settings
from lading.sources.starts import (
    OFFSET_BEGINNING,
    OFFSET_END,
    PARTITION_END,
    kafka_start,
    read_discovery,
    start_time_or_none,
)
from lading.sql.properties.records import RECORD_NAMES
from lading.sql.properties.values import names, needed, refuse, word

REGISTRY_URL = "schema.registry.url"
_PREFIX = "property."
_DEFAULT = "kafka_default_offsets"
_ON_DATA_LOSS = "property.on_data_loss"
_DISCOVERY = "property.discovery"
_TABLE_NAMES = (
    "kafka_table_name_location",
    "kafka_table_name_format",
    "kafka_text_table_name_field_delimiter",
    "kafka_text_table_name_field_index",
)
_PLAIN = ("kafka_broker_list", "kafka_topic", "kafka_partitions", "kafka_offsets", _DEFAULT, *_TABLE_NAMES)
_AWS = frozenset(
    (
        "aws.region",
        "aws.access_key",
        "aws.secret_key",
        "aws.session_key",
        "aws.role_arn",
        "aws.external_id",
    )
)
_MACHINE = ("aws.profile_name", "aws.credentials_provider")
"""Properties of Doris that choose among what the machine has."""
_REGION = re.compile(r"[a-z0-9-]{1,63}")
KAFKA_NAMES = frozenset((*_PLAIN, *_AWS, f"{_PREFIX}{_DEFAULT}", _ON_DATA_LOSS, _DISCOVERY))
"""Every property of KAFKA(…), but for those of `kafka_settings`, which begin with `property.`."""

KAFKA_TAKEN = KAFKA_NAMES.difference(_TABLE_NAMES) | RECORD_NAMES
"""Those that are not refused whatever they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaProperties:
    """A topic and where to begin in it."""

    broker_list: str
    topic: str
    partitions: tuple[int, ...] = ()
    """Only these are read. Empty: all, also those that are added later."""
    offsets: tuple[str, ...] = ()
    """One for each of `partitions`, or none."""
    default_offset: str = OFFSET_END
    on_data_loss: str = "PAUSE"
    """PAUSE: stop when unread rows are gone. CONTINUE: go on behind the gap and write it down."""
    discovery: str = ""
    """ON: all partitions are read, and `offsets` say where some of them begin. Else `partitions` are the only ones."""
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What goes to the client library."""
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How to sign in to a cluster of MSK."""

    @property
    def registry_url(self) -> str:
        """Of a registry that keeps the schemas of records; empty: there is none."""
        return self.client.get(REGISTRY_URL, "")


def read_kafka_properties(properties: Mapping[str, str]) -> KafkaProperties:
    """The properties of KAFKA(…)."""
    _check_names(properties)
    for name in ("kafka_broker_list", "kafka_topic"):
        if not properties.get(name, "").strip():
            msg = f"{name} is a required property"
            raise refuse(msg, property=name)
    partitions = _partitions(properties.get("kafka_partitions"))
    _check_msk(properties)
    return KafkaProperties(
        broker_list=needed("kafka_broker_list", properties["kafka_broker_list"]),
        topic=needed("kafka_topic", properties["kafka_topic"]),
        partitions=partitions,
        offsets=_offsets(properties, partitions),
        default_offset=_default(properties) or OFFSET_END,
        on_data_loss=word("PAUSE", "CONTINUE")(_ON_DATA_LOSS, properties.get(_ON_DATA_LOSS, "PAUSE")),
        discovery=read_discovery(_DISCOVERY, properties.get(_DISCOVERY, ""), bool(partitions)),
        client=_client(properties),
        aws={name: value for name, value in properties.items() if name in _AWS},
    )


def _check_names(properties: Mapping[str, str]) -> None:
    check_settings({name: properties[name] for name in properties if _is_setting(name)})
    for name in properties:
        if name in _MACHINE:
            msg = f"{name} is not supported: it chooses credentials of the machine of the service"
            raise NotSupportedError(msg, todo="Write aws.access_key and aws.secret_key, or leave all keys out.")
        if name not in KAFKA_NAMES | RECORD_NAMES and not _is_setting(name):
            msg = f"{name} is invalid kafka property or can not be set"
            raise refuse(msg, property=name, todo=f"Known are: {', '.join(sorted(KAFKA_NAMES))} and property.…")
        if name in _TABLE_NAMES:
            msg = f"{name} is for records that name their own table, which is not supported"
            raise NotSupportedError(msg, todo="Make one job for each table.")


def _is_setting(name: str) -> bool:
    """Whether a property goes to the client library or to that of the registry."""
    return name.startswith(_PREFIX) and name not in KAFKA_NAMES


def _client(properties: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(_PREFIX): value for name, value in properties.items() if _is_setting(name)}


def _partitions(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    found = names("kafka_partitions", text)
    if not all(part.isascii() and part.isdigit() for part in found):
        msg = f"Invalid kafka partition: kafka_partitions must be numbers with commas between them, and it is {text!r}"
        raise refuse(msg, property="kafka_partitions", value=text)
    numbers = tuple(int(part) for part in found)
    if len(set(numbers)) != len(numbers):
        msg = f"kafka_partitions names a partition twice: {text!r}"
        raise refuse(msg, property="kafka_partitions", value=text)
    return numbers


def _offsets(properties: Mapping[str, str], partitions: tuple[int, ...]) -> tuple[str, ...]:
    if "kafka_offsets" not in properties:
        return ()
    if _default(properties) is not None:
        msg = f"Only one of kafka_offsets and {_DEFAULT} can be set"
        raise refuse(msg, property="kafka_offsets")
    starts = tuple(kafka_start("kafka_offsets", part) for part in names("kafka_offsets", properties["kafka_offsets"]))
    if len(starts) != len(partitions):
        msg = (
            f"Partitions number should be equals to offsets number: {len(partitions)} partitions, {len(starts)} offsets"
        )
        raise refuse(msg, property="kafka_offsets")
    times = [start_time_or_none(start, "UTC") is not None for start in starts if start != PARTITION_END]
    if any(times) and not all(times):
        msg = "The offset of the partition cannot be specified by the timestamp and the offset at the same time"
        raise refuse(msg, property="kafka_offsets")
    return starts


def _default(properties: Mapping[str, str]) -> str | None:
    """The start of partitions that have none of their own. Both ways of writing it count."""
    given = {properties[name] for name in (f"{_PREFIX}{_DEFAULT}", _DEFAULT) if name in properties}
    if len(given) > 1:
        msg = f"Only one of {_DEFAULT} and {_PREFIX}{_DEFAULT} can be set"
        raise refuse(msg, property=_DEFAULT)
    for text in given:
        start = kafka_start(_DEFAULT, text)
        if start not in (OFFSET_BEGINNING, OFFSET_END) and start_time_or_none(start, "UTC") is None:
            msg = f"{_DEFAULT} can only be set to OFFSET_BEGINNING, OFFSET_END or date time, and it is {text!r}"
            raise refuse(msg, property=_DEFAULT, value=text)
        return start
    return None


def _check_msk(properties: Mapping[str, str]) -> None:
    if not any(name in _AWS for name in properties):
        return
    wanted = {"property.security.protocol": "SASL_SSL", "property.sasl.mechanism": "OAUTHBEARER"}
    if not properties.get("aws.region"):
        msg = "aws.region is a required property when AWS signs in to Kafka"
        raise refuse(msg, property="aws.region")
    if not _REGION.fullmatch(properties["aws.region"]):
        msg = f"Invalid AWS region format: {properties['aws.region']!r}"
        raise refuse(msg, property="aws.region", todo="Write for example eu-west-1.")
    for name, value in wanted.items():
        if properties.get(name, "").upper() != value:
            msg = f"{name} must be {value} when AWS signs in to Kafka"
            raise refuse(msg, property=name)
    for name in ("aws.access_key", "aws.secret_key", "aws.role_arn"):
        if name in properties:
            needed(name, properties[name])
    keys = [name in properties for name in ("aws.access_key", "aws.secret_key")]
    if any(keys) != all(keys):
        msg = "aws.access_key and aws.secret_key go together: the other one must also be set"
        raise refuse(msg, property="aws.access_key")
    if "-public." in properties.get("kafka_broker_list", "") and not all(keys):
        msg = "Public brokers of MSK need aws.access_key and aws.secret_key, which must also be set"
        raise refuse(msg, property="aws.access_key")
