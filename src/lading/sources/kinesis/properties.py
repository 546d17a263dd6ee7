"""Properties of FROM KINESIS(…)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from lading.sources.starts import LATEST, SHARD_END, kinesis_start, read_discovery
from lading.sql.properties.records import RECORD_NAMES
from lading.sql.properties.values import Rule, names, needed, read_fields, refuse, whole, word

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)?-[a-z]+-\d")
_ALIAS = {"kinesis_endpoint": "aws.endpoint"}
_DEFAULT = "property.kinesis_default_pos"
_DISCOVERY = "property.discovery"
_MOST_RECORDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisProperties:
    """A stream and where to begin in it."""

    region: str
    stream: str
    endpoint: str = ""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_key: str = field(default="", repr=False)
    role_arn: str = ""
    external_id: str = ""
    credentials_provider: str = ""
    """instance_profile, env or simple. Empty: the usual chain."""
    shards: tuple[str, ...] = ()
    """Only these are read. Empty: all, also those that a reshard makes."""
    shard_positions: tuple[str, ...] = ()
    """One for each of `shards`, or none."""
    default_position: str = LATEST
    request_timeout_ms: int = 30_000
    connection_timeout_ms: int = 10_000
    max_records: int = _MOST_RECORDS
    max_results: int = 1_000
    stream_arn: str = ""
    on_data_loss: str = "PAUSE"
    """PAUSE: stop when unread rows are gone. CONTINUE: go on behind the gap and write it down."""
    kpl: str = "ON"
    """Records that a KPL producer put together. AUTO: take them apart. HASH_RANGE: also drop those whose keys do not
    belong to the shard, as Amazon's own client does. OFF: leave them as they are."""
    discovery: str = ""
    """ON: all shards are read, and `shard_positions` say where some of them begin. Else `shards` are the only ones."""


def _region(name: str, text: str) -> str:
    if not _REGION.fullmatch(text.strip()):
        msg = f"Invalid AWS region format: {text!r}"
        raise refuse(msg, property=name, value=text, todo="Write for example eu-west-1.")
    return text.strip()


def _positions(name: str, text: str) -> tuple[str, ...]:
    return tuple(kinesis_start(name, part) for part in names(name, text))


_MILLISECONDS = whole(lambda n: n >= 1, "should >= 1")
_RULES = (
    Rule(name="aws.region", field="region", read=_region),
    Rule(name="kinesis_stream", field="stream", read=needed),
    Rule(name="aws.endpoint", field="endpoint", read=needed),
    Rule(name="aws.access_key", field="access_key", read=needed),
    Rule(name="aws.secret_key", field="secret_key", read=needed),
    Rule(name="aws.session_key", field="session_key", read=needed),
    Rule(name="aws.role_arn", field="role_arn", read=needed),
    Rule(name="kinesis_shards", field="shards", read=names),
    Rule(name="kinesis_shards_pos", field="shard_positions", read=_positions),
    Rule(name=_DEFAULT, field="default_position", read=kinesis_start),
    Rule(name="property.aws.external.id", field="external_id", read=needed),
    Rule(
        name="property.aws.credentials.provider",
        field="credentials_provider",
        read=word("instance_profile", "env", "simple"),
    ),
    Rule(name="property.aws.request.timeout.ms", field="request_timeout_ms", read=_MILLISECONDS),
    Rule(name="property.aws.connection.timeout.ms", field="connection_timeout_ms", read=_MILLISECONDS),
    Rule(
        name="property.aws.kinesis.max_records",
        field="max_records",
        read=whole(lambda n: 1 <= n <= _MOST_RECORDS, "should between 1 and 10000"),
    ),
    Rule(
        name="property.aws.kinesis.max_results",
        field="max_results",
        read=whole(lambda n: 1 <= n <= _MOST_RECORDS, "should between 1 and 10000"),
    ),
    Rule(name="property.aws.kinesis.stream_arn", field="stream_arn", read=needed),
    Rule(name="property.on_data_loss", field="on_data_loss", read=word("PAUSE", "CONTINUE")),
    Rule(name=_DISCOVERY, field="discovery", read=lambda name, text: read_discovery(name, text, True)),
    Rule(name="property.kpl", field="kpl", read=word("ON", "OFF", "HASH_RANGE")),
)
KINESIS_NAMES = frozenset((*(rule.name for rule in _RULES), *_ALIAS))
"""Every property of KINESIS(…)."""


def read_kinesis_properties(properties: Mapping[str, str]) -> KinesisProperties:
    """The properties of KINESIS(…)."""
    given = _without_aliases(properties)
    _check_names(given)
    for name in ("aws.region", "kinesis_stream"):
        if not given.get(name, "").strip():
            msg = f"{name} is a required property"
            raise refuse(msg, property=name)
    record = KinesisProperties(**read_fields(_RULES, given))
    _check_together(record, given)
    return record


def _without_aliases(properties: Mapping[str, str]) -> dict[str, str]:
    for alias, name in _ALIAS.items():
        if alias in properties and name in properties:
            msg = f"Only one of {name} and {alias} can be set"
            raise refuse(msg, property=alias)
    return {_ALIAS.get(name, name): value for name, value in properties.items()}


def _check_names(properties: Mapping[str, str]) -> None:
    for name in properties:
        if name == "property.aws.kinesis.timestamp":
            msg = f"{name} is invalid Kinesis property or cannot be set: it would have no effect"
            raise refuse(msg, property=name, todo=f"Write {_DEFAULT} = AT_TIMESTAMP(2026-08-01T00:00:00Z).")
        if name not in KINESIS_NAMES | RECORD_NAMES:
            msg = f"{name} is invalid Kinesis property or cannot be set"
            close = get_close_matches(name, KINESIS_NAMES, n=1, cutoff=0.75)
            hint = f"Did you mean {close[0]}? " if close else ""
            raise refuse(msg, property=name, todo=f"{hint}Known are: {', '.join(sorted(KINESIS_NAMES))}.")


def _check_together(record: KinesisProperties, given: Mapping[str, str]) -> None:
    if bool(record.access_key) != bool(record.secret_key):
        there, missing = "aws.access_key", "aws.secret_key"
        there, missing = (there, missing) if record.access_key else (missing, there)
        msg = f"{there} is set, so {missing} must also be set"
        raise refuse(msg, property=missing)
    if record.session_key and not record.access_key:
        msg = "aws.session_key is set, so aws.access_key and aws.secret_key must also be set"
        raise refuse(msg, property="aws.session_key")
    if record.external_id and not record.role_arn:
        msg = "property.aws.external.id is set, so aws.role_arn must also be set"
        raise refuse(msg, property="aws.role_arn")
    if "kinesis_shards_pos" in given and _DEFAULT in given:
        msg = f"Only one of kinesis_shards_pos and {_DEFAULT} can be set"
        raise refuse(msg, property="kinesis_shards_pos")
    if record.shard_positions and len(record.shards) != len(record.shard_positions):
        msg = (
            f"Number of shards must equal number of positions: {len(record.shards)} shards, "
            f"{len(record.shard_positions)} positions"
        )
        raise refuse(msg, property="kinesis_shards_pos")
    read_discovery(_DISCOVERY, record.discovery, bool(record.shards))
    if record.default_position == SHARD_END:
        msg = f"{_DEFAULT} must be TRIM_HORIZON, LATEST, or a valid sequence number, and it is {SHARD_END!r}"
        raise refuse(msg, property=_DEFAULT)
    if len(set(record.shards)) != len(record.shards):
        msg = "kinesis_shards names a shard twice"
        raise refuse(msg, property="kinesis_shards")
