"""An error has a class because somebody catches it, or because a face answers otherwise; and it says what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lading.errors import FACES, LadingError
from tests.meta.errors_page import CLASSES, SOURCE, Made, all_made, render, written
from tests.meta.trees import tree_of

MOST_CLASSES = 30
INSIDE = {
    "Fault": "mysql/protocol/errors.py",
    "ClosedError": "mysql/protocol/wire.py",
    "NotConstantError": "mysql/emulation/constants.py",
    "PeerGoneError": "service/spark_queries/wire.py",
    "MalformedError": "net/proxy_http.py",
    "_RefusedError": "net/gate.py",
    "NotS3Error": "storage/s3_client.py",
    "RefusedError": "sql/expressions/vector_build.py",
    "UnsureError": "pipeline/vector/arrays.py",
    "TaskFailedError": "pipeline/local_pool.py",
    "CatalogAnswerError": "tables/iceberg/errors.py",
}
"""Exceptions that end a step within one room and are never shown to anybody."""
TREES = {str(path.relative_to(SOURCE)): tree_of(path) for path in SOURCE.rglob("*.py")}


def exceptions() -> Iterator[tuple[str, str]]:
    """Name and file of every class that is an exception by its bases."""
    known = {"Exception", "BaseException", "ValueError", "OSError", "RuntimeError", "ConnectionError", "BotoCoreError"}
    known |= {"LookupError", "KeyError", "TypeError", "ArithmeticError", "EOFError", "PermissionError"}
    classes = [
        (node, path) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    size = 0
    while len(known) != size:
        size = len(known)
        known |= {node.name for node, _ in classes if {_name(base) for base in node.bases} & known}
    return ((node.name, path) for node, path in classes if {_name(base) for base in node.bases} & known)


def caught() -> set[str]:
    """Names in `except`, `case`, `isinstance` and `suppress`."""
    found: set[str] = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            match node:
                case ast.ExceptHandler(type=ast.expr() as kinds):
                    found |= _names(kinds)
                case ast.MatchClass(cls=kind):
                    found |= _names(kind)
                case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                    found |= _names(kinds)
                case ast.Call(func=ast.Name(id="suppress"), args=kinds_):
                    found |= {name for kind in kinds_ for name in _names(kind)}
    return found


def _names(node: ast.expr) -> set[str]:
    return {_name(part) for part in ast.walk(node)}


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_classes_are_few_and_in_one_place() -> None:
    found = dict(exceptions())
    assert {name for name, path in found.items() if path == "errors.py"} == set(CLASSES)
    assert len(CLASSES) <= MOST_CLASSES
    assert {name: path for name, path in found.items() if path != "errors.py"} == INSIDE


def test_somebody_tells_each_class_from_its_parent() -> None:
    told = caught()
    for name, kind in CLASSES.items():
        parent = kind.__mro__[1]
        is_mapped = issubclass(parent, LadingError) and _answers(kind) != _answers(parent)
        assert name in told or is_mapped, f"nobody catches {name}, and every face answers as for {parent.__name__}"
    assert set(INSIDE) - told == {"NotS3Error"}, "botocore's own class is what is caught there"


def _answers(kind: type[LadingError]) -> tuple[object, ...]:
    return kind.retry, kind.exit_code, FACES[kind.__name__.removesuffix("Error")]


def test_every_code_is_in_the_table_and_used() -> None:
    used = {made.code for made in all_made() if made.code} | {name.removesuffix("Error") for name in CLASSES}
    assert used == set(FACES)


def test_every_error_says_what_it_left_and_what_to_do() -> None:
    silent = [
        f"{made.where} {made.kind} {part}" for made in all_made() for part in ("left", "todo") if _is_silent(made, part)
    ]
    assert silent == []
    defaults = [
        f"{path}:{node.lineno} {argument.arg}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and path != "errors.py"
        for argument, default in _defaults(node)
        if argument.arg in ("left", "todo") and isinstance(default, ast.Constant) and default.value == ""
    ]
    assert defaults == []


def _is_silent(made: Made, part: str) -> bool:
    if part not in made.keywords:
        return None not in made.keywords and not getattr(CLASSES[made.kind]("x"), part)
    given = made.keywords[part]
    return isinstance(given, ast.Constant) and not given.value


def _defaults(node: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    named = [*node.args.posonlyargs, *node.args.args]
    yield from zip(named[len(named) - len(node.args.defaults) :], node.args.defaults, strict=True)
    yield from zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)


def test_the_page_of_errors_is_what_is_raised() -> None:
    assert written()[0] == render(), "run python -m tests.meta.errors_page"
