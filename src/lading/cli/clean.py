"""`lading clean`: remove what failed and killed attempts left."""

from __future__ import annotations

from typing import Annotated

import typer

from lading.cli.options import DEFAULTS
from lading.cli.sql import HOME, STORE, opened


def clean(
    table: Annotated[str, typer.Argument(help="db.table; without it, all tables.")] = "",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    older_than: Annotated[str, typer.Option(help="How old orphans are at least, such as '12 hours'.")] = "3 days",
    home: HOME = DEFAULTS.home,
    store: STORE = "",
) -> None:
    """Remove files that nothing needs: of failed attempts, bills that never landed, old state, their bad rows.

    Exit status 1 when a table could not be looked at.
    """
    words = ["ADMIN CLEAN ORPHANS", *([f"FROM {table}"] if table else []), f"OLDER THAN {older_than.upper()}"]
    with opened(home, store) as answers:
        result = answers.sql(" ".join([*words, *(["DRY RUN"] if dry_run else [])]))[0]
    found = [row for row in result.rows if not row[4]]
    for name, what, path, _, remark in result.rows:
        typer.echo(f"{name}: {remark or f'{what} {path}'}")
    size = sum(int(str(row[3] or 0)) for row in found)
    did = "would be removed" if dry_run else "were removed"
    typer.echo(f"{len(found)} files, {size:,} bytes of data files and bad rows, {did}")
    if len(found) < len(result.rows):
        raise typer.Exit(1)
