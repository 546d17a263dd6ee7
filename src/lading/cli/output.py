"""Results on a terminal, or for another program. No value is ever cut."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from enum import Enum
from math import isfinite
from typing import Any

import typer
from rich.console import Console

from lading.service.result import Result

NARROWEST = 12
"""A column is folded to so many letters, and not further: then the rows are shown one below the other."""
_WIDEST = 100_000


class OutputFormat(Enum):
    """How rows are shown."""

    TABLE = "table"
    VERTICAL = "vertical"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"


def new_console() -> Console:
    """What results are shown on. What is not a terminal has no width."""
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDEST)


def show(result: Result, form: OutputFormat, console: Console) -> None:
    """Show one answer."""
    if form is OutputFormat.JSON:
        _json(result)
    elif not result.columns:
        if form in (OutputFormat.TABLE, OutputFormat.VERTICAL):
            console.print(result.message, style="green", markup=False)
    elif form in _LINES:
        for line in _LINES[form](result):
            typer.echo(line)
    elif form is OutputFormat.TABLE and _is_definition(result):
        typer.echo(f"{result.rows[0][-1]};")
    else:
        if form is OutputFormat.VERTICAL or not _fits(result, console.width):
            _vertical(result)
        else:
            _table(result, console)
        if result.message:
            console.print(result.message, style="dim", markup=False)


def _json(result: Result) -> None:
    for values in result.rows:
        row = dict(zip(result.columns, map(_plain, values), strict=True))
        typer.echo(json.dumps(row, ensure_ascii=False))
    if not result.columns:
        typer.echo(json.dumps({"message": result.message}))


def _is_definition(result: Result) -> bool:
    """SHOW CREATE of one job: a statement to be copied, without a frame."""
    return len(result.rows) == 1 and result.columns[-1].lower().startswith("create")


def _fits(result: Result, width: int) -> bool:
    """Whether a table of these is as wide as the terminal when its columns are folded."""
    shown = [[len(line) for line in _text(value).split("\n")] for row in result.rows for value in row]
    count = len(result.columns)
    needed = 1
    for number, name in enumerate(result.columns):
        widest = max((max(lines) for lines in shown[number::count]), default=0)
        needed += min(max(widest, len(name)), max(NARROWEST, len(name))) + 3
    return needed <= width


def _table(result: Result, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table()
    for name in result.columns:
        shown.add_column(Text(name), overflow="fold", no_wrap=False)
    for values in result.rows:
        shown.add_row(*(Text(_text(value)) for value in values))
    console.print(shown)
    console.print(f"{len(result.rows)} row{'' if len(result.rows) == 1 else 's'}", style="dim")


def _vertical(result: Result) -> None:
    width = max((len(name) for name in result.columns), default=0)
    for number, row in enumerate(result.rows, 1):
        typer.echo(f"*************************** {number}. row ***************************")
        for name, value in zip(result.columns, row, strict=True):
            typer.echo(f"{name:>{width}}: {_text(value)}")


def _csv(result: Result) -> Iterator[str]:
    """As RFC 4180 has it. NULL is nothing, an empty text is two quotes."""
    yield ",".join(_csv_cell(name) for name in result.columns)
    for row in result.rows:
        yield ",".join("" if value is None else _csv_cell(_word(value)) for value in row)


def _csv_cell(text: str) -> str:
    is_plain = text and not any(letter in text for letter in ',"\r\n')
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def _tsv(result: Result) -> Iterator[str]:
    r"""As MySQL and PostgreSQL write it: `\N` is NULL, tabs, ends of lines and backslashes are escaped."""
    yield "\t".join(_tsv_cell(name) for name in result.columns)
    for row in result.rows:
        yield "\t".join("\\N" if value is None else _tsv_cell(_word(value)) for value in row)


def _tsv_cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _markdown(result: Result) -> Iterator[str]:
    yield _markdown_row(result.columns)
    yield "|" + " --- |" * len(result.columns)
    for row in result.rows:
        yield _markdown_row([_text(value) for value in row])


def _markdown_row(cells: Any) -> str:
    shown = (cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>") for cell in cells)
    return "| " + " | ".join(shown) + " |"


def _text(value: Any) -> str:
    return "NULL" if value is None else _word(value)


def _word(value: Any) -> str:
    """A value as SQL and JSON write it, and not as Python does."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray():
            return b64encode(value).decode()
        case Mapping() | list() | tuple():
            return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
        case _:
            return str(value)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {_word(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | str():
            return value
        case float() if isfinite(value):
            return value
        case _:
            return _word(value)


_LINES = {OutputFormat.CSV: _csv, OutputFormat.TSV: _tsv, OutputFormat.MARKDOWN: _markdown}
