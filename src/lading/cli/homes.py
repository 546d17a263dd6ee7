"""`lading init`, and the rule that no other command makes a home where somebody mistyped its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lading.cli.options import DEFAULTS, home_option, option
from lading.errors import ConfigError
from lading.service.home import is_home, require_home
from lading.settings import FILE_NAME

__all__ = ["HOME", "SPARK_CONF", "STORE", "init", "require_home"]

HOME = Annotated[Path, home_option()]
STORE = Annotated[str, option("store")]
SPARK_CONF = Annotated[list[str] | None, option("spark_conf")]


def init(home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """Make a home: the folder with the metadata store, the key and the tables. One that is there is left as it is."""
    from lading.service.facade import Lading

    if is_home(home):
        typer.echo(f"{home} is a home already; nothing was changed")
        return
    if home.is_dir() and any(each.name != FILE_NAME for each in home.iterdir()):
        msg = f"{home} has other files in it"
        raise ConfigError(msg, left="Nothing was made.", todo="Name a folder that is new or empty with --home.")
    with Lading(home, store_url=store):
        pass
    typer.echo(f"Made the home {home}")
