"""What `lading apply` would do: statements of files beside what a home has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from lading.errors import ConfigError, SqlError
from lading.model.names import INTERNAL, database_key
from lading.model.table import ColumnChange
from lading.service.compile.sourced import AnyJob, source_of, with_source
from lading.service.edits.diff import changed_parts
from lading.service.result import Result
from lading.sources.registry import kind_of
from lading.sql.statements.catalogs import AlterCatalog, CreateCatalog
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad, CreateJob, CreateRoutineLoad
from lading.sql.statements.parts import NO_CLAUSES, QualifiedName, SourceFunction
from lading.sql.statements.tables import AlterTable, CreateDatabase, CreateTable, UseDatabase
from lading.sql.syntax.masking import mask
from lading.sql.syntax.parse import parse_statement, parse_statements
from lading.sql.syntax.render import render
from lading.sql.syntax.render_parts import name_text, quoted_name

Wanted = CreateCatalog | CreateDatabase | CreateTable | CreateJob | CreateRoutineLoad
_ORDER = (CreateCatalog, CreateDatabase, CreateTable, CreateJob, CreateRoutineLoad)
WHY = "lading apply"
_LEFT = "Nothing was changed."


class Answering(Protocol):
    """A home, opened here or by a running service."""

    def sql(self, text: str) -> list[Result]: ...
    def jobs(self) -> list[dict[str, Any]]: ...
    def control(self, name: str, verb: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing of the files, or of the home, and what becomes of it."""

    action: str
    """create, change, unchanged, extra, drop, or cannot: no statement makes it so."""
    what: str
    lines: tuple[str, ...] = ()
    """What is different."""
    statements: tuple[str, ...] = field(default=(), repr=False)
    job: str = ""
    """A job that must be paused for them, and goes on afterwards when it did before."""


