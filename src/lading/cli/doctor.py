"""`lading doctor`: is everything here that a load needs, and is this home well?"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lading.cli.homes import HOME, STORE
from lading.cli.options import DEFAULTS
from lading.commit.steps import STEP_NAMES
from lading.errors import LadingError
from lading.model.table import Column, TableSpec
from lading.service.home import is_home
from lading.service.views.checkup import Check, CheckState, check_home_files, check_up
from lading.settings import environment
from lading.tables.kind import TableKind, TablePlace
from lading.tables.registry import all_kinds

SPEC = TableSpec(columns=(Column(name="id", type="bigint"),))
_STYLES = {CheckState.OK: "green", CheckState.WARN: "yellow", CheckState.FAIL: "red"}


def doctor(
    home: HOME = DEFAULTS.home,
    store: STORE = "",
    *,
    spark: Annotated[bool, typer.Option(help="Start Spark, too, which takes some seconds.")] = True,
) -> None:
    """Check this machine and this home: Java, Spark, store, settings, disk, tables, catalogs, sources.

    Exit status 1 when a check failed; what only deserves a look is a warning.
    """
    console = Console(highlight=False)
    failed = False
    for check in (*_machine(spark=spark), *_home(home, store)):
        console.print(f"{check.state.value:<5}", style=_STYLES[check.state], end=" ")
        console.print(f"{check.name}: {check.said}", markup=False, soft_wrap=True)
        if check.todo and check.state is not CheckState.OK:
            console.print(f"      {check.todo}", markup=False, soft_wrap=True)
        failed = failed or check.state is CheckState.FAIL
    if failed:
        raise typer.Exit(1)


def failpoints() -> None:
    """List the places where LADING_FAILPOINTS="name=kill[:hit]" can stop the process."""
    for name in STEP_NAMES:
        typer.echo(name)


def _machine(*, spark: bool) -> Iterator[Check]:
    with tempfile.TemporaryDirectory(prefix="lading-doctor-") as folder:
        checks: tuple[tuple[str, Callable[[Path], str]], ...] = (
            ("Python", _python),
            ("Java", _java),
            ("storage", _storage),
            *((kind.title, partial(_table, kind)) for kind in all_kinds()),
            *((("Spark and its Python workers", _spark),) if spark else ()),
        )
        for name, ask in checks:
            try:
                yield Check(name=name, state=CheckState.OK, said=ask(Path(folder)))
            except (ImportError, OSError) as error:
                yield Check(name=name, state=CheckState.FAIL, said=str(error))
            except LadingError as error:
                yield _failed(name, error)


def _home(home: Path, store: str) -> Iterator[Check]:
    """The home itself, or what the service that runs for it says."""
    from lading.cli.remote import find_remote
    from lading.service.facade import Lading

    if not is_home(home):
        # Without a name nobody said that there is one.
        state = CheckState.WARN if home == DEFAULTS.home else CheckState.FAIL
        todo = f"Make it with: lading init --home {home}. Or name yours with --home or LADING_HOME."
        yield Check(name="home", state=state, said=f"there is no home at {home}", todo=todo)
        return
    yield check_home_files(home)
    remote = find_remote(home)
    if remote is not None:
        yield Check(name="service", state=CheckState.OK, said=f"pid {remote.pid} runs for this home, and says:")
        try:
            yield from remote.check_up()
        except LadingError as error:
            yield _failed("service", error)
        return
    try:
        lading = Lading(home, store_url=store)
    except LadingError as error:
        yield _failed("home", error)
        return
    with lading:
        yield from check_up(lading)


def _failed(name: str, error: LadingError) -> Check:
    return Check(name=name, state=CheckState.FAIL, said=error.what, todo=error.todo)


def _python(_home: Path) -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _java(home: Path) -> str:
    from lading.pipeline.java import find_java

    java = find_java(environment(), home)
    return f"version {java.version} at {java.home}, from {java.origin}"


def _storage(home: Path) -> str:
    from lading.storage.store import open_store

    storage = open_store(str(home / "storage"))
    storage.put_if_absent("probe", b"x")
    return f"{'put-if-absent works' if not storage.put_if_absent('probe', b'y') else 'put-if-absent OVERWRITES'}"


def _table(kind: TableKind, home: Path) -> str:
    if name := kind.missing():
        return f"not used here, {name} is not installed; see docs/tables.md"
    kind.create(TablePlace(home=home, name="doctor.probe", location=str(home / kind.name)), SPEC)
    return "a table can be made"


def _spark(home: Path) -> str:
    from lading.pipeline.java import find_java
    from lading.pipeline.session import open_session

    spark = open_session({}, find_java(environment(), home), home)
    try:
        count = spark.range(0, 10, 1, 2).mapInArrow(_same, "id long").count()
        return f"version {spark.version}; a Python worker counted {count} rows"
    finally:
        spark.stop()


def _same(batches):  # type: ignore[no-untyped-def]  # runs in a worker
    yield from batches
