"""`lading clean`: remove what failed and killed attempts left."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

import typer

from lading.cli.homes import HOME, STORE
from lading.cli.options import DEFAULTS
from lading.cli.sql import opened
from lading.errors import ConfigError


def clean(
    table: Annotated[str, typer.Argument(help="[catalog.]db.table; without it, all tables of the installation.")] = "",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    older_than: Annotated[str, typer.Option(help="How old orphans are at least, such as '12 hours'.")] = "3 days",
    home: HOME = DEFAULTS.home,
    store: STORE = "",
) -> None:
    """Remove files that nothing needs: of failed attempts, bills that never landed, old state, their bad rows.

    Exit status 1 when a table could not be looked at.
    """
    statement = _statement(table, older_than, dry_run=dry_run)
    with opened(home, store) as answers:
        result = answers.sql(statement)[0]
    found = [row for row in result.rows if not row[4]]
    for name, what, path, _, remark in result.rows:
        typer.echo(f"{name}: {remark or f'{what} {path}'}")
    size = sum(int(str(row[3] or 0)) for row in found)
    did = "would be removed" if dry_run else "were removed"
    typer.echo(f"{len(found)} files, {size:,} bytes of data files and bad rows, {did}")
    if len(found) < len(result.rows):
        raise typer.Exit(1)


def _statement(table: str, older_than: str, *, dry_run: bool) -> str:
    """From what was typed: each part is read by itself, so that none can be more than it is."""
    from lading.sql.statements.admin import CleanOrphans
    from lading.sql.statements.parts import QualifiedName
    from lading.sql.syntax.render import render

    match = re.fullmatch(r"\s*(\d{1,6})\s*(hour|day)s?\s*", older_than, re.IGNORECASE)
    if match is None:
        msg = f"--older-than is {older_than!r}"
        raise ConfigError(msg, left="Nothing was deleted.", todo="Write for example '12 hours' or '3 days'.")
    age = int(match[1]) * (timedelta(days=1) if match[2].lower() == "day" else timedelta(hours=1))
    *place, name = table.split(".")
    catalog = place.pop(0) if len(place) > 1 else None
    named = QualifiedName(catalog=catalog, db=".".join(place) or None, name=name) if table else None
    return render(CleanOrphans(table=named, older_than=age, dry_run=dry_run))
