"""`lading doctor`: is everything here that a load needs?"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from lading.commit.steps import STEP_NAMES
from lading.errors import LadingError
from lading.model.table import Column, TableSpec
from lading.settings import environment
from lading.tables.kind import TableKind, TablePlace
from lading.tables.registry import all_kinds

SPEC = TableSpec(columns=(Column(name="id", type="bigint"),))


def doctor() -> None:
    """Check Python, Java, Spark and its workers, storage and the catalog. Exit status 1 when one fails."""
    console = Console(highlight=False)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="lading-doctor-") as folder:
        home = Path(folder)
        checks: tuple[tuple[str, Callable[[Path], str]], ...] = (
            ("Python", _python),
            ("Java", _java),
            ("storage", _storage),
            *((kind.title, partial(_table, kind)) for kind in all_kinds()),
            ("Spark and its Python workers", _spark),
        )
        for name, check in checks:
            try:
                console.print(f"[green]ok[/green]    {name}: {check(home)}")
            except (LadingError, ImportError, OSError) as error:
                failed += 1
                console.print("[red]failed[/red]", f"{name}: {error}", markup=True)
    if failed:
        raise typer.Exit(1)


def failpoints() -> None:
    """List the places where LADING_FAILPOINTS="name=kill[:hit]" can stop the process."""
    for name in STEP_NAMES:
        typer.echo(name)


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
