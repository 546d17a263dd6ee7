"""The columns of a Delta table, and what its files and its log call them.

With column mapping (`delta.columnMapping.mode` = name or id) a column has a name for people, which may change, and one
for files, statistics and partition values, which never does, with a number that Parquet files keep. Without it both
names are the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lading.model.field_ids import FIELD_ID
from lading.tables.delta.actions import Metadata

MODE = "delta.columnMapping.mode"
_ID = "delta.columnMapping.id"
_NAME = "delta.columnMapping.physicalName"
_VARIANT = "variant"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaColumn:
    """One column of the table, not one inside another."""

    name: str
    physical: str
    """What files and the log call it."""
    field_id: int | None
    type: Any
    """As Delta's schema string writes it."""
    nullable: bool
    default: str | None
    is_mapped: bool = False
    """The table has column mapping."""

    @property
    def is_written(self) -> bool:
        """Whether Lading can fill it. A column that it cannot is left out of files, and is NULL in their rows."""
        if isinstance(self.type, str):
            return self.type not in (_VARIANT, "void")
        # With column mapping what is inside has names of its own in files, too.
        return not self.is_mapped and _is_made(self.type)


def _is_made(kind: Any) -> bool:
    """Whether a type is made of plain ones, and may hold NULL everywhere."""
    if isinstance(kind, str):
        return kind not in (_VARIANT, "void", "binary")
    if kind["type"] == "struct":
        return all(field["nullable"] and _is_made(field["type"]) for field in kind["fields"])
    inner = [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    return kind.get("containsNull", kind.get("valueContainsNull")) is True and all(map(_is_made, inner))


def mapping_mode(metadata: Metadata) -> str:
    """none, name or id."""
    return metadata.configuration.get(MODE, "none").strip().lower()


def columns_of(metadata: Metadata) -> Sequence[DeltaColumn]:
    """All columns, in the order of the table."""
    is_mapped = mapping_mode(metadata) != "none"
    found = []
    for field in json.loads(metadata.schema_string)["fields"]:
        told: Mapping[str, Any] = field.get("metadata") or {}
        default = told.get("CURRENT_DEFAULT")
        found.append(
            DeltaColumn(
                name=field["name"],
                physical=str(told.get(_NAME, field["name"])) if is_mapped else field["name"],
                field_id=int(told[_ID]) if is_mapped and _ID in told else None,
                type=field["type"],
                nullable=bool(field["nullable"]),
                default=None if default is None else str(default),
                is_mapped=is_mapped,
            )
        )
    return found


def physical_names(metadata: Metadata) -> Mapping[str, str]:
    """Column → what files and the log call it."""
    return {column.name: column.physical for column in columns_of(metadata)}


def file_field(field: pa.Field, physical: str, number: int | None) -> pa.Field:
    """A column as it is in a Parquet file."""
    told = {FIELD_ID: str(number)} if number is not None else None
    return pa.field(physical, field.type, nullable=field.nullable, metadata=told)
