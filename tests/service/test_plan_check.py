"""The second lock, with the first one open: what Spark would run is looked at before Spark runs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lading.errors import NotSupportedError
from lading.pipeline.checked import CheckedSelect, all_parts, checked_query, checked_select
from lading.pipeline.java_stream import JavaLiteral, JavaObject, Part
from lading.pipeline.mapping import RowMapping, TargetColumn, select_lists
from lading.pipeline.plan_check import Rules, check_plan, mapping_rules, query_rules
from lading.pipeline.plan_parts import parts_of
from lading.pipeline.spark_classes import FUNCTION_CLASSES, QUERY_CLASSES
from lading.sql.expressions.query_parts import QUERY_FUNCTIONS
from lading.sql.expressions.spark_functions import (
    AGGREGATE_FUNCTIONS,
    REFUSED_FUNCTIONS,
    ROW_FUNCTIONS,
    SPARK_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
from tests.service.conftest import Desk
from tests.sql.odd_statements import EXAMPLES as ALL_EXAMPLES
from tests.sql.odd_statements import odd_mapping, odd_names, odd_query

TIMES = {name for name in SPARK_FUNCTIONS if re.search(r"(^|_)time(_|$)|nanos", name)} - {
    "time_bucket",
    "time",
    "current_time",
}
"""Functions of a type that Spark does not have switched on."""
ALLOWED = SPARK_FUNCTIONS | AGGREGATE_FUNCTIONS | WINDOW_FUNCTIONS | ROW_FUNCTIONS
PROPERTY = "lading.test.evil"
EVIL = f"java_method('java.lang.System', 'setProperty', '{PROPERTY}', 'x')"
EXAMPLES = ALL_EXAMPLES // 8
MARK = "@"
"""Where a file would appear that a program makes."""


@pytest.fixture
def view(spark: SparkSession) -> Iterator[str]:
    spark.range(1, 2).selectExpr("id", "'a' AS city").createOrReplaceTempView("v1")
    yield "v1"
    spark.catalog.dropTempView("v1")
    spark._jvm.System.clearProperty(PROPERTY)  # type: ignore[union-attr]


def was_run(spark: SparkSession) -> bool:
    return spark._jvm.System.getProperty(PROPERTY) is not None  # type: ignore[union-attr]


def functions_of(spark: SparkSession) -> list[tuple[str, str, str]]:
    infos = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()  # type: ignore[union-attr]
    return [(str(info.getName()), str(info.getClassName()), str(info.getExamples())) for info in infos]


# The lists.


def test_every_function_of_spark_is_allowed_or_refused_with_a_reason(spark: SparkSession) -> None:
    names = {name: kind for name, kind, _ in functions_of(spark)}
    words = {name for name in names if re.fullmatch(r"\w+", name)} - {"and", "or", "not", "in", "div"}
    assert words - ALLOWED - REFUSED_FUNCTIONS.keys() == set()
    assert ALLOWED & REFUSED_FUNCTIONS.keys() == set()
    wanted = {names[name] for name in words & ALLOWED if not names[name].endswith("Builder")}
    assert wanted == FUNCTION_CLASSES
    refused = {names[name] for name in words & REFUSED_FUNCTIONS.keys()}
    assert {name.rpartition(".")[2] for name in refused & QUERY_CLASSES} == {"CaseWhen"}  # Of `when`, which is CASE.


def test_what_spark_shows_of_its_functions_passes(spark: SparkSession) -> None:
    """Each function in an example of Spark's own, many in one query."""
    asked = {name: re.findall(r"> SELECT (.*?);\s*\n", text, re.S) for name, _, text in functions_of(spark)}
    texts = [asked[name][0] for name in sorted((asked.keys() & ALLOWED) - TIMES) if asked[name]]
    for at in range(0, len(texts), 50):
        queries = ", ".join(f"(SELECT {text}) q{number}" for number, text in enumerate(texts[at : at + 50]))
        assert checked_query(spark, f"SELECT 1 FROM {queries}", ()).columns == ["1"]
    assert len(texts) > 350


