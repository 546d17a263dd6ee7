"""`lading`: the commands, each in its own file, which is imported when the command is called."""

from __future__ import annotations

import gc
import logging
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from lading import __version__
from lading.cli.options import add_config_option
from lading.cli.plain_values import read_plainly
from lading.errors import LadingError
from lading.failpoints import arm_from_text
from lading.settings import load_settings

COMMANDS = {
    "init": (
        "lading.cli.homes",
        "Make a home: the folder with the metadata store, the key and the tables. One that is there is left as it is.",
    ),
    "sql": ("lading.cli.sql", "Run SQL statements; without any, read them from the terminal."),
    "apply": (
        "lading.cli.apply",
        "Make catalogs, databases, tables and jobs as files say: show a plan, ask, and do it.",
    ),
    "run": ("lading.cli.run", "Load everything that is there now."),
    "jobs": ("lading.cli.jobs", "List the jobs: state, rows, how far behind."),
    "status": (
        "lading.cli.jobs",
        "Show one job: state, reason, totals, positions. Exit status 3 when it is PAUSED.",
    ),
    "logs": ("lading.cli.jobs", "Tell the batches of a job, oldest first: rows, seconds, errors."),
    "pause": ("lading.cli.jobs", "Pause a job, as PAUSE JOB and PAUSE ROUTINE LOAD do."),
    "resume": ("lading.cli.jobs", "Let a paused job go on, as RESUME JOB and RESUME ROUTINE LOAD do."),
    "serve": ("lading.cli.serve", "Run the jobs and answer MySQL clients, HTTP and browsers, until SIGTERM."),
    "verify": ("lading.cli.run", "Compare a job's bills with its table. Exit status 1 when they disagree."),
    "recover": (
        "lading.cli.recover",
        "Rebuild a lost metadata store from the tables. Jobs come back PAUSED. Exit status 1 when something failed.",
    ),
    "clean": (
        "lading.cli.clean",
        "Remove files that nothing needs: of failed attempts, bills that never landed, old state, their bad rows.",
    ),
    "package": (
        "lading.cli.package",
        "Pack Lading and what its tasks import, for executors that have Python and Spark and nothing else.",
    ),
    "demo": (
        "lading.cli.demo",
        "Load two million orders and a Kinesis stream that is resharded, with a SIGKILL in mid-commit now and then.",
    ),
    "doctor": (
        "lading.cli.doctor",
        "Check this machine and this home: Java, Spark, store, settings, disk, tables, catalogs, sources.",
    ),
    "failpoints": (
        "lading.cli.doctor",
        'List the places where LADING_FAILPOINTS="name=kill[:hit]" can stop the process.',
    ),
    "simulate": (
        "lading.cli.simulate",
        "Run seeded schedules of crashes, lost answers, reshards and edits against the real coordinator.",
    ),
}
"""Where each is, and the first sentence of what it says: help does not import them. A test compares the two."""
LASTING = frozenset({"run", "serve", "demo", "simulate"})
"""Commands that work for long, and make garbage."""
_OF_LIGHT, _OF_LASTING = 100_000, 20_000
"""After so many new objects Python looks for garbage. What imports make stays: to look through it slows the start."""


class _Commands(typer.core.TyperGroup):
    """Knows all names, and imports the one command that was called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        if name in LASTING:
            gc.set_threshold(_OF_LASTING)
        return name, command_of(str(name)), rest


def command_of(name: str) -> Any:
    """The command itself."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(getattr(import_module(COMMANDS[name][0]), name))
    return read_plainly(add_config_option(typer.main.get_command(alone)))


def _said(what: str) -> Any:
    def stub() -> None: ...

    stub.__doc__ = what
    return stub


app = typer.Typer(
    cls=_Commands,
    help="Continuous loads of files and streams into lakehouse tables, each record exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _name, (_module, _what) in COMMANDS.items():
    app.command(_name)(_said(_what))


def _show_version(*, asked: bool) -> None:
    if asked:
        typer.echo(f"lading {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; a Lading error is a sentence and an exit status, not a traceback."""
    from lading.service.security.log_output import LogStream
    from lading.service.telemetry.logs import LogFormat, set_up_logs

    gc.set_threshold(_OF_LIGHT)
    set_up_logs(LogFormat.TEXT, logging.WARNING)  # `lading serve` sets them up as its options say.
    try:
        arm_from_text(load_settings().service.failpoints)
        read_plainly(typer.main.get_command(app))()
    except LadingError as error:
        from rich.console import Console

        from lading.service.security.redaction import redact

        if isinstance(sys.stderr, LogStream):
            logging.getLogger("lading.serve").critical("%s: %s", error.code, error)
            sys.exit(error.exit_code)
        console = Console(stderr=True, highlight=False)
        console.print(error.code, style="red", end=": ")
        console.print(redact(str(error)), markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
