"""Nothing is built and not connected: what is accepted, kept or promised has somebody who reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.meta.trees import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lading"
PROPERTIES = (
    *(SOURCE / "sql" / "properties" / f"{name}.py" for name in ("jobs", "routine")),
    *sorted((SOURCE / "sources").glob("*/properties.py")),
    SOURCE / "model" / "row_formats.py",
    SOURCE / "model" / "s3_access.py",
)
LOAD = SOURCE / "model" / "load.py"
BUILDER = SOURCE / "sql" / "statements" / "load_specs.py"
"""Where properties become a load. What it takes of them is what the load keeps."""
TRANSLATED = {"strict_cast", "source_alias"}
"""Fields of a load that only the translation of its expressions reads, which is in `sql`."""
SHOW = ("load_facts",)
"""Modules that print what a statement said. That a property is printed does not make it do anything."""
NO_EFFECT = {
    "exec_mem_limit_bytes": "exec_mem_limit",
    "send_batch_parallelism": "send_batch_parallelism",
    "num_as_string": "num_as_string",
    "fuzzy_parse": "fuzzy_parse",
    "partial_columns": "partial_columns",
    "unique_key_update_mode": "unique_key_update_mode",
}
"""Fields that are only printed, with the names of their properties. The page says that they change nothing."""
FOR_PEOPLE = {"lading_version"}
"""Fields of a bill that only people read, in its JSON."""


BELOW = {"tables", "sources", "pipeline", "sql"}


@cache
def readers() -> dict[str, frozenset[Path]]:
    """By the name of an attribute: the modules that read it. Fakes and the simulator prove nothing about use."""
    found: dict[str, set[Path]] = {}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] == "testing":
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.attr, set()).add(path)
    return {name: frozenset(paths) for name, paths in found.items()}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def read_elsewhere(name: str, room: str) -> set[Path]:
    return {path for path in readers().get(name, ()) if room_of(path) != room}


def classes(path: Path) -> Iterator[ast.ClassDef]:
    yield from (node for node in tree_of(path).body if isinstance(node, ast.ClassDef))


def fields(each: ast.ClassDef) -> Iterator[str]:
    for node in each.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def methods(each: ast.ClassDef) -> Iterator[str]:
    yield from (node.name for node in each.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_")


PROPERTY_FIELDS = [
    pytest.param(name, id=f"{each.name}.{name}")
    for path in PROPERTIES
    for each in classes(path)
    for name in fields(each)
]


@pytest.mark.parametrize("name", PROPERTY_FIELDS)
def test_every_property_that_is_accepted_is_read_or_said_to_change_nothing(name: str) -> None:
    users = {path for path in read_elsewhere(name, "sql") if path.stem not in SHOW and path not in PROPERTIES}
    if name not in NO_EFFECT:
        kept = BUILDER in readers().get(name, ())
        assert users or kept, f"nothing reads the property {name}: connect it, or refuse it by name"
        return
    assert not users, f"{name} is read by {users}: take it from NO_EFFECT"
    pages = [(ROOT / "docs" / page).read_text() for page in ("files.md", "routine-load.md")]
    rows = [line for page in pages for line in page.splitlines() if NO_EFFECT[name] in line.partition(" | ")[0]]
    assert any("changes nothing" in row or "refused" in row for row in rows), (
        f"docs do not say that {name} has no effect"
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=f"{each.name}.{name}") for each in classes(LOAD) for name in fields(each)]
)
def test_everything_that_a_load_keeps_is_read_where_it_runs_or_is_shown(name: str) -> None:
    users = {path for path in readers().get(name, ()) if room_of(path) not in ("model", "sql")}
    if name in NO_EFFECT:
        users = {path for path in users if path.stem not in SHOW}
        assert not users, f"{name} is read by {users}: take it from NO_EFFECT"
        return
    assert users or name in TRANSLATED, f"nothing reads {name} of a load"


def test_every_method_of_the_store_is_called() -> None:
    protocols = classes(SOURCE / "store" / "protocols.py")
    promised = {name for each in protocols for name in methods(each)}
    assert "load_job_by_id" in promised
    # Those below the service never see a store; they have methods of the same names.
    called = {name for name in promised for path in read_elsewhere(name, "store") if room_of(path) not in BELOW}
    assert promised == called


def test_every_field_of_a_bill_is_read() -> None:
    [bill] = [each for each in classes(SOURCE / "model" / "bill.py") if each.name == "Bill"]
    kept = set(fields(bill))
    assert "positions" in kept
    assert {name for name in kept if not read_elsewhere(name, "model")} == FOR_PEOPLE


def test_what_the_store_keeps_is_read() -> None:
    kept = {
        f"{each.name}.{name}"
        for each in classes(SOURCE / "store" / "records.py")
        for name in fields(each)
        if not read_elsewhere(name, "store")
    }
    assert not kept


def test_nothing_that_is_not_read_would_pass() -> None:
    assert not read_elsewhere("partial_update_new_key_behavior", "sql"), "a name that nothing reads"
    assert read_elsewhere("on_data_loss", "sql"), "a name that is read"
