"""Plain words: what people read is modern English."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.meta.trees import tree_of

ROOT = Path(__file__).parent.parent.parent
EVERYWHERE = re.compile(r"\b(whoever|anew|mend(s|ed|ing)?|who is asking|needs a person)\b", re.IGNORECASE)
SHOWN = re.compile(r"\bstands?\b|\b(was|were) put back\b|\blies at\b|\bthink who\b", re.IGNORECASE)
"""Also not in messages and pages; in a comment they do no harm."""
FOLDERS = {"src": ("*.py", "*.js"), "tests": ("*.py",), "docs": ("*.md",), "bench": ("*.py",), "deploy": ("*",)}
NOT_READ = (ROOT / "docs" / "design", ROOT / "tests" / "meta" / "test_words.py")
"""Records of decisions are never edited."""


def files() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder, patterns in FOLDERS.items():
        for pattern in patterns:
            yield from (path for path in (ROOT / folder).rglob(pattern) if path.is_file())


def test_old_words_are_gone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in files()
        if not any(path == place or place in path.parents for place in NOT_READ) and _is_text(path)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if EVERYWHERE.search(line) or (path.suffix == ".md" and path.name != "CHANGELOG.md" and SHOWN.search(line))
    ]
    assert found == []


def test_messages_are_plain() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value[:120]}"
        for path in (ROOT / "src").rglob("*.py")
        for node in _shown(tree_of(path))
        if isinstance(node.value, str) and SHOWN.search(node.value)
    ]
    assert found == []


def _shown(tree: ast.Module) -> Iterator[ast.Constant]:
    """Texts that are no docstrings."""
    nodes = list(ast.walk(tree))
    notes = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in notes)


def _is_text(path: Path) -> bool:
    return b"\0" not in path.read_bytes()[:1024]
