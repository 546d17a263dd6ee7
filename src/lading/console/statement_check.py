"""A text that is being typed: is it a job, and which one?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lading.console.desk import Visitor
from lading.errors import LadingError, SqlError
from lading.jobs.dialects import ROUTINE, STREAMING
from lading.jobs.record import parse_job_name
from lading.model.names import INTERNAL, database_key, is_external, split_key
from lading.model.pairs import single_sources
from lading.service.views.build import redacted
from lading.sources.registry import check_load, kind_of
from lading.sql.statements.catalogs import SwitchCatalog
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad, Statement
from lading.sql.statements.load_specs import source_spec
from lading.sql.statements.tables import CreateDatabase, CreateTable, UseDatabase
from lading.sql.syntax.parse import parse_statements
from lading.sql.syntax.spans import Span
from lading.store.protocols import MetadataStore
from lading.tables.registry import kind_of_statement

MOST_LETTERS = 200_000
_ALLOWED = CreateJob | CreateRoutineLoad | CreateTable | CreateDatabase | UseDatabase | SwitchCatalog


class Known(Protocol):
    """Who knows what is there already, as far as somebody may know it."""

    def misses_table(self, database: str, name: str) -> bool: ...

    def has_job(self, name: str) -> bool: ...


class Catalog:
    """What is there, told to one visitor: what they may not see is neither missing nor there."""

    def __init__(self, store: MetadataStore, visitor: Visitor, has_catalog: Callable[[str], bool]) -> None:
        self._store, self._visitor, self._has_catalog = store, visitor, has_catalog

    def misses_table(self, database: str, name: str) -> bool:
        """Whether a table is not there that they could see; of another catalog, whether there is no such catalog."""
        rights = self._visitor.rights
        if is_external(database):
            # Its catalog is not asked while somebody types.
            catalog = split_key(database)[0]
            may_know = rights is None or rights.see_catalog(catalog)
            return may_know and not self._has_catalog(catalog)
        may_know = rights is None or rights.see_table(database, name)
        return may_know and self._store.find_table(database, name) is None

    def has_job(self, name: str) -> bool:
        """Whether a job is there that they can see."""
        found = self._store.find_job(parse_job_name(name))
        return found is not None and self._visitor.may_see(found.record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """What is wrong, and where."""

    message: str
    left: str = ""
    todo: str = ""
    excerpt: str = ""
    """The line that is wrong, with carets under the part that is wrong."""
    line: int = 0
    column: int = 0
    start: int = 0
    """Letters from here up to `end` are underlined; both 0: nobody knows the place."""
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """A job that the text would make."""

    name: str
    """As its page is called."""
    what: str
    target: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is known of a text. Neither mistake nor jobs: it is empty."""

    mistake: Mistake | None = None
    jobs: tuple[JobDraft, ...] = ()
    others: int = 0
    """Statements that only prepare: databases and tables."""
    remarks: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.mistake is None and bool(self.jobs)


def check_text(text: str, *, database: str = "default", known: Known | None = None) -> Checked:
    """Everything that can be said without looking at a source. Changes nothing; no secret is in the answer."""
    if not text.strip():
        return Checked()
    if len(text) > MOST_LETTERS:
        return Checked(mistake=Mistake(message=f"The text is longer than {MOST_LETTERS:,} characters"))
    try:
        return _check(parse_statements(text), database, known)
    except LadingError as error:
        return Checked(mistake=mistake_of(error))


def mistake_of(error: LadingError) -> Mistake:
    """An error as a page shows it."""
    place = error.place if isinstance(error, SqlError) else None
    if not isinstance(error, SqlError) or place is None:
        return Mistake(message=redacted(error.what), left=error.left, todo=redacted(error.todo))
    start, end = (place.start, place.end) if isinstance(place, Span) else (0, 0)
    length = len(place.text) if isinstance(place, Span) else 0
    if end <= start:  # The end of the text: its last letter is underlined.
        start, end = max(0, min(start, length) - 1), min(max(start, 1), length)
    return Mistake(
        message=redacted(error.what),
        left=error.left,
        todo=redacted(error.todo),
        excerpt="\n".join(line.removeprefix("    ") for line in error.pretty().splitlines()),
        line=error.line,
        column=error.column,
        start=start,
        end=end,
    )


def _check(statements: Sequence[Statement], database: str, known: Known | None) -> Checked:
    jobs: list[JobDraft] = []
    made: set[tuple[str, str]] = set()
    remarks: list[str] = []
    for statement in statements:
        if not isinstance(statement, _ALLOWED):
            return Checked(mistake=_not_here(statement))
        match statement:
            case UseDatabase():
                database = database_key(statement.catalog or split_key(database)[0], statement.name)
            case SwitchCatalog():
                database = "default" if statement.name == INTERNAL else f"{statement.name}."
            case CreateTable():
                kind_of_statement(statement)
                made.add((statement.name.within(database), statement.name.name))
            case CreateJob() | CreateRoutineLoad():
                draft, target = _draft(statement, database)
                if draft.name in {job.name for job in jobs} or (known is not None and known.has_job(draft.name)):
                    return Checked(mistake=_exists(draft))
                jobs.append(draft)
                if isinstance(statement, CreateJob) and statement.creates is not None:
                    made.add(target)
                if known is not None and target not in made and known.misses_table(*target):
                    remarks.append(f"Table {'.'.join(target)} does not exist yet. Make it first, here or elsewhere.")
            case CreateDatabase():
                pass
    if not jobs:
        todo = "Write CREATE JOB … ON STREAMING, or CREATE ROUTINE LOAD."
        return Checked(mistake=Mistake(message="No statement makes a job", todo=todo))
    return Checked(jobs=tuple(jobs), others=len(statements) - len(jobs), remarks=tuple(remarks))


def _draft(statement: CreateJob | CreateRoutineLoad, database: str) -> tuple[JobDraft, tuple[str, str]]:
    check_load(statement)
    if isinstance(statement, CreateJob):
        table, source = statement.insert.table, statement.insert.source
        target = (table.within(database), table.name)
        name, what = statement.name, STREAMING.noun
    else:
        source = statement.source
        target = ((statement.table_in or statement.name).within(database), statement.table or "")
        name, what = f"{statement.name.within(database)}.{statement.name.name}", ROUTINE.noun
    singles = single_sources(source_spec(source)).values()
    told = [f"{each.kind} {each.properties.get(kind_of(each.kind).subject, '')}".strip() for each in singles]
    shown = redacted(" and ".join(told))
    return JobDraft(name=name, what=what, target=".".join(target), source=shown), target


def _exists(draft: JobDraft) -> Mistake:
    return Mistake(message=f"There is a job {draft.name} already", todo="Choose another name, or stop that one first.")


def _not_here(statement: Statement) -> Mistake:
    words = "".join(f" {letter}" if letter.isupper() else letter for letter in type(statement).__name__).strip()
    todo = "This page takes CREATE JOB and CREATE ROUTINE LOAD, after CREATE DATABASE, USE, SWITCH and CREATE TABLE."
    return Mistake(message=f"{words.upper()} cannot be run here", todo=todo)
