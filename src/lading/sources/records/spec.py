"""What a job says about the bytes of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lading.errors import SqlError
from lading.model.load import LoadSpec
from lading.model.row_formats import CsvOptions, JsonOptions
from lading.model.rows import REST
from lading.sources.fields import FieldWatch
from lading.sources.files.spec import MAX_RECORD_BYTES
from lading.sql.properties.records import RECORD_NAMES, SelectedRecords, read_selected_records


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
    watch: FieldWatch | None = None
    """What is done about fields that the job does not know. None: nobody looks at them."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer record is a bad row. Bounds memory."""


REGISTRY = "schema.registry."
"""Settings of a registry begin with this."""


def records_of(load: LoadSpec) -> SelectedRecords:
    """What a load says of its records: a SELECT among the properties of its source, a routine load in its own."""
    if load.mapping.is_select:
        return read_selected_records(load.source.properties)
    for name in load.source.properties:
        if name in RECORD_NAMES:
            msg = f"{name} is invalid property of {load.source.kind}(…) in a routine load"
            raise SqlError(msg, property=name, todo="Write it in PROPERTIES, or columns as COLUMNS(…).")
    return SelectedRecords(options=load.records)


def registry_access(settings: Mapping[str, str]) -> RegistryAccess | None:
    """The registry that the settings of a client name; None: they name none."""
    own = {name.removeprefix(REGISTRY): value for name, value in settings.items() if name.startswith(REGISTRY)}
    url = own.pop("url", "")
    return RegistryAccess(url=url, settings=own) if url else None


def record_format(
    load: LoadSpec,
    columns: tuple[str, ...],
    settings: Mapping[str, str] | None = None,
    watch: FieldWatch | None = None,
) -> RecordFormat:
    """How rows stand in a record. `settings` are those of a client, among which a registry may have its own."""
    records = records_of(load)
    options, registry = records.options, None
    kind = RecordKind(options.format)
    if kind.needs_registry and settings is not None:
        registry = registry_access(settings)
    names = records.columns or columns
    return RecordFormat(
        kind=kind,
        columns=(*names, REST) if watch is not None else names,
        csv=options.csv,
        json=options.json,
        registry=registry,
        watch=watch,
    )
