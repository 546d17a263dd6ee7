"""SQL of users on Spark: read by Spark's own parser and checked, analysed and checked again, and only then run."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from lading.pipeline.java_stream import Part, read_stream
from lading.pipeline.plan_check import check_plan, mapping_rules, query_rules, refused
from lading.pipeline.plan_parts import classes_of_plans, parts_of, written
from lading.sql.expressions.query_parts import QUERY_FUNCTIONS
from lading.sql.expressions.spark_functions import SPARK_FUNCTIONS

_ONE = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_ONE}(?: AS {_ONE})?")
"""The name of a column, and the one that it is given. There is nothing in it to be read."""
_OF_NOW = re.compile(
    r"\b(now|today|tomorrow|yesterday|epoch|uuid|rand\w*|shuffle|uniform|curdate|localtime\w*|current_\w+|unix_timestamp)\b",
    re.IGNORECASE,
)
"""Words that may give something else each time. Some are texts that a cast makes a time, and some are functions that
Spark calls deterministic until it has put another one in their place."""
_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_JOIN = "org.apache.spark.sql.catalyst.plans.logical.Join"


class CheckedSelect:
    """Takes the rows of a job through its mapping, which is checked for the first batch in a session of Spark."""

    def __init__(self) -> None:
        self._checked: SparkSession | None = None

    def __call__(self, rows: DataFrame, lists: Sequence[Sequence[str]]) -> DataFrame:
        """Rows through SELECT lists, each over the one before. Raises NotSupportedError."""
        if self._checked is rows.sparkSession:
            return _select(rows, lists)
        mapped = checked_select(rows, lists)
        self._checked = rows.sparkSession
        return mapped


def checked_select(rows: DataFrame, lists: Sequence[Sequence[str]]) -> DataFrame:
    """Rows through SELECT lists, when those hold nothing but what a mapping may do."""
    rules = mapping_rules(SPARK_FUNCTIONS)
    session: Any = rows.sparkSession._jsparkSession  # noqa: SLF001 - PySpark has no other way to the parser
    jvm: Any = rows.sparkSession._jvm  # noqa: SLF001 - PySpark has no other way to Java
    parser = session.sessionState().sqlParser()
    texts = dict.fromkeys(text for columns in lists for text in columns if not _NAME.fullmatch(text))
    check_plan(all_parts(jvm, [parser.parseExpression(text) for text in texts]), rules)
    mapped = _select(rows, lists)
    top = _analysed(mapped)
    names, below = classes_of_plans(top, len(lists))
    if set(names) != {_PROJECT} or below != _analysed(rows):
        raise refused([name.rpartition(".")[2] for name in names if name != _PROJECT] or ["other rows"], rules.what)
    projects = []
    for _ in lists:
        projects.append(top.projectList())
        top = top.child()
    check_plan(all_parts(jvm, projects), rules)
    return mapped


def checked_join(rows: DataFrame, others: DataFrame, on: str, how: str = "left_outer") -> DataFrame:
    """Rows beside those of the others that meet the condition. `left_outer`: all of them, beside nothing if need be."""
    rules = mapping_rules(SPARK_FUNCTIONS)
    session: Any = rows.sparkSession._jsparkSession  # noqa: SLF001 - PySpark has no other way to the parser
    jvm: Any = rows.sparkSession._jvm  # noqa: SLF001 - PySpark has no other way to Java
    check_plan(all_parts(jvm, [session.sessionState().sqlParser().parseExpression(on)]), rules)
    joined = rows.join(others, expr(on), how)
    top = _analysed(joined)
    name = str(top.getClass().getName())
    if name != _JOIN:
        raise refused([name.rpartition(".")[2]], rules.what)
    check_plan(all_parts(jvm, [top.condition().get()]), rules)
    return joined


def checked_query(spark: SparkSession, text: str, views: Collection[str]) -> DataFrame:
    """The answer to a query over the given views, when it does nothing but read them. Raises NotSupportedError."""
    rules = query_rules(QUERY_FUNCTIONS, views)
    session: Any = spark._jsparkSession  # noqa: SLF001 - PySpark has no other way to the parser
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to Java
    # Before `sql`, which runs commands at once and functions of constant values while it analyses.
    check_plan(parts_of(jvm, session.sessionState().sqlParser().parsePlan(text), views), rules)
    found = spark.sql(text)
    check_plan(parts_of(jvm, _analysed(found), frozenset(views)), rules)
    return found


def _select(rows: DataFrame, lists: Sequence[Sequence[str]]) -> DataFrame:
    for columns in lists:
        rows = rows.selectExpr(*columns)
    return rows


def is_same_each_time(rows: DataFrame, lists: Sequence[Sequence[str]]) -> bool:
    """Whether a plan gives the same for the same rows whenever it is run. Spark writes the time into a plan, once, and
    the seeds of `uuid()` and everything random: a batch that came later would have those of the first."""
    plan, jvm = _analysed(rows), rows.sparkSession._jvm  # noqa: SLF001 - PySpark has no other way to Java
    patterns: Any = jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    of_now = any(_OF_NOW.search(text) for columns in lists for text in columns)
    return not of_now and bool(plan.deterministic()) and not plan.containsPattern(patterns.CURRENT_LIKE())


def _analysed(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no other way to the plan


def all_parts(jvm: Any, items: Sequence[Any]) -> list[Part]:
    """The parts of many expressions: in one piece, which is quick, or one by one, to name what Java cannot write."""
    data = written(jvm, items)
    if data is not None:
        return read_stream(data) if items else []
    return [part for item in items for part in parts_of(jvm, item)]
