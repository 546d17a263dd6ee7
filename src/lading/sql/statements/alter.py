"""ALTER, applied: an old definition and a change give a new definition, or a reason why not.

Whether the job exists and is paused is for others to say; here it is only about the texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Protocol

from lading.errors import SqlError
from lading.sql.properties.jobs import read_job_properties
from lading.sql.properties.listeners import check_listener_tokens
from lading.sql.properties.routine import ALTERABLE_PROPERTY_NAMES, check_names, read_routine_properties
from lading.sql.statements.definitions import check_merge_rules
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad, CreateJob, CreateRoutineLoad
from lading.sql.statements.parts import InsertSelect, LoadClauses, QualifiedName, SourceFunction
from lading.sql.syntax.spans import is_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredRoutineLoad:
    """A routine load after ALTER."""

    statement: CreateRoutineLoad
    moves: Mapping[str, str] = field(default_factory=dict)
    """Partitions that an operator sends elsewhere, and where, in the words of the source."""
    is_new_source: bool = False
    """Another topic or stream: nothing that was known about positions is true any longer."""


_ADDRESS = re.compile(r"broker_list$|bootstrap|endpoint|\burl$|\.url$|brokers")
"""Names of properties that say whom a stream or its registry is asked of."""


def alter_streaming_job(
    old: CreateJob, alter: AlterJob, *, current_db: str | None = None, fixed: Collection[str] = ("uri",)
) -> CreateJob:
    """The definition after ALTER JOB. `current_db` is what a table without a database means, `fixed` are properties of
    the source that stay as they are.
    """
    insert = alter.insert if alter.insert is not None else old.insert
    if alter.insert is not None:
        _check_insert(old.insert, alter.insert, current_db, fixed)
    check_listener_tokens(old.properties, alter.properties)
    new = replace(old, properties={**old.properties, **alter.properties}, insert=insert)
    # The same offset again is a move back to it, and the same join again is that of the user who writes it.
    is_meant = "offset" in alter.properties or (alter.insert is not None and alter.insert.join is not None)
    if new == old and not is_meant:
        msg = "No properties or sql changed"
        raise SqlError(msg, code="Alter", todo="Say what is to be different.")
    read_job_properties(new.properties)
    return new


def _check_insert(old: InsertSelect, new: InsertSelect, current_db: str | None, fixed: Collection[str]) -> None:
    if _full(old.table, current_db) != _full(new.table, current_db):
        msg = f"target table cannot be modified in ALTER JOB: it is {old.table}, not {new.table}"
        raise SqlError(
            msg, code="Alter", place=new.table.span, hint="another table", todo="Make a new job for another table."
        )
    if old.source.name != new.source.name:
        msg = f"source type cannot be modified in ALTER JOB: it is {old.source.name}, not {new.source.name}"
        raise SqlError(
            msg, code="Alter", place=new.source.span, hint="another source", todo="Make a new job for another source."
        )
    for name in fixed:
        before = old.source.properties.get(name)
        if before != new.source.properties.get(name):
            msg = f"The {name} property cannot be modified in ALTER JOB: it is {before!r}"
            todo = 'Make a new job for another source; PROPERTIES ("offset" = …) moves this one.'
            raise SqlError(msg, code="Alter", place=new.source.span, hint=f"another {name}", todo=todo)


def _full(name: QualifiedName, current_db: str | None) -> QualifiedName:
    return name if current_db is None else name.bound(current_db)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredSource:
    """The properties of a stream after ALTER."""

    properties: Mapping[str, str]
    moves: Mapping[str, str] = field(default_factory=dict)
    is_new: bool = False


class AlterableSource(Protocol):
    """What ALTER has to know of a stream. The kinds of `sources` know it."""

    @property
    def subject(self) -> str:
        """The property that names the topic or stream: another value is another one, with positions of its own."""
        ...

    @property
    def used_with_keys(self) -> Collection[str]:
        """Other properties that say what is read with the keys, and how they are sent; those with addresses are known
        by their names.
        """
        ...

    def alter(self, old: Mapping[str, str], changed: Mapping[str, str], consumed: Collection[str]) -> AlteredSource:
        """The properties after ALTER names some. `consumed` are the partitions that the job reads. Raises SqlError.

        Law: what the statement does not name stays as it is, and nothing that was read is read again unless a move
        says so.
        """
        ...

    def begin_again(self, old: Mapping[str, str], changed: Mapping[str, str]) -> Mapping[str, str]:
        """The same for a topic or stream that was deleted and made again under its name: positions are forgotten."""
        ...


def names_same_source(old: CreateRoutineLoad, alter: AlterRoutineLoad, kind: AlterableSource) -> bool:
    """Whether ALTER names the topic or stream that the job has already."""
    if alter.source is None:
        return False
    return alter.source.properties.get(kind.subject) == old.source.properties[kind.subject]


def alter_routine_load(
    old: CreateRoutineLoad,
    alter: AlterRoutineLoad,
    kind: AlterableSource,
    *,
    consumed: Collection[str],
    is_made_again: bool = False,
) -> AlteredRoutineLoad:
    """The definition after ALTER ROUTINE LOAD. `consumed` are the partitions or shards that the job reads now.

    A topic or stream that was deleted and made again under its name is a new one: its positions begin again at the
    default of the job, and partitions that were named as the only ones still are.
    """
    check_names(alter.properties, ALTERABLE_PROPERTY_NAMES)
    check_listener_tokens(old.properties, alter.properties)
    clauses = _merged_clauses(old.clauses, alter.clauses)
    new = replace(old, clauses=clauses, properties={**old.properties, **alter.properties})
    check_merge_rules(new)
    read_routine_properties(new.properties, column_separator=clauses.column_separator)
    if alter.source is None:
        return AlteredRoutineLoad(statement=new)
    changed = alter.source.properties
    if is_made_again:
        altered = AlteredSource(properties=kind.begin_again(old.source.properties, changed), is_new=True)
    else:
        altered = kind.alter(old.source.properties, changed, consumed)
    source = SourceFunction(name=old.source.name, properties=altered.properties)
    return AlteredRoutineLoad(statement=replace(new, source=source), moves=altered.moves, is_new_source=altered.is_new)


def check_keys_stay(old: CreateRoutineLoad, alter: AlterRoutineLoad, kind: AlterableSource) -> None:
    """Keys are for the address, the topic and the protocol that they were given for.

    Raises SqlError when another one is named without them: users who may alter a job could point them elsewhere.
    """
    changed = alter.source.properties if alter.source is not None else {}
    known = old.source.properties
    moved = [name for name, value in changed.items() if _is_reached_with_keys(name, kind) and known.get(name) != value]
    kept = sorted(name for name in known if is_secret(name) and name not in changed)
    if moved and kept:
        msg = f"{', '.join(moved)} cannot be changed without the keys: they would be sent or used elsewhere"
        todo = f"Write them in the same statement: {', '.join(kept)}."
        raise SqlError(msg, code="Alter", todo=todo)


def _is_reached_with_keys(name: str, kind: AlterableSource) -> bool:
    return bool(_ADDRESS.search(name)) or name == kind.subject or name in kind.used_with_keys


def _merged_clauses(old: LoadClauses, new: LoadClauses) -> LoadClauses:
    """Every clause that ALTER writes replaces the old one; the others stay."""
    written = {item.name: getattr(new, item.name) for item in fields(new) if getattr(new, item.name) is not None}
    return replace(old, **written)
