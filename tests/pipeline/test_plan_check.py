"""The second lock without Spark: over plans that Java wrote down once."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from lading.errors import NotSupportedError
from lading.pipeline.java_stream import JavaClass, JavaLiteral, JavaObject, Part, read_stream, texts_of
from lading.pipeline.plan_check import check_plan, mapping_rules, query_rules
from lading.sql.expressions.query_parts import QUERY_FUNCTIONS
from lading.sql.expressions.spark_functions import SPARK_FUNCTIONS

RECORDED = Path(__file__).parent.parent / "golden" / "spark-plans.txt"
"""A name, the expression, and what Spark's parser made of it, as Java writes it."""
MAPPING = mapping_rules(SPARK_FUNCTIONS)
QUERY = query_rules(QUERY_FUNCTIONS, ["v1"])
ANALYSIS = "org.apache.spark.sql.catalyst.analysis."
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
PLANS = "org.apache.spark.sql.catalyst.plans.logical."


def recorded(name: str) -> bytes:
    lines = (line.split(" | ") for line in RECORDED.read_text().splitlines())
    return next(base64.b64decode(data) for found, _, data in lines if found == name)


def made(name: str, **fields: object) -> JavaObject:
    return JavaObject(JavaClass(name), dict(fields))


def test_a_plan_is_read_down_to_its_lambdas() -> None:
    parts = read_stream(recorded("evil"))
    calls = [part for part in parts if isinstance(part, JavaObject) and part.kind.name.endswith(".UnresolvedFunction")]
    assert [texts_of(call.fields["nameParts"]) for call in calls] == [["transform"], ["java_method"]]
    with pytest.raises(NotSupportedError, match="would run the function java_method, which is not allowed"):
        check_plan(parts, MAPPING)
    check_plan(read_stream(recorded("good")), MAPPING)


def test_a_stream_that_is_cut_off_is_refused_wherever_it_is_cut() -> None:
    data = recorded("evil")
    for end in range(len(data)):
        with pytest.raises(NotSupportedError, match="cannot be checked"):
            read_stream(data[:end])


def test_odd_bytes_are_refused() -> None:
    data = recorded("good")
    for code in (0x79, 0x7B, 0x7D, 0x00):
        with pytest.raises(NotSupportedError, match="cannot be checked"):
            read_stream(data[:4] + bytes([code]) + data[4:])


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (made(f"{PLANS}ScriptTransformation"), "ScriptTransformation"),
        (made(f"{EXPRESSIONS}CallMethodViaReflection"), "CallMethodViaReflection"),
        (made(f"{EXPRESSIONS}ScalaUDF"), "ScalaUDF"),
        (made(f"{EXPRESSIONS}PythonUDF"), "PythonUDF"),
        (made("org.apache.spark.sql.execution.datasources.LogicalRelation"), "LogicalRelation"),
        (made("org.apache.spark.sql.execution.command.AddJarsCommand"), "AddJarsCommand"),
        (made(f"{EXPRESSIONS}objects.NewInstance"), "NewInstance"),
        (made(f"{EXPRESSIONS}objects.Invoke", functionName="exec"), "the method exec"),
        (
            made(
                f"{EXPRESSIONS}objects.StaticInvoke",
                staticObject=JavaLiteral(JavaClass("org.apache.spark.sql.types.Decimal")),
                functionName="x",
            ),
            "the method x",
        ),
        (made("java.lang.invoke.SerializedLambda", implClass="evil/Code"), "Code"),
        (JavaLiteral(JavaClass("java.lang.Runtime")), "Runtime"),
        (made(f"{ANALYSIS}UnresolvedFunction", nameParts=["system", "builtin", "upper"]), "system.builtin.upper"),
        (made(f"{ANALYSIS}UnresolvedFunction"), "the function ?"),
        (made(f"{ANALYSIS}UnresolvedRelation", multipartIdentifier=["csv", "/etc/passwd"]), "csv./etc/passwd"),
        (made(f"{ANALYSIS}UnresolvedRelation", multipartIdentifier=["V1"]), "the table V1"),
        (made("org.apache.spark.sql.util.CaseInsensitiveStringMap", is_empty=False), "options of a table"),
        (made("a.Class.of.Tomorrow"), "Tomorrow"),
    ],
)
def test_what_is_on_no_list_is_named_and_refused(part: Part, said: str) -> None:
    for rules in (MAPPING, QUERY):
        with pytest.raises(NotSupportedError, match="was refused before it ran") as caught:
            check_plan([part], rules)
        assert said in str(caught.value)
        assert "Nothing was run" in str(caught.value)
        assert not caught.value.retry


def test_tables_and_subqueries_are_for_queries_only() -> None:
    own = made(f"{PLANS}UnresolvedWith", names=["x"])
    parts = [own, *(made(f"{ANALYSIS}UnresolvedRelation", multipartIdentifier=[name]) for name in ("v1", "x"))]
    check_plan([*parts, made(f"{EXPRESSIONS}ScalarSubquery"), made(f"{PLANS}Project")], QUERY)
    for part in (*parts, made(f"{EXPRESSIONS}ScalarSubquery"), made(f"{PLANS}Project")):
        with pytest.raises(NotSupportedError):
            check_plan([part], MAPPING)
