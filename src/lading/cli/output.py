"""Results on a terminal: as a table, as JSON lines, or one column a line."""

from __future__ import annotations

import json
from enum import Enum

import typer
from rich.console import Console
from rich.table import Table

from lading.service.result import Result


class OutputFormat(Enum):
    """How rows are shown."""

    TABLE = "table"
    JSON = "json"
    VERTICAL = "vertical"


def show(result: Result, form: OutputFormat, console: Console) -> None:
    if form is OutputFormat.JSON:
        for values in result.rows:
            row = dict(zip(result.columns, values, strict=True))
            typer.echo(json.dumps(row, default=str, ensure_ascii=False))
        if not result.columns:
            typer.echo(json.dumps({"message": result.message}))
    elif not result.columns:
        console.print(result.message, style="green")
    elif form is OutputFormat.VERTICAL:
        _vertical(result)
    else:
        shown = Table(*result.columns)
        for values in result.rows:
            shown.add_row(*("NULL" if value is None else str(value) for value in values))
        console.print(shown)
        console.print(f"{len(result.rows)} row{'' if len(result.rows) == 1 else 's'}", style="dim")


def _vertical(result: Result) -> None:
    width = max((len(name) for name in result.columns), default=0)
    for number, row in enumerate(result.rows, 1):
        typer.echo(f"*************************** {number}. row ***************************")
        for name, value in zip(result.columns, row, strict=True):
            typer.echo(f"{name:>{width}}: {'NULL' if value is None else value}")
