"""docs/errors.md, from the classes, the table of codes and the code that raises: `python -m tests.meta.errors_page`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lading import errors
from lading.errors import FACES, Face, LadingError
from tests.meta.trees import nodes_of

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "lading"
PAGE = ROOT / "docs" / "errors.md"
CLASSES = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, LadingError)}
HEAD = """# What does this error mean?

Every error says what failed, what state it left, and what to do next. `retry` means that trying again without a
person can help; Lading then does so by itself. `exit` is the status of a command that ends with the error; `HTTP` and
`MySQL` are what clients of the service get. Programs in Python catch the classes, which are in `lading.errors`.

| error | meaning | retry | exit | HTTP | MySQL |
| --- | --- | --- | --- | --- | --- |
"""
CODES = """
Answers over HTTP and the audit log have a `code`: the name of the class without `Error`, or one of these.

| code | error | HTTP | MySQL |
| --- | --- | --- | --- |
"""
MISTAKES = "\n## Twenty typical mistakes\n"
TAIL = """
MySQL's number of DeniedError is 1142 for a privilege on a table and 1044 for one on a database.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A place in the source where an error is made."""

    where: str
    kind: str
    keywords: dict[str | None, ast.expr]

    @property
    def code(self) -> str | None:
        """The finer code, when it is written there."""
        given = self.keywords.get("code")
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None


def all_made() -> Iterator[Made]:
    """Every call of a class of `lading.errors`."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES:
                yield Made(
                    where=f"{path.relative_to(ROOT)}:{node.lineno}",
                    kind=node.func.id,
                    keywords={keyword.arg: keyword.value for keyword in node.keywords},
                )


def render() -> str:
    """The page."""
    rows = [_row(name, kind) for name, kind in CLASSES.items()]
    used = {made.code: made.kind for made in all_made() if made.code}
    finer = [f"| {code} | {used[code]} | {_numbers(face)} |" for code, face in FACES.items() if code in used]
    return HEAD + "\n".join(rows) + "\n" + CODES + "\n".join(finer) + "\n" + TAIL


def _row(name: str, kind: type[LadingError]) -> str:
    meaning = (kind.__doc__ or "").strip().splitlines()[0]
    face = FACES[name.removesuffix("Error")]
    return f"| {name} | {meaning} | {'yes' if kind.retry else 'no'} | {kind.exit_code} | {_numbers(face)} |"


def _numbers(face: Face) -> str:
    return f"{face.http_status} | {face.errno}"


def written() -> tuple[str, str]:
    """The page as it is: this part, and the mistakes that follow it, which come from `tests.service.mistakes`."""
    first, begin, rest = PAGE.read_text().partition(MISTAKES)
    return first, begin + rest


if __name__ == "__main__":
    PAGE.write_text(render() + written()[1])
