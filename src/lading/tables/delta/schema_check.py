"""Whether staged files fit the table as it is now. Asked before anything is written to the log."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.tables.delta.actions import Metadata
from lading.tables.delta.columns import DeltaColumn, columns_of
from lading.tables.delta.staged import StagedFacts, parse_staged


def check_fit(metadata: Metadata, staged: Sequence[StagedFile]) -> None:
    """Columns, types, nulls and partition values of every file are those of the table."""
    if not staged:
        return
    columns = columns_of(metadata)
    # By the names that files have: a column may be called otherwise since they were written.
    inside = {column.physical: column.type for column in columns if column.name not in metadata.partition_columns}
    required = [column for column in columns if not column.nullable]
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
            if kind != inside[name]:
                raise _misfit(file, f"has column {name} as {kind}, the table has it as {inside[name]}")
        for column in required:
            if _has_nulls(column, file, facts):
                raise _misfit(file, f"has nulls in column {column.name}, which must have a value")
        if stats.get("numRecords") != file.rows:
            raise _misfit(file, f"has {stats.get('numRecords')} rows by its statistics, not {file.rows}")


def check_names(metadata: Metadata, staged: Sequence[StagedFile]) -> None:
    """Columns have the names that they had when the files were written: jobs fill columns by their names, and another
    column may have that name now. Asked of files that check_fit found to fit.
    """
    now = {column.physical: column.name for column in columns_of(metadata)}
    for file in staged:
        facts = parse_staged(file)
        for inside in facts.columns:
            before = facts.names.get(inside, inside)
            if now[inside] != before:
                raise _misfit(file, f"has column {before}, which the table calls {now[inside]} now")


def _has_nulls(column: DeltaColumn, file: StagedFile, facts: StagedFacts) -> bool:
    if column.name in file.partition:
        return file.partition[column.name] is None
    return column.physical not in facts.columns or column.physical in facts.with_nulls


def _misfit(file: StagedFile, why: str) -> SchemaMismatchError:
    msg = f"The staged file {file.path} {why}"
    return SchemaMismatchError(
        msg, left="Nothing was committed.", todo="The batch is staged again for the table as it is now.", path=file.path
    )
