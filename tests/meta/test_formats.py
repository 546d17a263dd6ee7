"""Only the folder of a table format and the registry know the format: everything else asks its kind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lading.tables.registry import NAMES

SRC = Path(__file__).parent.parent.parent / "src" / "lading"
REGISTRY = "tables/registry.py"


def knowing(text: str) -> list[str]:
    """Where a text names a format as a value, or imports from its folder. Prose and SQL that mention one are fine."""
    places: list[str] = []
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.lower().split(".")
            if name.lower() in NAMES or (parts[:2] == ["lading", "tables"] and set(parts[2:3]) & set(NAMES)):
                places.append(f"{name} in line {getattr(node, 'lineno', 0)}")
    return places


def is_inside(path: Path) -> bool:
    relative = path.relative_to(SRC).as_posix()
    return relative == REGISTRY or any(relative.startswith(f"tables/{name}/") for name in NAMES)


def test_nothing_outside_its_folder_knows_a_table_format() -> None:
    knows = {path: found for path in SRC.rglob("*.py") if not is_inside(path) and (found := knowing(path.read_text()))}
    assert knows == {}


@pytest.mark.parametrize(
    "line",
    [
        'if card.format == "delta": pass',
        'match form:\n    case "iceberg": pass',
        'OPENERS = {"delta": 1}',
        "from lading.tables.iceberg.table import open_iceberg_table",
        "import lading.tables.delta.table",
        'module = "lading.tables.delta.writer"',
    ],
)
def test_the_check_sees_what_it_looks_for(line: str) -> None:
    assert len(knowing(line)) == 1


def test_formats_do_not_know_each_other() -> None:
    for name in NAMES:
        others = {other for other in NAMES if other != name}
        for path in (SRC / "tables" / name).rglob("*.py"):
            assert not any(f"lading.tables.{other}." in path.read_text() for other in others), path
