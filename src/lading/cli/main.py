"""`lading`: the commands, each in its own file."""

from __future__ import annotations

import logging
import sys

import typer
from rich.console import Console

from lading.cli.clean import clean
from lading.cli.demo import demo
from lading.cli.doctor import doctor, failpoints
from lading.cli.package import package
from lading.cli.recover import recover
from lading.cli.run import run, verify
from lading.cli.serve import serve
from lading.cli.simulate import simulate
from lading.cli.sql import sql
from lading.errors import LadingError
from lading.failpoints import arm_from_text
from lading.settings import load_settings

app = typer.Typer(
    help="Continuous loads of files and streams into lakehouse tables, each record exactly once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (sql, run, serve, verify, recover, clean, package, demo, doctor, failpoints, simulate):
    app.command()(command)


def main() -> None:
    """Run a command; a Lading error is a sentence and an exit status, not a traceback."""
    from lading.service.security.log_output import LogStream
    from lading.service.security.redaction import redact
    from lading.service.telemetry.logs import LogFormat, set_up_logs

    set_up_logs(LogFormat.TEXT, logging.WARNING)  # `lading serve` sets them up as its options say.
    try:
        arm_from_text(load_settings().service.failpoints)
        app()
    except LadingError as error:
        if isinstance(sys.stderr, LogStream):
            logging.getLogger("lading.serve").critical("%s: %s", error.code, error)
            sys.exit(error.exit_code)
        console = Console(stderr=True, highlight=False)
        console.print(error.code, style="red", end=": ")
        console.print(redact(str(error)), markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
