"""`lading sql`: statements from the command line, a file, or typed in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from lading.cli.homes import HOME, SPARK_CONF, STORE, require_home
from lading.cli.options import DEFAULTS
from lading.cli.output import OutputFormat, new_console, show
from lading.cli.statement_ends import read_ends
from lading.errors import ConfigError
from lading.service.runtime.address_file import find_address
from lading.settings import load_settings, parse_spark_conf, read_spark_settings

if TYPE_CHECKING:
    from lading.service.result import Result


class Answers(Protocol):
    """A home, opened here or by a running service."""

    def sql(self, text: str) -> list[Result]: ...


@contextmanager
def opened(home: Path, store: str, spark_conf: list[str] | None = None) -> Iterator[Answers]:
    """The home itself, or the service that runs for it."""
    address = find_address(require_home(home))
    if address is not None:
        from lading.cli.remote import RemoteLading

        refuse_spark_conf(spark_conf)
        yield RemoteLading(address)
        return
    from lading.service.facade import Lading

    with Lading(home, store_url=store, spark=spark_of(home, spark_conf)) as lading:
        yield lading


def spark_of(home: Path, spark_conf: list[str] | None) -> dict[str, str] | None:
    """Settings of Spark with those of the command line; None without any: the home has its own."""
    if not spark_conf:
        return None
    settings = load_settings(home=home).service
    return {**read_spark_settings(settings.spark_settings), **parse_spark_conf(spark_conf)}


def refuse_spark_conf(spark_conf: list[str] | None) -> None:
    """A running service has its Spark already. What the environment or the file says was for it, too."""
    if spark_conf and tuple(spark_conf) != load_settings().service.spark_conf:
        msg = "A service runs this home, and its Spark was started with its own settings"
        raise ConfigError(msg, left="Nothing was run.", todo="Give --spark-conf to lading serve.")


def sql(
    file: Annotated[Path | None, typer.Argument(help="A file of statements; - for standard input.")] = None,
    execute: Annotated[str, typer.Option("-e", "--execute", help="Statements to run.")] = "",
    form: Annotated[OutputFormat, typer.Option("--format", help="How rows are shown.")] = OutputFormat.TABLE,
    home: HOME = DEFAULTS.home,
    store: STORE = "",
    spark_conf: SPARK_CONF = None,
) -> None:
    """Run SQL statements; without any, read them from the terminal."""
    console = new_console()
    with opened(home, store, spark_conf) as lading:

        def run(text: str) -> None:
            read = read_ends(text)
            for number, result in enumerate(lading.sql(read.text)):
                show(result, OutputFormat.VERTICAL if number in read.vertical else form, console)

        if execute or file is not None or not sys.stdin.isatty():
            run(execute or _read(file))
            return
        from lading.cli.shell import talk

        talk(run, home / "history", console)


def _read(file: Path | None) -> str:
    if file is None or str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        msg = f"The file of statements cannot be read: {error}"
        raise ConfigError(msg, left="Nothing was run.", todo="Name a text file in UTF-8.") from error
