"""`lading sql`: statements from the command line, a file, or typed in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.console import Console

from lading.cli.options import DEFAULTS, option
from lading.cli.output import OutputFormat, show
from lading.errors import LadingError

if TYPE_CHECKING:
    from lading.service.result import Result

HOME = Annotated[Path, option("home")]
STORE = Annotated[str, option("store")]


class Answers(Protocol):
    """A home, opened here or by a running service."""

    def sql(self, text: str) -> list[Result]: ...


@contextmanager
def opened(home: Path, store: str) -> Iterator[Answers]:
    """The home itself, or the service that runs for it."""
    from lading.cli.remote import find_remote

    remote = find_remote(home)
    if remote is not None:
        yield remote
        return
    from lading.service.facade import Lading

    with Lading(home, store_url=store) as lading:
        yield lading


def sql(
    file: Annotated[Path | None, typer.Argument(help="A file of statements; - for standard input.")] = None,
    execute: Annotated[str, typer.Option("-e", "--execute", help="Statements to run.")] = "",
    form: Annotated[OutputFormat, typer.Option("--format", help="How rows are shown.")] = OutputFormat.TABLE,
    home: HOME = DEFAULTS.home,
    store: STORE = "",
) -> None:
    """Run SQL statements; without any, read them from the terminal."""
    console = Console(highlight=False)
    with opened(home, store) as lading:
        if execute or file is not None or not sys.stdin.isatty():
            text = execute or (sys.stdin.read() if file is None or str(file) == "-" else file.read_text())
            for result in lading.sql(text):
                show(result, form, console)
            return
        _talk(lading, home / "history", form, console)


def _talk(lading: Answers, history: Path, form: OutputFormat, console: Console) -> None:
    import readline

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
            from lading.service.security.redaction import redact

            console.print(redact(str(error)), style="red", markup=False)
        text = ""
    readline.write_history_file(history)