MANY = [
    "SELECT count(*) FROM v1 GROUP BY city HAVING count(*) > 0 ORDER BY 1 LIMIT 3 OFFSET 0",
    "WITH x AS (SELECT * FROM v1), y AS (SELECT * FROM x) SELECT y.id FROM x JOIN y ON x.id = y.id",
    "SELECT (SELECT max(id) FROM v1), EXISTS (SELECT 1 FROM v1 WHERE v1.id = o.id) FROM v1 o WHERE id IN (SELECT 1)",
    "SELECT rank() OVER w FROM v1 WINDOW w AS (PARTITION BY city ORDER BY upper(city))",
    "SELECT CASE WHEN id = 1 THEN transform(array(1, 2), x -> x + id) ELSE NULL END FROM v1",
    "SELECT * FROM (VALUES (1, upper('a'))) t UNION ALL SELECT 2, 'b' EXCEPT SELECT 3, 'c'",
    "SELECT z FROM v1 LATERAL VIEW explode(array(1, 2)) q AS z",
    "SELECT sum(id) FILTER (WHERE id < 3), percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM v1 GROUP BY CUBE(city)",
    "SELECT aes_encrypt('a', '0123456789abcdef'), url_encode('a'), is_valid_utf8('a'), nullif(1, 2)",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 3) SELECT * FROM x",
]


@pytest.mark.parametrize("text", MANY)
def test_nothing_of_a_plan_is_left_out(spark: SparkSession, view: str, text: str) -> None:
    """Spark's own JSON, which is too long for deep plans, names no class that the check was not given."""
    parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    analysed = spark.sql(text)._jdf.queryExecution().analyzed()
    for plan, views in ((parsed, ()), (analysed, ())):
        found = {
            part.kind.name for part in parts_of(spark._jvm, plan, views) if isinstance(part, JavaObject | JavaLiteral)
        }
        assert named(json.loads(plan.toJSON())) - found == set()
    assert checked_query(spark, text, [view]).columns


def named(shown: Any) -> set[str]:
    if isinstance(shown, list):
        return {name for part in shown for name in named(part)}
    if not isinstance(shown, dict):
        return set()
    inside = {name for part in shown.values() for name in named(part)}
    return inside | ({shown["class"]} if "class" in shown else set())


# Mappings.


def source(spark: SparkSession) -> DataFrame:
    return spark.range(1).selectExpr("'1' AS a", "'2' AS b", "CAST(NULL AS binary) AS __note")


def lists_of(expression: str, *, where: str | None = None, name: str = "x") -> tuple[list[str], ...]:
    column = TargetColumn(name=name, type="string", expression=expression, nullable=False, max_length=3)
    return select_lists(RowMapping(columns=(column,), where=where), ("a", "b"))


