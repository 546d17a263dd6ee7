"""SELECT: over jobs and tasks in memory, over tables on Spark."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from lading.errors import ConfigError, NotSupportedError
from lading.jobs.record import JobKind
from lading.jobs.routine_views import SCHEMA_COLUMNS
from lading.jobs.views import JOB_COLUMNS, TASK_COLUMNS, render_jobs, render_tasks
from lading.service.result import Result, table
from lading.service.routine_views import schema_rows
from lading.sql.dialect import parse_query_tree
from lading.sql.queries import rewrite_query
from lading.sql.spans import Span
from lading.sql.statements import Query
from lading.tables.base import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lading.service.session import Session

FUNCTIONS = {"JOBS": "jobs", "TASKS": "tasks"}
SCHEMA, ROUTINE_TABLE = "information_schema", "routine_load_jobs"


def run_query(session: Session, query: Query) -> Result:
    """Answer a query."""
    if query.functions or _names_schema(query):
        return _views(session, query)
    return _tables(session, query)


def _names_schema(query: Query) -> bool:
    tree = parse_query_tree(query.text, Span(query.text, 0, len(query.text)))
    return any(_is_schema(found) for found in tree.find_all(exp.Table))


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
    alive = [each.record for each in stored if each.record.job_id in seen]
    totals = session.lading.store.read_totals()
    jobs = render_jobs(alive, {str(key): value for key, value in totals.items()})
    tasks = render_tasks(task for task in session.lading.store.list_tasks() if task.job_id in seen)
    text = _without_schema(rewrite_query(query, FUNCTIONS, dialect="sqlite"))
    connection = sqlite3.connect(":memory:")
    try:
        _fill(connection, "jobs", JOB_COLUMNS, jobs)
        _fill(connection, "tasks", TASK_COLUMNS, tasks)
        if _names_schema(query):
            _fill(connection, ROUTINE_TABLE, SCHEMA_COLUMNS, schema_rows(session))
        try:
            cursor = connection.execute(text)
        except sqlite3.Error as error:
            msg = f"The query cannot be answered: {error}"
            raise ConfigError(msg, todo="Check the names of its columns.") from error
        return table([column[0] for column in cursor.description], cursor.fetchall())
    finally:
        connection.close()


def _fill(
    connection: sqlite3.Connection, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, str | None]]
) -> None:
    listed = ", ".join(f'"{column}" TEXT COLLATE NOCASE' for column in columns)
    connection.execute(f"CREATE TABLE {name} ({listed})")
    marks = ", ".join("?" for _ in columns)
    values = [tuple(row[column] for column in columns) for row in rows]
    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", values)  # noqa: S608 - names are our own


def _tables(session: Session, query: Query) -> Result:
    from pyspark.errors import PySparkException

    spark = session.lading.spark()
    text = rewrite_query(query, {}, dialect="spark")
    for entry in session.lading.store.list_tables():
        if entry.name in text:
            view = f"{entry.database}__{entry.name}"
            frame(spark, session.lading.shelf.open_table(entry.database, entry.name)).createOrReplaceTempView(view)
            text = _named(text, entry.database, entry.name, view, is_current=entry.database == session.database)
    try:
        found = spark.sql(text)
        return table(found.columns, [tuple(row) for row in found.collect()])
    except PySparkException as error:
        msg = f"Spark cannot answer the query: {str(error).splitlines()[0]}"
        raise ConfigError(msg, todo="Check the names of its tables and columns.") from error


def _named(text: str, database: str, name: str, view: str, *, is_current: bool) -> str:
    tree = parse_one(text, dialect="spark")
    for found in tree.find_all(exp.Table):
        owner = found.db or (database if is_current else "")
        if found.name == name and owner == database:
            found.set("this", exp.to_identifier(view, quoted=True))
            found.set("db", None)
            if not found.alias:
                found.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    return tree.sql(dialect="spark")


def frame(spark: SparkSession, lake: LakeTable) -> DataFrame:
    """The current snapshot of a table on Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(lake.schema())
    root = lake.location.removeprefix("file://")
    files = [f"{root}/{path}" for path in lake.files()]
    if not files:
        return spark.createDataFrame([], schema)
    if Path(root).is_dir():
        return spark.read.option("basePath", root).schema(schema).parquet(*files)
    return spark.createDataFrame(lake.scan())
