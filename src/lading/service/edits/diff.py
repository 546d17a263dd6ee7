"""What is different between two definitions of a job, in words, for the audit and for EXPLAIN ALTER."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from lading.service.compile.sourced import AnyJob, source_of
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.syntax.render_parts import insert_text, routine_clauses
from lading.sql.syntax.spans import MASK, is_hidden

NOT_SET = ""


def changed_parts(old: AnyJob, new: AnyJob) -> dict[str, tuple[str, str]]:
    """Every part that differs, before and after. Secrets are told as changed, and never shown."""
    found = _changed("property", old.properties, new.properties)
    found |= _changed(source_of(old).name.lower(), source_of(old).properties, source_of(new).properties)
    if isinstance(old, CreateRoutineLoad) and isinstance(new, CreateRoutineLoad):
        found |= _clauses(old, new)
    if isinstance(old, CreateJob) and isinstance(new, CreateJob) and _select(old) != _select(new):
        found["select"] = (_select(old), _select(new))
    return found


def has_new_secrets(old: AnyJob, new: AnyJob) -> bool:
    """Whether a value that is not shown was changed."""
    before, after = source_of(old).properties, source_of(new).properties
    return _hidden(before) != _hidden(after)


def has_secrets(statement: AnyJob) -> bool:
    """Whether a value of its source is not shown."""
    return bool(_hidden(source_of(statement).properties))


def _hidden(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if is_hidden(name, value)}


def _changed(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return {f"{what} {name}": (_shown(name, old.get(name)), _shown(name, new.get(name))) for name in names}


def _shown(name: str, value: str | None) -> str:
    if value is None:
        return NOT_SET
    return MASK if is_hidden(name, value) else value


def _clauses(old: CreateRoutineLoad, new: CreateRoutineLoad) -> dict[str, tuple[str, str]]:
    found = {}
    for clause in fields(old.clauses):
        before, after = getattr(old.clauses, clause.name), getattr(new.clauses, clause.name)
        if before != after:
            texts = (_clause_text(old, clause.name), _clause_text(new, clause.name))
            found[f"clause {clause.name.replace('_', ' ')}"] = texts
    return found


def _clause_text(statement: CreateRoutineLoad, name: str) -> str:
    alone = type(statement.clauses)(**{name: getattr(statement.clauses, name)})
    return "".join(routine_clauses(alone))


def _select(statement: CreateJob) -> str:
    """Without the properties of the source, which are compared one by one."""
    source = type(statement.insert.source)(name=statement.insert.source.name)
    return insert_text(replace(statement.insert, source=source))