EXPRESSIONS = [
    EVIL,
    f"upper({EVIL})",
    f"`reflect`('java.lang.System', 'setProperty', '{PROPERTY}', 'x')",
    f"try_reflect('java.lang.System', 'setProperty', '{PROPERTY}', 'x')",
    f"system.builtin.reflect('java.lang.System', 'setProperty', '{PROPERTY}', 'x')",
    f"transform(array(1), x -> {EVIL})",
    f"CASE WHEN a = 'x' THEN {EVIL} END",
    f"identifier('java_' || 'method')('java.lang.System', 'setProperty', '{PROPERTY}', 'x')",
    f"from_json(a, {EVIL})",
    f"from_csv(a, upper({EVIL}))",
    f"(SELECT {EVIL})",
    f"EXISTS (SELECT {EVIL})",
    f"a IN (SELECT {EVIL})",
    "(SELECT max(_c0) FROM csv.`/etc/passwd`)",
    f"(SELECT TRANSFORM(1) USING 'touch {MARK}' AS x)",
    f"(SELECT max(x) FROM VALUES ({EVIL}) AS t(x))",
    "xpath(a, '/a')",
    "from_xml(a, 'x INT')",
    "input_file_name()",
    "current_user()",
    "current_user",
    "raise_error('x')",
    "max(a)",
    "row_number() OVER (ORDER BY a)",
    "explode(array(1, 2))",
    "ours(a)",
    "a => 1",
    "read_files('/etc/passwd')",
    "from_avro(a, '{}')",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_mapping_that_does_more_never_runs(spark: SparkSession, view: str, tmp_path: Path, expression: str) -> None:
    made = tmp_path / "made"
    text = expression.replace(MARK, str(made))
    spark.udf.register("ours", lambda value: value)
    for lists in (lists_of(text), lists_of("a", where=f"({text}) IS NOT NULL")):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own error, when it cannot even read it
            checked_select(source(spark), lists)
        is_syntax = "PARSE_SYNTAX_ERROR" in str(caught.value)
        assert isinstance(caught.value, NotSupportedError) or (is_syntax and "=>" in text), str(caught.value)[:300]
    assert not was_run(spark)
    assert not made.exists()


def test_the_check_can_fail_and_the_harm_is_real(spark: SparkSession, view: str, tmp_path: Path) -> None:
    """Without the check the same texts do what they say."""
    spark.sql(f"SELECT {EVIL}").collect()
    assert was_run(spark)
    made = tmp_path / "made"
    spark.sql(f"SELECT TRANSFORM(id) USING 'touch {made}' AS x FROM v1").collect()
    assert made.exists()


def test_an_honest_mapping_passes_and_is_checked_once(spark: SparkSession) -> None:
    lists = lists_of(
        "coalesce(CAST(a AS INT) + TIMESTAMPDIFF(HOUR, now(), to_timestamp(b)), length(GET_JSON_OBJECT(a, '$.x')))",
        where="a RLIKE 'x' AND date_add(b, 1) - INTERVAL '1' DAY > current_date()",
        name="it's `odd`",
    )
    select = CheckedSelect()
    assert select(source(spark), lists).columns == ["it's `odd`", "__note"]
    assert select(source(spark), lists).columns == ["it's `odd`", "__note"]
    with pytest.raises(NotSupportedError):
        CheckedSelect()(source(spark), lists_of("max(a)"))


def test_dates_intervals_and_types_of_all_kinds_pass(spark: SparkSession) -> None:
    kinds = {"d": "date", "t": "timestamp", "n": "timestamp_ntz", "i": "int", "f": "float", "m": "decimal(10,2)"}
    kinds |= {"s": "string", "b": "binary"}
    rows = spark.range(1).selectExpr(*(f"CAST(NULL AS {kind}) AS {name}" for name, kind in kinds.items()))
    texts = [f"{left} {sign} {right}" for sign in "+-*/%=" for left in "ifms" for right in "ifms"]
    texts += [f"{left} + INTERVAL '1' {unit}" for left in "dtn" for unit in ("DAY", "MONTH", "SECOND", "YEAR")]
    texts += [f"extract({unit} FROM {left})" for left in "dtn" for unit in ("YEAR", "QUARTER", "WEEK", "DOW", "SECOND")]
    texts += [
        "(t - n) / 2",
        "(d - d) * 2",
        "extract(HOUR FROM t - n)",
        "make_interval(1) + t",
        "-(t - n)",
        "d - t",
        "d + i",
    ]
    texts += [f"{left} = {right}" for left in "dtns" for right in "dtns"]
    texts += ["d - i", "i | 1", "~i", "b = b", "s = b", "s || b", "named_struct('x', i).x"]
    texts += [f"CAST({left} AS {kind})" for left in "dtns" for kind in ("string", "date", "timestamp")]
    assert len(checked_select(rows, [texts]).columns) == len(texts)


# Queries.

QUERIES = [
    *(
        f"SELECT {text}"
        for text in EXPRESSIONS
        if not text.startswith(("max(", "row_number", "explode", "a =>", "current_user"))
    ),
    "SELECT current_user",
    "SELECT user",
    f"SELECT TRANSFORM(id) USING 'touch {MARK}' AS x FROM v1",
    f"FROM v1 MAP id USING 'touch {MARK}' AS x",
    "SELECT * FROM csv.`/etc/passwd`",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM default.v1",
    "SELECT * FROM v2",
    "WITH v2 AS (SELECT * FROM other) SELECT * FROM v2",
    f"SELECT * FROM VALUES ({EVIL}) AS t(x)",
    f"SELECT * FROM v1 ORDER BY {EVIL}",
    f"SELECT * FROM v1 LIMIT length({EVIL})",
    f"SELECT rank() OVER w FROM v1 WINDOW w AS (ORDER BY from_json(city, {EVIL}))",
    f"SELECT z FROM v1 LATERAL VIEW explode(array({EVIL})) q AS z",
    f"SELECT * FROM v1, LATERAL (SELECT {EVIL})",
    f"SELECT sum(id) FILTER (WHERE {EVIL} = 'x') FROM v1",
    f"SELECT * FROM v1 PIVOT (sum(id) FOR city IN ({EVIL}))",
    f"SELECT /*+ BROADCAST({EVIL}) */ * FROM v1",
    f"WITH x AS (SELECT {EVIL}) SELECT 1",
    "SELECT * FROM range(3)",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM v1 TABLESAMPLE (5 ROWS), other",
    "SELECT ours(city) FROM v1",
    "SELECT assert_true(false)",
    "ADD JAR '/x.jar'",
    "SET spark.sql.runSQLOnFiles=true",
    "CREATE FUNCTION f AS 'java.lang.String'",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.String'",
    "DROP TABLE v1",
    "DROP VIEW v1",
    "CREATE TABLE t USING parquet AS SELECT 1",
    "CREATE OR REPLACE TEMP VIEW v1 AS SELECT 2 AS id",
    "INSERT INTO v1 SELECT 1, 'b'",
    f"INSERT OVERWRITE DIRECTORY '{MARK}' USING csv SELECT 1",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN SELECT 1; END",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    "DESCRIBE v1",
    "CACHE TABLE v1",
    "USE default",
    "DECLARE VARIABLE x = 1",
]


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_that_does_more_never_runs(spark: SparkSession, view: str, tmp_path: Path, text: str) -> None:
    made = tmp_path / "made"
    spark.udf.register("ours", lambda value: value)
    with pytest.raises(NotSupportedError, match="was refused before it ran"):
        checked_query(spark, text.replace(MARK, str(made)), [view])
    assert not was_run(spark)
    assert not made.exists()
    assert spark.conf.get("spark.sql.runSQLOnFiles") == "true"
    assert [tuple(row) for row in spark.table(view).collect()] == [(1, "a")]


# Odd statements: what Spark's own parser makes of them.


def test_nothing_odd_comes_through_to_spark(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    mappings = {number: _read_all(parser.parseExpression, _texts_of_mappings(number)) for number in range(EXAMPLES)}
    for number, plans in mappings.items():
        _check_harmless(all_parts(spark._jvm, plans), mapping_rules(SPARK_FUNCTIONS), number)
    queries = 0
    for number in range(EXAMPLES):
        query = odd_query(number)
        for plan in _read_all(parser.parsePlan, query.texts if query else ()):
            queries += 1
            _check_harmless(parts_of(spark._jvm, plan), query_rules(QUERY_FUNCTIONS, ["lading_view"]), number)
    assert sum(map(len, mappings.values())) > EXAMPLES
    assert queries > EXAMPLES / 5


def _texts_of_mappings(number: int) -> list[str]:
    return [text for made in (odd_mapping(number), odd_names(number)) if made for text in made.texts]


def _read_all(parse: Callable[[str], Any], texts: Iterable[str]) -> list[Any]:
    found = []
    for text in texts:
        with suppress(PySparkException):  # Spark cannot even read it.
            found.append(parse(text))
    return found


def _check_harmless(parts: list[Part], rules: Rules, number: int) -> None:
    try:
        check_plan(parts, rules)
    except NotSupportedError as error:
        pytest.fail(f"number {number}: {error}")


# From the door, with the first lock open.

UNIT = f"`HOUR, now(), now()) + length({EVIL}) + timestampdiff(HOUR`"


def test_a_job_whose_plan_is_refused_is_paused_and_runs_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.sql.expressions.mapping.is_unit", lambda node: True)
    desk.table()
    desk.put_orders("a.csv", 0, 3)
    desk.create(select=f"id, timestampdiff({UNIT}, now(), now()), amount")
    assert "JAVA_METHOD" in desk.lading.store.list_jobs()[0].record.definition.upper()
    desk.run()
    assert not was_run(desk.lading.spark())
    assert desk.ids() == []
    assert desk.show("Status") == "PAUSED"
    said = desk.show("ErrorMsg")
    assert "the function JAVA_METHOD" in said
    assert "Nothing was run" in said


def test_a_query_whose_plan_is_refused_runs_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table()
    monkeypatch.setattr("lading.sql.expressions.queries._call_problem", lambda node: "")
    with pytest.raises(NotSupportedError, match="the function JAVA_METHOD"):
        desk.sql(f"SELECT {EVIL} FROM orders")
    assert not was_run(desk.lading.spark())
