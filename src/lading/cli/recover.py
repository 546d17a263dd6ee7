"""`lading recover`: the store again, from the tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lading.cli.homes import HOME, STORE
from lading.cli.options import DEFAULTS
from lading.errors import ConfigError
from lading.service.home import is_home, require_home

if TYPE_CHECKING:
    from lading.service.recover import Finding


def recover(
    locations: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables that are not in the home: folders or s3://… locations; database.table=location for one "
            "that has no _lading/table.json."
        ),
    ] = None,
    home: HOME = DEFAULTS.home,
    store: STORE = "",
    prop: Annotated[
        list[str] | None,
        typer.Option("--property", help="How those are reached, as in CREATE TABLE: s3.endpoint=…; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Say what would be done.")] = False,
) -> None:
    """Rebuild a lost metadata store from the tables. Jobs come back PAUSED. Exit status 1 when something failed."""
    from lading.service.catalog.lost_home import Opening, has_sealed, is_key_missing
    from lading.service.facade import Lading
    from lading.service.recover import recover as recover_all

    _tell_home(home, has_locations=bool(locations), dry_run=dry_run)
    lost_key = is_key_missing(home.absolute())
    opening = Opening.INSPECTION if dry_run else Opening.RECOVERY
    with Lading(home, store_url=store, opening=opening) as lading:
        lost_key = lost_key and has_sealed(lading.store)
        findings = recover_all(lading, locations or (), _properties(prop or []), dry_run=dry_run)
    for found in findings:
        typer.echo(f"{found.what} {found.name}: {found.fate}{f' ({found.note})' if found.note else ''}")
    done = [found for found in findings if found.fate == "recovered"]
    typer.echo(f"{'Would recover' if dry_run else 'Recovered'} {_count(done, 'table')} and {_count(done, 'job')}.")
    if any(found.what == "job" for found in done) and not dry_run:
        typer.echo(
            "Read the definition of each job, then RESUME it, or drop it if it was stopped or dropped before. Not in "
            "the tables, and lost with the store: users and grants, the audit, keys that stood in statements (give "
            "them with ALTER), and changes of a job after its last commit."
        )
    if lost_key:
        typer.echo(
            f"The key file was missing: a new one {'would be' if dry_run else 'was'} made. What the old key sealed "
            "cannot be opened: set the passwords of users again with ALTER USER, and give jobs their keys with ALTER."
        )
    if any(found.is_bad for found in findings):
        raise typer.Exit(1)


def _tell_home(home: Path, *, has_locations: bool, dry_run: bool) -> None:
    """Tables elsewhere can be recovered into a home that is made for them. One that is not there has none itself."""
    if is_home(home):
        return
    if dry_run or not has_locations:
        require_home(home)
    typer.echo(f"There is no home at {home}: it is made now, to recover into.")


def _count(done: list[Finding], what: str) -> str:
    number = sum(found.what == what for found in done)
    return f"{number} {what}{'' if number == 1 else 's'}"


def _properties(given: list[str]) -> dict[str, str]:
    found = dict(each.partition("=")[::2] for each in given)
    if bad := [each for each in given if "=" not in each]:
        msg = f"--property {bad[0]} has no value"
        raise ConfigError(msg, left="Nothing was changed.", todo="Write --property name=value.")
    return found
