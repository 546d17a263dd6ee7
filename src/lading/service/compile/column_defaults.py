"""Columns that a job does not fill and that have a default in the table (Delta's `allowColumnDefaults`)."""

from __future__ import annotations

import re
from dataclasses import replace

from lading.errors import ConfigError
from lading.pipeline.mapping import RowMapping, TargetColumn
from lading.tables.base import WriterSpec

_LITERAL = re.compile(
    r"null|true|false|[+-]?\d+(\.\d+)?(e[+-]?\d+)?|((date|timestamp|timestamp_ntz)\s*)?'[^'\\]*'"
    r"|current_(date|timestamp)(\(\))?|now\(\)",
    re.IGNORECASE,
)
"""What is taken into a statement for Spark: it was written by somebody who may be nobody here."""


def with_defaults(mapping: RowMapping, target: WriterSpec) -> RowMapping:
    """The mapping with the defaults of the table where the job gives nothing. ConfigError: one has to be computed."""
    return replace(mapping, columns=tuple(_column(column, target) for column in mapping.columns))


def _column(column: TargetColumn, target: WriterSpec) -> TargetColumn:
    default = target.defaults.get(column.name, "").strip()
    if column.expression is not None or not default:
        return column
    if _LITERAL.fullmatch(default) is None:
        msg = f"Column {column.name} of the table has a default that Lading does not compute: {default}"
        todo = "Fill the column in the job, or make its default a literal."
        raise ConfigError(msg, left="Nothing was loaded.", todo=todo)
    return replace(column, expression=default)
