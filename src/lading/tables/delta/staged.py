"""What a Delta writer tells the committer about a file, beyond its place and size."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFacts:
    """Columns in the file, and its statistics as they go into the log."""

    columns: Mapping[str, Any]
    """Column → type as Delta's schema string writes it."""
    stats: str
    with_nulls: Collection[str]
    """Columns that hold a null. Statistics do not tell it of every column: the table may leave some out."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Column → what the table called it when the file was written, where that is another name."""


def render_staged(facts: StagedFacts) -> str:
    """As text, for `StagedFile.stats`."""
    body: dict[str, Any] = {
        "columns": dict(facts.columns),
        "stats": facts.stats,
        "with_nulls": sorted(facts.with_nulls),
    }
    if facts.names:
        body["names"] = dict(facts.names)
    return json.dumps(body, separators=(",", ":"))


def parse_staged(file: StagedFile) -> StagedFacts:
    """Read what the writer said. A file that says nothing was not staged for a Delta table."""
    try:
        found = json.loads(file.stats)
        return StagedFacts(
            columns=dict(found["columns"]),
            stats=str(found["stats"]),
            with_nulls=frozenset(found["with_nulls"]),
            names=dict(found.get("names", {})),
        )
    except (ValueError, KeyError, TypeError) as error:
        msg = f"The staged file {file.path} was not written for a Delta table"
        raise SchemaMismatchError(
            msg, left="Nothing was committed.", todo="Stage the batch with the writer of this table."
        ) from error
