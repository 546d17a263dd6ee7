"""Names of partition folders. For people: readers take partition values from the table's own metadata."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import pyarrow as pa

from lading.model.notices import PartitionField

_LONGEST = 200
_LONGEST_PATH = 600
_SHORTEST = 40
_PLAIN = re.compile(r"[^A-Za-z0-9_]")


def short_folders(names: Sequence[str]) -> str:
    """The path of these folders, each `column=value`: one that is too long becomes `column-digest`.

    File systems refuse long names, stores long keys, and a partition value can be any text. A long name is not cut:
    Polars reads partition values of Delta from `column=value` in the path, whatever the log says, and would take what
    is left of a value for the value. Where there is no `=`, it refuses to read the table that way, and says so.
    """
    longest = max(_SHORTEST, min(_LONGEST, _LONGEST_PATH // max(1, len(names))))
    return "/".join(name if len(name) <= longest else _digested(name) for name in names)


def column_fields(names: Sequence[str], schema: pa.Schema) -> tuple[PartitionField, ...]:
    """The fields of a table that is partitioned by columns, whose values are texts."""
    dates = {name for name in names if pa.types.is_date(schema.field(name).type)}
    return tuple(PartitionField(name=name, form="date" if name in dates else "text") for name in names)


def _digested(name: str) -> str:
    column = _PLAIN.sub("", name.partition("=")[0])[:_SHORTEST]
    return f"{column}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
