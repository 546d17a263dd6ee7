"""docs/settings.md, from the records of `lading.settings`: `python -m tests.meta.settings_page` writes it."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from lading.settings import about, groups, variable_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "settings.md"
KINDS = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "yes or no",
    "Path": "path",
    "Path | None": "path",
    "frozenset[str]": "path",
    "tuple[str, ...]": "text",
}
HEAD = """# Settings

Everything that can be set outside of statements: variables of the environment, and options of `lading serve`, which
win over them. There is no settings file; a unit of systemd has `EnvironmentFile=`. `--home` and `--store` are options
of the other commands, too.

- A home reads its settings once, when it is opened. Restart the service after a change.
- An empty variable is one that is not set. A value that cannot be used, and a variable that begins with `LADING_` and
  is not listed here, stop the start with the name of the variable. What Kubernetes sets for a Service called `lading`
  is left alone.
- A whole number is 0 or more, unless its text says otherwise. Yes is also `true`, `on`, `1`; no is `false`, `off`, `0`.
"""


def render() -> str:
    """The page."""
    return HEAD + "".join(_section(group) for group in groups().values())


def _section(group: type[Any]) -> str:
    rows = "".join(_row(each) for each in fields(group))
    text = f"\n## {(group.__doc__ or '').partition(':')[0]}\n\n"
    if ": " in (group.__doc__ or ""):
        text += f"{(group.__doc__ or '').partition(': ')[2].capitalize()}.\n\n"
    return text + "| variable | option | type | default | what it does |\n| --- | --- | --- | --- | --- |\n" + rows


def _row(each: Field[Any]) -> str:
    said, variable = about(each), variable_of(each)
    cells = (
        f"`{variable}`" if variable else "",
        f"`{said.option}`" if said.option else "",
        _kind(each),
        _default(each),
    )
    return f"| {' | '.join(cells)} | {said.what.replace('|', chr(92) + '|')} |\n"


def _kind(each: Field[Any]) -> str:
    said, kind = about(each), KINDS[str(each.type)]
    is_bounded = kind == "whole number" and (said.least, said.most) != (0, 1_000_000)
    return f"{said.least} to {said.most:,}" if is_bounded else kind


def _default(each: Field[Any]) -> str:
    value = each.default
    if about(each).shown:
        return about(each).shown
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value or value == 0 else "none"


if __name__ == "__main__":
    PAGE.write_text(render())
