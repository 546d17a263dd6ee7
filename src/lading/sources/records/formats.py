"""How rows stand in the records of a load."""

from __future__ import annotations

from collections.abc import Mapping

from lading.model.load import LoadSpec
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess

REGISTRY = "schema.registry."
"""Settings of a registry begin with this."""


def record_format(load: LoadSpec, columns: tuple[str, ...], settings: Mapping[str, str] | None = None) -> RecordFormat:
    """How rows stand in a record. `settings` are those of a client, among which a registry may have its own."""
    kind, registry = RecordKind(load.records.format), None
    if kind.needs_registry and settings is not None:
        own = {name.removeprefix(REGISTRY): value for name, value in settings.items() if name.startswith(REGISTRY)}
        registry = RegistryAccess(url=own.pop("url"), settings=own)
    return RecordFormat(kind=kind, columns=columns, csv=load.records.csv, json=load.records.json, registry=registry)
