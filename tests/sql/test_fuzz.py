"""Whatever somebody writes at whatever place: what is not in quotes for Spark is a word that Lading knows."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp, parse

from lading.sql.expressions.query_parts import QUERY_FUNCTIONS
from lading.sql.expressions.spark_functions import SPARK_FUNCTIONS
from tests.sql.odd_statements import EXAMPLES, Translated, odd_mapping, odd_names, odd_query
from tests.sql.plain_spark import PlainSpark

KEYWORDS = """
and as between binary boolean bigint both case cast date decimal distinct div double else end escape extract false
float for from in int interval is leading like not null or position rlike smallint string struct then timestamp
timestamp_ltz timestamp_ntz tinyint trailing trim true try_cast when array map year years quarter quarters month
months week weeks day days hour hours minute minutes second seconds millisecond milliseconds microsecond
microseconds dow doy dayofweek yearofweek __selected __reason __note __unread __undecided __where
"""
CLAUSES = """
all any by char cube distinct except exists filter group having intersect join lateral limit on over recursive
rollup select sets tablesample union using values varchar where with
"""
WORDS = frozenset(KEYWORDS.split())
BEFORE_BRACKETS = WORDS | frozenset(CLAUSES.split())
NUMBER = re.compile(r"__[svc]\d+|\d+(\.\d*)?(e\d+)?")
COUNT = EXAMPLES


def outside(text: str) -> str:
    """What Spark sees outside of quotes; fails when one is left open. In texts a backslash takes the next letter."""
    found, at = [], 0
    while at < len(text):
        if text[at] in "'\"":
            end = text[at]
            at += 1
            while text[at] != end:
                at += 2 if text[at] == "\\" else 1
            found.append(" 0 ")
        elif text[at] == "`":
            at += 1
            while text[at] != "`" or text[at : at + 2] == "``":
                at += 2 if text[at] == "`" else 1
            found.append(" __v0 ")
        else:
            found.append(text[at])
        at += 1
    return "".join(found)


def check_form(text: str) -> str:
    bare = outside(text)
    assert not re.search(r"--|/\*|;|\$|\{|\\|#|@", bare), bare
    assert bare.isascii(), bare
    return bare


def check_tree(text: str, functions: frozenset[str] | set[str]) -> None:
    trees = parse(text, dialect=PlainSpark)
    assert len(trees) == 1
    tree = trees[0]
    assert tree is not None
    for node in tree.walk():
        assert not isinstance(node, exp.Command | exp.QueryTransform | exp.Placeholder | exp.Parameter), repr(node)
        if isinstance(node, exp.Anonymous):
            assert node.name.lower() in functions, node.name


@pytest.mark.parametrize("part", range(4))
def test_no_word_of_a_mapping_is_unknown(part: int) -> None:
    passed = 0
    for number in range(part * COUNT, (part + 1) * COUNT):
        made = odd_mapping(number)
        for each in (made, odd_names(number)):
            if each is not None:
                passed += each is made
                check_mapping(each, number)
    assert passed > COUNT / 50  # Else everything was refused, and nothing was tested.


def check_mapping(made: Translated, number: int) -> None:
    for text in made.texts:
        try:
            words = re.findall(r"\w+", check_form(text).lower())
            unknown = [word for word in words if word not in WORDS | SPARK_FUNCTIONS and not NUMBER.fullmatch(word)]
            assert not unknown, unknown
            check_tree(text, SPARK_FUNCTIONS)
        except (AssertionError, IndexError) as error:
            pytest.fail(f"number {number}: {made.statement!r}\nbecame {text!r}\n{error}")


@pytest.mark.parametrize("part", range(4))
def test_no_query_calls_what_it_may_not(part: int) -> None:
    passed = 0
    for number in range(part * COUNT, (part + 1) * COUNT):
        made = odd_query(number)
        if made is None:
            continue
        passed += 1
        (text,) = made.texts
        try:
            bare = re.sub(r"(?i)\bAS\s+\w+\(", "AS (", check_form_of_query(text))
            calls = {word.lower() for word in re.findall(r"(\w+)\s*\(", bare)}
            unknown = {
                word for word in calls if word not in BEFORE_BRACKETS | QUERY_FUNCTIONS and not NUMBER.fullmatch(word)
            }
            assert not unknown, unknown
            assert not re.search(r"using\s+0", bare.lower()), bare
            check_tree(text, QUERY_FUNCTIONS)
        except (AssertionError, IndexError) as error:
            pytest.fail(f"number {number}: {made.statement!r}\nbecame {text!r}\n{error}")
    assert passed > COUNT / 50


def check_form_of_query(text: str) -> str:
    bare = outside(text)
    assert not re.search(r"--|/\*|;|\$|\{|\\|#|@|\?", bare), bare
    return bare
