"""`lading sql`: statements from the command line, a file, or typed in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lading.cli.output import OutputFormat, show
from lading.errors import LadingError

HOME = Annotated[Path, typer.Option(help="The home folder.", envvar="LADING_HOME")]


def sql(
    file: Annotated[Path | None, typer.Argument(help="A file of statements; - for standard input.")] = None,
    execute: Annotated[str, typer.Option("-e", "--execute", help="Statements to run.")] = "",
    form: Annotated[OutputFormat, typer.Option("--format", help="How rows are shown.")] = OutputFormat.TABLE,
    home: HOME = Path("lading-home"),
) -> None:
    """Run SQL statements; without any, read them from the terminal."""
    from lading.service.facade import Lading

    console = Console(highlight=False)
    with Lading(home) as lading:
        if execute or file is not None or not sys.stdin.isatty():
            text = execute or (sys.stdin.read() if file is None or str(file) == "-" else file.read_text())
            for result in lading.sql(text):
                show(result, form, console)
            return
        _talk(lading, form, console)


def _talk(lading: object, form: OutputFormat, console: Console) -> None:
    import readline
    from contextlib import suppress

    from lading.service.facade import Lading

    if not isinstance(lading, Lading):
        return
    history = lading.home.path / "history"
    with suppress(OSError):
        readline.read_history_file(history)
    console.print("Statements end with ; — leave with exit or Ctrl-D.")
    text = ""
    while True:
        try:
            line = input("   ...> " if text else "lading> ")
        except (EOFError, KeyboardInterrupt):
            break
        if not text and line.strip().lower().rstrip(";") in ("exit", "quit"):
            break
        text += line + "\n"
        if not text.strip().endswith(";"):
            continue
        try:
            for result in lading.sql(text):
                show(result, form, console)
        except LadingError as error:
            console.print(str(error), style="red", markup=False)
        text = ""
    readline.write_history_file(history)
