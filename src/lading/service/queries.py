"""SELECT: over jobs and tasks in memory, over tables on Spark."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from lading.errors import ConfigError, NotSupportedError
from lading.jobs.record import JobKind
from lading.jobs.routine_views import SCHEMA_COLUMNS
from lading.jobs.views import JOB_COLUMNS, TASK_COLUMNS, render_jobs, render_tasks
from lading.service.bounded_sqlite import SmallTables
from lading.service.long_rows import keep_rows
from lading.service.result import Result
from lading.service.routine_views import schema_rows
from lading.service.stopping import Stop, current_stop, stopped
from lading.settings import environment
from lading.sql.queries import SCHEMA, is_about_jobs, read_query, rewrite_query
from lading.sql.statements import Query
from lading.sql.user_statements import Privilege
from lading.tables.base import LakeTable
from lading.tables.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lading.service.session import Session

FUNCTIONS = {"JOBS": "jobs", "TASKS": "tasks"}
ROUTINE_TABLE = "routine_load_jobs"
_KEPT = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
_CLOSED = {
    # Without this, text.`/path` is a table.
    "spark.sql.runSQLOnFiles": "false",
    # Without this, '${env:NAME}' is the value of a variable of the service.
    "spark.sql.variable.substitute": "false",
}
"""What the check of a query refuses already; Spark must not know it either."""
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What Spark keeps of a thread's jobs."""
_AGAIN_S = 0.2


def run_query(session: Session, query: Query) -> Result:
    """Answer a query."""
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
    return tree.sql(dialect="sqlite")


def _views(session: Session, query: Query) -> Result:
    for function in query.functions:
        if function.properties.get("type") != "insert":
            msg = f'{function.name.lower()}("type"=…) knows only "insert"'
            raise NotSupportedError(msg, todo='Write "type"="insert".')
    stored = session.lading.store.list_jobs(kind=JobKind.STREAMING, include_final=True)
    seen = {each.record.job_id for each in stored if session.sees(each.record)}
    overlay = session.lading.unrecorded.overlay
    alive = [overlay(each.record) for each in stored if each.record.job_id in seen]
    totals = session.lading.store.read_totals()
    jobs = render_jobs(alive, {str(key): value for key, value in totals.items()})
    tasks = render_tasks(task for task in session.lading.store.list_tasks() if task.job_id in seen)
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
            raise ConfigError(msg, todo="Check the names of its columns.") from error


def _fill(tables: SmallTables, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]) -> None:
    tables.fill(name, columns, (tuple(row[column] for column in columns) for row in rows), kind="TEXT")


def _tables(session: Session, query: Query) -> Result:
    """Only tables that the query was checked for are there for Spark, under names that nobody can guess.

    They stand in a Spark session of their own, which knows no files by their paths and no variables of the machine.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from lading.pipeline.sealing import new_key, with_key

    checked = read_query(query)
    owned = {name: (name.db if name.db is not None else session.database, name.name) for name in checked.tables}
    for database, name in owned.values():
        # The guard has looked already. Here it is the same list that Spark is given.
        if session.rights is not None:
            session.rights.require(Privilege.SELECT, database, name)
    lakes = {place: session.lading.shelf.open_table(*place) for place in set(owned.values())}
    views = {place: _new_name() for place in lakes}
    text = checked.render({name: views[place] for name, place in owned.items()}, _new_name)
    stop = current_stop()
    spark = _reading_session(session.lading.spark())
    try:
        key = new_key()
        with _stoppable(spark, stop), with_key(spark, key):
            for place, lake in lakes.items():
                storage = partial(session.lading.shelf.storage, *place)
                frame(spark, lake, storage, key).createOrReplaceTempView(views[place])
            found = spark.sql(text)
            # Part by part: an answer may have more rows than this process has memory.
            rows = (tuple(row) for row in found.toLocalIterator(prefetchPartitions=True))
            return Result(columns=tuple(found.columns), rows=keep_rows(rows))
    except (PySparkException, Py4JError) as error:
        if stop.is_set:
            raise stopped() from error
        if not isinstance(error, PySparkException):
            msg = f"Spark ended while the query ran: {type(error).__name__}"
            raise ConfigError(msg, left="Nothing was changed.", todo="Ask again; Spark is started anew.") from error
        said = _without_names(str(error).splitlines()[0], {view: name for (_, name), view in views.items()})
        msg = f"Spark cannot answer the query: {said}"
        raise ConfigError(msg, todo="Check the names of its columns.") from error
    finally:
        if stop.is_set:
            session.lading.engine.reap()
        with suppress(Py4JError, OSError):  # Spark itself was ended.
            for view in views.values():
                spark.catalog.dropTempView(view)


@contextmanager
def _stoppable(spark: SparkSession, stop: Stop) -> Iterator[None]:
    """Within this, jobs that this thread starts on Spark end soon after `stop` is set.

    Spark forgets that a group was cancelled as soon as it has done so, and a query may start its next job after that:
    it is told again until the query has ended.
    """
    from py4j.protocol import Py4JError

    stop.check()
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in _GROUP}
    group, is_done = _new_name(), threading.Event()

    def cancel() -> None:
        with suppress(Py4JError, OSError):  # Spark itself was ended.
            while not is_done.is_set():
                context.cancelJobGroup(group)
                is_done.wait(_AGAIN_S)

    context.setJobGroup(group, "query", interruptOnCancel=True)
    try:
        with stop.ending(threading.Thread(target=cancel, name="lading-query-stop", daemon=True).start):
            yield
    finally:
        is_done.set()
        for name, value in before.items():
            # Threads are used again, also for what nobody may cancel.
            context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None: it is not set


def _new_name() -> str:
    return f"lading_{secrets.token_hex(16)}"


def _without_names(text: str, names: Mapping[str, str]) -> str:
    for view, name in names.items():
        text = text.replace(view, name)
    return text


def _reading_session(spark: SparkSession) -> SparkSession:
    """A session for one query, which sees nothing of the others."""
    reading = spark.newSession()
    for name in _KEPT:
        reading.conf.set(name, spark.conf.get(name) or "")
    for name, value in _CLOSED.items():
        reading.conf.set(name, value)
    return reading


def frame(spark: SparkSession, lake: LakeTable, storage: Callable[[], Storage], key: str) -> DataFrame:
    """The current snapshot of a table on Spark, for jobs that are run with the key."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from lading.pipeline.environment import cloud_identity
    from lading.pipeline.remote import RemoteFiles, empty_frame, remote_frame
    from lading.pipeline.session import is_local
    from lading.tables.delta.table import DeltaLakeTable

    schema = from_arrow_schema(lake.schema())
    root = lake.location.removeprefix("file://")
    files = lake.files()
    if not files:
        return empty_frame(spark, lake.schema())
    if not Path(root).is_dir():
        system, remote_root = storage().arrow()
        lent = cloud_identity(environment()) if is_local(spark) else {}
        remote = RemoteFiles(system=system, root=remote_root, files=tuple(files), schema=lake.schema(), identity=lent)
        return remote_frame(spark, remote, key)
    reader = spark.read.schema(schema)
    if isinstance(lake, DeltaLakeTable):
        # Its files leave out the columns that their folders name. Those of Iceberg have all columns, and their folders
        # say "null" and "a+b".
        reader = reader.option("basePath", root)
    return reader.parquet(*(f"{root}/{path}" for path in files))
