"""Options of the commands, as `settings` describes them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import typer

from lading.settings import ServiceSettings, about, variable_of

DEFAULTS = ServiceSettings()
_FIELDS = {each.name: each for each in fields(ServiceSettings)}


def option(name: str) -> Any:
    """The option of a setting of the service: its help and its variable."""
    said = about(_FIELDS[name])
    return typer.Option(help=said.what, envvar=variable_of(_FIELDS[name]) or None, show_default=not said.shown)
