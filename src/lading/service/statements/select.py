"""SELECT: over jobs and tasks in memory, over tables on Spark."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from sqlglot import exp, parse_one

from lading.errors import ConfigError, NotSupportedError
from lading.jobs.dialects import JOB_COLUMNS, SCHEMA_COLUMNS, TASK_COLUMNS
from lading.model.s3_access import S3Access
from lading.pipeline.environment import cloud_identity, without_identity
from lading.service.limits.cancellation import current_stop
from lading.service.limits.sqlite_sandbox import SmallTables
from lading.service.result import Result
from lading.service.session import Session
from lading.service.spark_queries.wire import QueryRequest, View
from lading.service.views.loads import job_rows, schema_rows
from lading.settings import environment
from lading.sql.expressions.queries import SCHEMA, is_about_jobs, literal_row, read_query, rewrite_query
from lading.sql.statements.jobs import Query
from lading.sql.statements.users import Privilege
from lading.tables.base import LakeTable

FUNCTIONS = {"JOBS": "jobs", "TASKS": "tasks"}
ROUTINE_TABLE = "routine_load_jobs"


def run_query(session: Session, query: Query) -> Result:
    if (row := literal_row(query)) is not None:
        return Result(columns=tuple(row), rows=(tuple(row.values()),))
    return _views(session, query) if is_about_jobs(query) else _tables(session, query)


def _is_schema(found: exp.Table) -> bool:
    return found.db.lower() == SCHEMA


def _without_schema(text: str) -> str:
    """The query with the tables of the schema in the place of their full names."""
    tree = parse_one(text, dialect="sqlite")
    for found in tree.find_all(exp.Table):
        if not _is_schema(found):
            continue
        if found.name.lower() != ROUTINE_TABLE:
            msg = f"{SCHEMA}.{found.name} does not exist"
            raise NotSupportedError(msg, todo=f"There is: {SCHEMA}.{ROUTINE_TABLE}.")
        found.set("this", exp.to_identifier(ROUTINE_TABLE))
        found.set("db", None)
        found.set("catalog", None)
    return tree.sql(dialect="sqlite")


def _views(session: Session, query: Query) -> Result:
    for function in query.functions:
        if function.properties.get("type") != "insert":
            msg = f'{function.name.lower()}("type"=…) knows only "insert"'
            raise NotSupportedError(msg, todo='Write "type"="insert".')
    jobs, tasks = job_rows(session)
    text = _without_schema(rewrite_query(query, FUNCTIONS, dialect="sqlite"))
    with SmallTables() as tables:
        _fill(tables, "jobs", JOB_COLUMNS, jobs)
        _fill(tables, "tasks", TASK_COLUMNS, tasks)
        if ROUTINE_TABLE in text.lower():
            _fill(tables, ROUTINE_TABLE, SCHEMA_COLUMNS, schema_rows(session))
        try:
            return tables.ask(text)
        except sqlite3.Error as error:
            msg = f"The query cannot be answered: {error}"
            raise ConfigError(msg, left="Nothing was changed.", todo="Check the names of its columns.") from error


def _fill(tables: SmallTables, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> None:
    tables.fill(name, columns, (tuple(row[column] for column in columns) for row in rows), kind="TEXT")


def _tables(session: Session, query: Query) -> Result:
    """Only tables that the query was checked for are there for Spark, under names that nobody can guess.

    Spark gets them from here: files of one snapshot each, and how to reach them. It runs in another process, which has
    no catalog, no store and no keys of its own.
    """
    checked = read_query(query)
    owned = {name: (name.within(session.database), name.name) for name in checked.tables}
    for database, name in owned.values():
        # The guard has looked already. Here it is the same list that Spark is given.
        if session.rights is not None:
            session.rights.require(Privilege.SELECT, database, name)
    catalog = session.lading.catalog
    names = {place: _new_name() for place in set(owned.values())}
    views = tuple(
        _view(name, catalog.open_table(*place), partial(catalog.storage_options, *place))
        for place, name in names.items()
    )
    request = QueryRequest(
        text=checked.render({name: names[place] for name, place in owned.items()}, _new_name),
        views=views,
        identity=_lent([view.storage for view in views if view.storage is not None]),
    )
    try:
        return session.lading.queries.ask(
            request, user=session.user, stop=current_stop(), seconds=session.query_timeout_s
        )
    except ConfigError as error:
        shown = {view: name for (_, name), view in names.items()}
        if not any(view in error.what for view in shown):
            raise
        what = _without_names(error.what, shown)
        raise ConfigError(what, code=error.code, left=error.left, todo=error.todo) from error


def _lent(places: Sequence[S3Access]) -> Mapping[str, str]:
    """The identity of the service, where a table has no keys of its own."""
    if not places:
        return {}
    lent = cloud_identity(environment())
    return lent if any(not place.access_key for place in places) else without_identity(lent)


def _new_name() -> str:
    return f"lading_{secrets.token_hex(16)}"


def _without_names(text: str, names: Mapping[str, str]) -> str:
    for view, name in names.items():
        text = text.replace(view, name)
    return text


def _view(name: str, lake: LakeTable, options: Callable[[], S3Access]) -> View:
    """The current snapshot of a table."""
    root = lake.location.removeprefix("file://")
    is_remote, snapshot = not Path(root).is_dir(), lake.snapshot()
    return View(
        name=name,
        root=lake.location if is_remote else root,
        files=snapshot.files,
        schema=snapshot.schema,
        constants=snapshot.constants,
        is_plain=snapshot.is_plain and root.isascii() and all(path.isascii() for path in snapshot.files),
        storage=options() if is_remote else None,
    )
