"""Partition values of a Paimon table: as text while files are staged, as values in manifests, as names of folders.

Readers find a file by its partition: the folder must be named exactly as Paimon names it. The commit compares the names
given here with pypaimon's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lading.errors import ConfigError
from lading.tables.parquet import PartitionKey

DEFAULT_NAME = "__DEFAULT_PARTITION__"
BUCKET = "bucket-0"
_ESCAPED = frozenset("\"#%'*/:=?\\{}[]^\x7f")
_EPOCH = date(1970, 1, 1)


def check_partition_type(name: str, kind: pa.DataType) -> None:
    """Refuse a type whose folder engines name differently. Raises ConfigError."""
    if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return
    msg = f"A Paimon table cannot be partitioned by {name}, which is {kind}"
    todo = "Partition by a column of texts, whole numbers, dates or booleans."
    raise ConfigError(msg, left="Nothing was made.", todo=todo)


def render_values(column: pa.Array) -> pa.Array:
    """One text per row; null for null, and an empty text for an empty one."""
    return column.cast(pa.string())


def parse_value(text: str | None, kind: pa.DataType) -> Any:
    """The value that a text stands for, as pypaimon wants it."""
    if text is None or pa.types.is_string(kind):
        return text
    if pa.types.is_date32(kind):
        return date.fromisoformat(text)
    if pa.types.is_boolean(kind):
        return text == "true"
    return Decimal(text) if pa.types.is_decimal(kind) else int(text)


def folder_of(
    names: Sequence[str], kinds: Sequence[pa.DataType], key: PartitionKey, *, default: str, legacy: bool
) -> str:
    """`column=value/…/bucket-0`. With legacy names, which a table may ask for, a date is its number of days."""
    parts = [
        f"{_escape(name)}={_escape(_folder_value(text, kind, default, legacy=legacy))}"
        for name, kind, text in zip(names, kinds, key, strict=True)
    ]
    return "/".join([*parts, BUCKET])


def _folder_value(text: str | None, kind: pa.DataType, default: str, *, legacy: bool) -> str:
    if text is None or not text.strip():
        return default
    if legacy and pa.types.is_date32(kind):
        return str((date.fromisoformat(text) - _EPOCH).days)
    return text


def _escape(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" if ord(letter) < 32 or letter in _ESCAPED else letter for letter in text)
