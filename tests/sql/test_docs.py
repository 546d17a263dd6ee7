"""Every example of the pages about the SQL and about users is a statement, and asks for something that can be had."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lading.sources.registry import check_load
from lading.sql.properties.jobs import JOB_PROPERTY_NAMES
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad, Statement
from lading.sql.syntax.parse import parse_statements

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = ("sql", "users", "audit", "state", "clean", "several-services", "compaction", "catalogs", "from", "read")
PAGE = "".join((DOCS / f"{name}.md").read_text() for name in PAGES)
STATEMENTS = [
    statement for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL) for statement in parse_statements(block)
]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: type(statement).__name__)
def test_an_example_can_be_run(statement: Statement) -> None:
    if isinstance(statement, CreateJob | CreateRoutineLoad):
        check_load(statement)


def test_every_form_has_an_example() -> None:
    shown = {type(statement) for statement in STATEMENTS}
    assert shown >= set(Statement.__args__) - {type(None)}


def test_every_job_property_is_explained() -> None:
    for name in JOB_PROPERTY_NAMES:
        assert name in PAGE
