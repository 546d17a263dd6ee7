"""Whether staged files fit the table as it is now. Asked before anything is written to the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.tables.delta.actions import Metadata
from lading.tables.delta.staged import StagedFacts, parse_staged


def check_fit(metadata: Metadata, staged: Sequence[StagedFile]) -> None:
    """Columns, types, nulls and partition values of every file are those of the table."""
    if not staged:
        return
    fields: dict[str, dict[str, Any]] = {field["name"]: field for field in json.loads(metadata.schema_string)["fields"]}
    inside = {name: field for name, field in fields.items() if name not in metadata.partition_columns}
    required = [name for name, field in fields.items() if not field["nullable"]]
    for file in staged:
        facts = parse_staged(file)
        stats = json.loads(facts.stats)
        if set(file.partition) != set(metadata.partition_columns):
            raise _misfit(
                file, f"is partitioned by {sorted(file.partition)}, the table by {metadata.partition_columns}"
            )
        for name, kind in facts.columns.items():
            if name not in inside:
                raise _misfit(file, f"has a column {name} that the table has not")
            if kind != inside[name]["type"]:
                raise _misfit(file, f"has column {name} as {kind}, the table has it as {inside[name]['type']}")
        for name in required:
            if _has_nulls(name, file, facts):
                raise _misfit(file, f"has nulls in column {name}, which must have a value")
        if stats.get("numRecords") != file.rows:
            raise _misfit(file, f"has {stats.get('numRecords')} rows by its statistics, not {file.rows}")


def _has_nulls(name: str, file: StagedFile, facts: StagedFacts) -> bool:
    if name in file.partition:
        return file.partition[name] is None
    return name not in facts.columns or name in facts.with_nulls


def _misfit(file: StagedFile, why: str) -> SchemaMismatchError:
    msg = f"The staged file {file.path} {why}"
    return SchemaMismatchError(
        msg, left="Nothing was committed.", todo="The batch is staged again for the table as it is now.", path=file.path
    )
