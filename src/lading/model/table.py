"""A table as people describe it: columns, partition fields, place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. `type` is a Spark SQL type name such as `bigint` or `decimal(10,2)`."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """How one partition value is made from a column."""

    column: str
    transform: str = "identity"
    """identity, year, month, day, hour, bucket[N] or truncate[W]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What CREATE TABLE says."""

    columns: tuple[Column, ...]
    partition_by: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """A column that a table gets, or the wider type of one that it has."""

    name: str
    type: str
    """Spark SQL name."""
    is_new: bool = True
    after: str | None = None
    """A new column stands behind this one; empty: it is the first. None: it is the last."""
    comment: str = ""

    def __str__(self) -> str:
        return f"{'ADD' if self.is_new else 'MODIFY'} COLUMN {self.name} {self.type}"
