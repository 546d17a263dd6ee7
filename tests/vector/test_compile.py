"""What is in the set of the vector path, and that nothing else gets in."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from cProfile import Profile
from pathlib import Path

import pytest

from lading.pipeline.vector.evaluate import KERNELS, SPECIAL
from lading.service.compile.mapping import zoned
from lading.sql.expressions import implicit_casts
from lading.sql.expressions.spark_functions import SPARK_FUNCTIONS
from lading.sql.expressions.vector_compile import PATTERNS, compile_lists
from lading.sql.expressions.vector_functions import FUNCTIONS
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan
from tests.vector.random_sql import SqlMaker

SOURCE = {"t": "string", "i": "int", "f": "double", "n": "decimal(10,2)", "d": "date", "ts": "timestamp"}
PAGE = Path(__file__).parent.parent.parent / "docs" / "vector.md"


def compiled(text: str) -> VectorPlan | Refusal:
    return compile_lists([[f"({text}) AS e"]], SOURCE, {"e": "column price"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("regexp_replace(t, 'a', 'b')", "regexp_replace"),
        ("t RLIKE 'a+'", "a regular expression"),
        ("rand()", "rand"),
        ("uuid()", "uuid"),
        ("java_method('java.lang.System', 'exit', '1')", "java_method"),
        ("reflect('a', 'b')", "reflect"),
        ("xxhash64(t)", "xxhash64"),
        ("date_format(ts, 'yyyy')", "date_format"),
        ("(SELECT 1)", "Subquery"),
        ("i OVER ()", "cannot be read"),
        ("t LIKE '10\\\\%'", "LIKE"),
        ("t LIKE concat(t, '%')", "LIKE"),
        ("CAST(t AS INT)", "a CAST to int that is not a TRY_CAST"),
        ("TRY_CAST(f AS DECIMAL(10, 2))", "a cast from double"),
        ("cast(f AS string)", "a cast from double"),
        ("t + 1", "add of string"),
        ("t = 1", "string beside int"),
        ("n / 3", "/ and % of decimals"),
        ("'\\u0041'", "the escape"),
        ("x.t", "Column with table"),
        ("missing", "not one column"),
        ("array(1, 2)[0]", "Array"),
        ("i & 1", "BitwiseAnd"),
        ("substring(t, i, 2)", "substring with a number"),
        ("count(i)", "count"),
        ("d + INTERVAL '1' DAY", "Interval"),
        ("trim(BOTH 'x' FROM t)", "Trim with"),
        ("concat_ws(',', t, t)", "concat_ws"),
        ("if(t, 1, 2)", "a condition that is a string"),
    ],
)
def test_what_is_not_known_is_refused_and_named(text: str, why: str) -> None:
    found = compiled(text)
    assert isinstance(found, Refusal), found
    assert found.part == "column price"
    assert why in found.why


def test_every_function_of_spark_that_is_not_on_the_page_is_refused() -> None:
    """The list is the lock: on this path nobody looks at Spark's plan."""
    for name in sorted(SPARK_FUNCTIONS - FUNCTIONS.keys()):
        for arguments in ("", "t", "t, t", "i", "d"):
            found = compiled(f"{name}({arguments})")
            assert isinstance(found, Refusal), f"{name}({arguments})"


def test_the_page_lists_the_functions_of_the_set() -> None:
    listed = PAGE.read_text().partition("<!-- functions -->")[2].partition("<!-- end -->")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == FUNCTIONS.keys()


def test_regular_expressions_are_those_that_lading_writes() -> None:
    assert implicit_casts.JAVA_NUMBER in PATTERNS
    assert implicit_casts.TIME_ONLY in PATTERNS
    written = re.findall(r"RLIKE '([^']*)'", zoned("`t`", "timestamp", "Asia/Tokyo"))
    assert set(written) < PATTERNS


def test_every_node_has_something_that_computes_it() -> None:
    maker, seen = SqlMaker(5), set[str]()
    source = {"t": "string", "u": "string", "num": "string", "day": "string", "time": "string", "flag": "string"}
    source |= {"b": "boolean", "i8": "tinyint", "i16": "smallint", "i32": "int", "i64": "bigint", "f32": "float"}
    source |= {"f64": "double", "n": "decimal(10,2)", "m": "decimal(38,18)", "q": "decimal(5,5)", "d": "date"}
    source |= {"ts": "timestamp", "ntz": "timestamp_ntz"}
    for _ in range(300):
        found = compile_lists([[f"({maker.any()}) AS e"]], source)
        if isinstance(found, VectorPlan):
            seen |= {node.op for node in found.nodes}
    assert len(seen) > 35
    assert seen - {"column", "literal"} <= KERNELS.keys() | SPECIAL.keys()


def test_a_plan_is_small_to_send_and_a_chain_of_a_thousand_links_is_no_recursion() -> None:
    found = compiled(" OR ".join(f"i = {number}" for number in range(1000)))
    assert isinstance(found, VectorPlan)
    assert len(pickle.dumps(found)) < 100_000
    deep = compiled("abs(" * 300 + "i" + ")" * 300)
    assert isinstance(deep, Refusal)
    assert "deep" in deep.why


def test_names_are_found_whatever_their_case_unless_there_are_two() -> None:
    assert isinstance(compile_lists([["`ID` AS e"]], {"id": "int"}), VectorPlan)
    assert isinstance(compile_lists([["`ID` AS e"]], {"id": "int", "Id": "int"}), Refusal)


def test_a_worker_loads_no_parser() -> None:
    code = (
        "import lading.pipeline.vector.task, sys; print(sorted({'sqlglot', 'pandas', 'pyspark'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def _calls(columns: int) -> int:
    """How many calls of Python it takes to compile a list of so many columns."""
    watch = Profile()
    names = [f"c{number}" for number in range(columns)]
    plan = watch.runcall(compile_lists, [[f"`{name}` AS `{name}`" for name in names]], dict.fromkeys(names, "int"))
    assert isinstance(plan, VectorPlan)
    return sum(entry.callcount for entry in watch.getstats())


def test_four_times_as_many_columns_take_four_times_as_long() -> None:
    """It was sixteen times: a job for a table with a thousand columns took ten seconds to open."""
    assert _calls(200) < 6 * _calls(50)
