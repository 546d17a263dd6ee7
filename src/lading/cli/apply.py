"""`lading apply`: make a home have what files of statements say."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from lading.cli.homes import HOME, STORE, require_home
from lading.cli.options import DEFAULTS
from lading.service.result import Result

if TYPE_CHECKING:
    from lading.cli.apply_plan import Answering, Step
    from lading.cli.jobs import JobDesk
    from lading.service.facade import Lading

NOT_APPLIED_EXIT, CANNOT_EXIT = 1, 2
_SIGNS = {"create": "+", "change": "~", "drop": "-", "cannot": "!", "extra": "?", "unchanged": " "}
_STYLES = {"create": "green", "change": "yellow", "drop": "red", "cannot": "red", "extra": "dim", "unchanged": "dim"}


def apply(
    files: Annotated[list[Path], typer.Argument(help="Files of statements, or folders with *.sql.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Drop jobs that are not in the files.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HOME = DEFAULTS.home,
    store: STORE = "",
) -> None:
    """Make catalogs, databases, tables and jobs as files say: show a plan, ask, and do it.

    Exit status 0: it is so now, or was before; 1: there is something to do, and it was not done (--dry-run, or the
    answer was no); 2: an error, or something that no statement can change.
    """
    from lading.cli.apply_plan import make_plan, read_files

    console = Console(highlight=False)
    wanted = read_files(files)
    with _opened(home, store) as answering:
        steps = make_plan(answering, wanted, prune=prune)
        _show(steps, console)
        if any(step.action == "cannot" for step in steps):
            console.print("Nothing was changed.")
            raise typer.Exit(CANNOT_EXIT)
        due = [step for step in steps if step.statements]
        if not due:
            console.print("Nothing to do.")
            return
        if dry_run or not (yes or _agreed(console)):
            console.print("Nothing was changed.")
            raise typer.Exit(NOT_APPLIED_EXIT)
        for step in due:
            _do(answering, step)
            console.print(f"{step.what}: done", style="green", markup=False)


def _show(steps: Sequence[Step], console: Console) -> None:
    for step in steps:
        console.print(f"{_SIGNS[step.action]} {step.action:<9} {step.what}", style=_STYLES[step.action], markup=False)
        for line in step.lines:
            console.print(f"      {line}", markup=False, soft_wrap=True)


def _agreed(console: Console) -> bool:
    if not sys.stdin.isatty():
        console.print("This is not a terminal: add --yes to have it done.")
        return False
    return typer.confirm("Do it?")


def _do(answering: Answering, step: Step) -> None:
    """A job is paused for its change. Whatever happens to that, it goes on if it did before.

    Dies in between: the job is PAUSED, by a user; the same command does the rest, and RESUME lets it go on.
    """
    state = next((str(job["state"]) for job in answering.jobs() if job["name"] == step.job), "")
    was_running = bool(state) and state != "PAUSED"
    if was_running:
        answering.control(step.job, "pause")
    try:
        for text in step.statements:
            answering.sql(text)
    finally:
        if was_running:
            answering.control(step.job, "resume")


class _Local:
    """A home that no service has."""

    def __init__(self, lading: Lading, desk: JobDesk) -> None:
        self._lading = lading
        self._desk = desk

    def sql(self, text: str) -> list[Result]:
        return self._lading.sql(text)

    def jobs(self) -> list[dict[str, Any]]:
        return self._desk.jobs()

    def control(self, name: str, verb: str) -> None:
        self._desk.control(name, verb)


@contextmanager
def _opened(home: Path, store: str) -> Iterator[Answering]:
    from lading.cli.remote import find_remote

    remote = find_remote(require_home(home))
    if remote is not None:
        yield remote
        return
    from lading.cli.jobs import LocalDesk
    from lading.service.facade import Lading

    with Lading(home, store_url=store) as lading:
        yield _Local(lading, LocalDesk(lading))
