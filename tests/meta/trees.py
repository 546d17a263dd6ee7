"""Every file of the package, parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, as `ast.walk` gives them."""
    return tuple(ast.walk(tree_of(path)))