def read_files(paths: Sequence[Path]) -> list[Wanted]:
    """The statements of files and of the `*.sql` of folders, catalogs first and jobs last. Raises ConfigError."""
    found: list[Wanted] = []
    for path in paths:
        for file in sorted(path.glob("*.sql")) if path.is_dir() else [path]:
            found += _read_file(file)
    names = [what_of(each) for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        msg = f"The files have {twice[0]} twice"
        raise ConfigError(msg, left=_LEFT, todo="Keep one of them.")
    return sorted(found, key=lambda each: _ORDER.index(type(each)))


def _read_file(file: Path) -> Iterator[Wanted]:
    try:
        statements = parse_statements(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The file {file} cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name text files in UTF-8.") from error
    except SqlError as error:
        msg = f"{file}: {error.what}"
        raise SqlError(msg, place=error.place, hint=error.hint, todo=error.todo) from error
    database = "default"
    for statement in statements:
        if isinstance(statement, UseDatabase):
            database = database_key(statement.catalog or INTERNAL, statement.name)
        elif isinstance(statement, _ORDER):
            yield _bound(statement, database)
        else:
            msg = f"{file} has a statement that lading apply does not take: {render(mask(statement)).split()[0]} …"
            todo = "It takes CREATE CATALOG, DATABASE, TABLE, JOB, ROUTINE LOAD, and USE. Run others with lading sql."
            raise ConfigError(msg, left=_LEFT, todo=todo)


def _bound(statement: Wanted, database: str) -> Wanted:
    """With names written out."""
    if isinstance(statement, CreateJob):
        insert = replace(statement.insert, table=statement.insert.table.bound(database))
        if insert.join is not None:
            insert = replace(insert, join=replace(insert.join, table=insert.join.table.bound(database)))
        made = statement.creates
        return replace(
            statement,
            insert=insert,
            creates=None if made is None else replace(made, name=made.name.bound(database)),
        )
    if isinstance(statement, CreateRoutineLoad | CreateTable):
        return replace(statement, name=statement.name.bound(database))
    return statement


def what_of(wanted: Wanted) -> str:
    """How the plan calls it."""
    match wanted:
        case CreateCatalog():
            return f"catalog {wanted.name}"
        case CreateDatabase():
            return f"database {_database(wanted)}"
        case CreateTable():
            return f"table {wanted.name}"
        case CreateJob():
            return f"job {wanted.name}"
        case CreateRoutineLoad():
            return f"routine load {wanted.name}"


def _database(wanted: CreateDatabase) -> str:
    return database_key(wanted.catalog or INTERNAL, wanted.name)


def make_plan(home: Answering, wanted: Sequence[Wanted], *, prune: bool) -> list[Step]:
    """Compare; nothing is changed."""
    jobs = {str(job["name"]) for job in home.jobs()}
    missing = {each.name for each in wanted if isinstance(each, CreateCatalog)} - _catalogs(home)
    steps = [_step(home, each, jobs, missing) for each in wanted]
    named = {_job_name(each) for each in wanted if isinstance(each, CreateJob | CreateRoutineLoad)}
    for name in sorted(jobs - named):
        what = f"{'routine load' if '.' in name else 'job'} {name}"
        steps.append(Step(action="drop" if prune else "extra", what=what, statements=(_drop(name),) if prune else ()))
    return steps


def _step(home: Answering, wanted: Wanted, jobs: set[str], new_catalogs: set[str]) -> Step:
    match wanted:
        case CreateCatalog():
            return _catalog_step(home, wanted) if wanted.name not in new_catalogs else _create(wanted)
        case CreateDatabase():
            is_there = wanted.catalog not in new_catalogs and wanted.name in _databases(home, wanted.catalog)
            return Step(action="unchanged", what=what_of(wanted)) if is_there else _create(wanted)
        case CreateTable():
            return _table_step(home, wanted) if _has_table(home, wanted.name, new_catalogs) else _create(wanted)
        case CreateJob() | CreateRoutineLoad():
            return _job_step(home, wanted) if _job_name(wanted) in jobs else _create(wanted)


def _create(wanted: Wanted) -> Step:
    return Step(action="create", what=what_of(wanted), statements=(render(wanted),))


def _catalogs(home: Answering) -> set[str]:
    return {str(row[1]) for row in home.sql("SHOW CATALOGS")[0].rows}


def _databases(home: Answering, catalog: str | None) -> set[str]:
    where = f" FROM {quoted_name(catalog)}" if catalog else ""
    return {str(row[0]) for row in home.sql(f"SHOW DATABASES{where}")[0].rows}


def _has_table(home: Answering, name: QualifiedName, new_catalogs: set[str]) -> bool:
    if name.catalog in new_catalogs or name.db not in _databases(home, name.catalog):
        return False
    place = ".".join(quoted_name(part) for part in (name.catalog, name.db) if part)
    return (name.name,) in [row[:1] for row in home.sql(f"SHOW TABLES FROM {place}")[0].rows]


def _catalog_step(home: Answering, wanted: CreateCatalog) -> Step:
    shown = str(home.sql(f"SHOW CREATE CATALOG {quoted_name(wanted.name)}")[0].rows[0][-1])
    there = parse_statement(shown)
    if not isinstance(there, CreateCatalog):
        raise AssertionError(shown)
    old, new = there.properties, mask(wanted).properties
    what, changed = what_of(wanted), {name: new[name] for name in new if old.get(name) != new[name]}
    if gone := sorted(old.keys() - new.keys()):
        return _cannot(what, f"{gone[0]} is set, and the file has it no more", "DROP CATALOG and make it again.")
    if not changed:
        return Step(action="unchanged", what=what)
    lines = tuple(f"{name}: {old.get(name, '')} → {value}" for name, value in changed.items())
    alter = AlterCatalog(name=wanted.name, properties={name: wanted.properties[name] for name in changed})
    return Step(action="change", what=what, lines=lines, statements=(render(alter),))


def _table_step(home: Answering, wanted: CreateTable) -> Step:
    """Columns are added. What else is different is not made so: it would rewrite the table, or break its readers."""
    what = what_of(wanted)
    there = {str(row[0]): str(row[1]) for row in home.sql(f"DESCRIBE {name_text(wanted.name)}")[0].rows}
    added = []
    for column in wanted.spec.columns:
        kind = _type(column.type)
        if column.name not in there:
            added.append(ColumnChange(name=column.name, type=column.type))
        elif _type(there[column.name]) != kind:
            why = f"column {column.name} is {there[column.name]}, and {kind} in the file"
            return _cannot(what, why, "Widen it with ALTER TABLE … MODIFY COLUMN, or correct the file.")
    if not added:
        return Step(action="unchanged", what=what)
    alter = AlterTable(name=wanted.name, changes=tuple(added))
    return Step(action="change", what=what, lines=tuple(map(str, added)), statements=(render(alter),))


def _type(name: str) -> str:
    plain = name.lower().replace(" ", "")
    return {"integer": "int"}.get(plain, plain)


def _job_name(wanted: CreateJob | CreateRoutineLoad) -> str:
    return str(wanted.name)


def _drop(name: str) -> str:
    database, _, load = name.rpartition(".")
    if database:
        return f"STOP ROUTINE LOAD FOR {name_text(QualifiedName(db=database, name=load))}"
    quoted = name.replace("'", "''")
    return f"DROP JOB WHERE jobName = '{quoted}'"


def _job_step(home: Answering, wanted: AnyJob) -> Step:
    show = "SHOW CREATE JOB" if isinstance(wanted, CreateJob) else "SHOW CREATE ROUTINE LOAD FOR"
    name = quoted_name(wanted.name) if isinstance(wanted, CreateJob) else name_text(wanted.name)
    there = parse_statement(str(home.sql(f"{show} {name}")[0].rows[0][-1]))
    if not isinstance(there, CreateJob | CreateRoutineLoad):
        raise TypeError(there)
    wanted, what = _as_created(wanted, there), what_of(wanted)
    old, new = _comparable(there, wanted), mask(wanted)
    if _target(old) != _target(new) or source_of(old).name != source_of(new).name:
        why = f"{_target(old)} from {source_of(old).name} is {_target(new)} from {source_of(new).name} in the file"
        return _cannot(what, why, "Drop the job and make it again, or give the new one another name.")
    changed = changed_parts(old, new)
    if not changed:
        return Step(action="unchanged", what=what)
    gone = [part for part, (_, after) in changed.items() if not after]
    if gone:
        why = f"{gone[0]} is set, and the file has it no more"
        return _cannot(what, why, "Write it into the file; or drop the job and make it again.")
    lines = tuple(f"{part}: {before} → {after}" for part, (before, after) in changed.items())
    alter = _alter(wanted, changed)
    return Step(action="change", what=what, lines=lines, statements=(render(alter),), job=_job_name(wanted))


def _as_created(wanted: AnyJob, there: AnyJob) -> AnyJob:
    """What is wanted, with whole paths and with what CREATE writes into a definition of its own accord, where the job
    has it: a job that was made before CREATE did so stays as it is."""
    source = source_of(wanted)
    if source.name != source_of(there).name:
        return wanted
    where, properties = kind_of(source.name).located(source.properties, wanted.properties)
    told = {**source_of(there).properties, **source.properties}
    kept = replace(source, properties={name: value for name, value in where.items() if name in told})
    of_job = {**there.properties, **wanted.properties}
    said = {name: value for name, value in properties.items() if name in of_job}
    return with_source(replace(wanted, properties=said), kept)


def _comparable(there: AnyJob, wanted: AnyJob) -> AnyJob:
    """What is there, without what CREATE wrote into it: columns of the table, where the file names none."""
    if isinstance(there, CreateJob) and isinstance(wanted, CreateJob) and not wanted.insert.columns:
        return replace(there, insert=replace(there.insert, columns=()))
    return there


def _target(job: AnyJob) -> str:
    if isinstance(job, CreateJob):
        return str(job.insert.table)
    database = job.name.db or "default"
    return str(job.table_in.bound(database)) if job.table_in is not None else f"{database}.{job.table or '*'}"


def _alter(wanted: AnyJob, changed: dict[str, tuple[str, str]]) -> AlterJob | AlterRoutineLoad:
    source = source_of(wanted)
    properties = {name: value for name, value in wanted.properties.items() if f"property {name}" in changed}
    moved = {name: value for name, value in source.properties.items() if f"{source.name.lower()} {name}" in changed}
    if isinstance(wanted, CreateJob):
        insert = wanted.insert if moved or "select" in changed else None
        return AlterJob(name=wanted.name, properties=properties, comment=WHY, insert=insert)
    has_clauses = any(part.startswith("clause ") for part in changed)
    said = SourceFunction(name=source.name, properties=moved) if moved else None
    clauses = wanted.clauses if has_clauses else NO_CLAUSES
    return AlterRoutineLoad(name=wanted.name, clauses=clauses, properties=properties, source=said, comment=WHY)


def _cannot(what: str, why: str, todo: str) -> Step:
    return Step(action="cannot", what=what, lines=(why, todo))
