"""What a job says about the bytes of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lading.model.load import LoadSpec
from lading.model.row_formats import CsvOptions, JsonOptions
from lading.sources.files.spec import MAX_RECORD_BYTES


class RecordKind(Enum):
    """How rows stand in a record."""

    CSV = "csv"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"

    @property
    def needs_registry(self) -> bool:
        return self in (RecordKind.AVRO, RecordKind.PROTOBUF)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """How to reach a schema registry that speaks as Confluent's does."""

    url: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passed on to the client: `basic.auth.user.info`, `ssl.ca.location`, `timeout`. May hold secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat:
    """Everything that driver and executors must agree on. Pickles, so that Spark can carry it."""

    kind: RecordKind = RecordKind.CSV
    columns: tuple[str, ...]
    """Source columns. All of them are read as strings."""
    csv: CsvOptions = field(default_factory=CsvOptions)
    json: JsonOptions = field(default_factory=JsonOptions)
    registry: RegistryAccess | None = None
    """For avro and protobuf; the others need none."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer record is a bad row. Bounds memory."""


REGISTRY = "schema.registry."
"""Settings of a registry begin with this."""


def record_format(load: LoadSpec, columns: tuple[str, ...], settings: Mapping[str, str] | None = None) -> RecordFormat:
    """How rows stand in a record. `settings` are those of a client, among which a registry may have its own."""
    kind, registry = RecordKind(load.records.format), None
    if kind.needs_registry and settings is not None:
        own = {name.removeprefix(REGISTRY): value for name, value in settings.items() if name.startswith(REGISTRY)}
        registry = RegistryAccess(url=own.pop("url"), settings=own)
    return RecordFormat(kind=kind, columns=columns, csv=load.records.csv, json=load.records.json, registry=registry)
