"""How many examples a random test tries is asked of one setting, which `make torture` and `make marathon` raise."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_random_test_asks_the_setting_how_many() -> None:
    asked, own = 0, list[str]()
    for path in TESTS.rglob("*.py"):
        text = path.read_text()
        for word in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.keyword)):
            if word.arg != "max_examples":
                continue
            is_asked = "examples(" in (ast.get_source_segment(text, word.value) or "")
            asked += is_asked
            is_named = isinstance(word.value, ast.Name) and f"{word.value.id} = examples(" in text
            if not is_asked and not is_named:
                own.append(f"{path.relative_to(TESTS)}:{word.value.lineno}")
    assert own == []
    assert asked > 15


def test_the_setting_is_read_at_one_place() -> None:
    reading = [path for path in TESTS.rglob("*.py") if 'environ.get("LADING_TEST_EXAMPLES"' in path.read_text()]
    assert sorted(path.name for path in reading) == ["examples.py", "test_examples.py"]
