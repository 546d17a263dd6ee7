"""`lading init`, and the rule that no other command makes a home where somebody mistyped its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lading.cli.options import DEFAULTS, option
from lading.errors import ConfigError

HOME = Annotated[Path, option("home")]
STORE = Annotated[str, option("store")]
_SIGNS = ("lading.db", "secret.key", "service.json", "service.id", "warehouse")
"""One of them is in every home, also in one that has lost the others."""


def is_home(path: Path) -> bool:
    """Whether a folder was made by Lading."""
    return any((path / name).exists() for name in _SIGNS)


def require_home(path: Path) -> Path:
    """The home, which must be there. Raises ConfigError."""
    if is_home(path):
        return path
    what = f"{path} is not a home of Lading" if path.exists() else f"There is no home at {path}"
    todo = f"Make it with: lading init --home {path}. Or name yours with --home or LADING_HOME."
    raise ConfigError(what, code="NoHome", left="Nothing was made.", todo=todo)


def init(home: HOME = DEFAULTS.home, store: STORE = "") -> None:
    """Make a home: the folder with the metadata store, the key and the tables. One that is there is left as it is."""
    from lading.service.facade import Lading

    if is_home(home):
        typer.echo(f"{home} is a home already; nothing was changed")
        return
    if home.is_dir() and any(home.iterdir()):
        msg = f"{home} has other files in it"
        raise ConfigError(msg, left="Nothing was made.", todo="Name a folder that is new or empty with --home.")
    with Lading(home, store_url=store):
        pass
    typer.echo(f"Made the home {home}")
