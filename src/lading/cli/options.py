"""Options of the commands, as `settings` describes them. What is not given is what the environment or the file says."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from lading.settings import ServiceSettings, about, load_settings, set_variables, variable_of

DEFAULTS = ServiceSettings()
_FIELDS = {each.name: each for each in fields(ServiceSettings)}
_NAMES = {"query_limit": "query_limits"}
"""Options that are not called as their setting is."""


def option(name: str, **more: Any) -> Any:
    """The option of a setting of the service, with its help."""
    said = about(_FIELDS[name])
    told = f"{said.what} Or {variable_of(_FIELDS[name])}."
    return typer.Option(help=told, show_default=not said.shown, **more)


def home_option() -> Any:
    """`--home`, which is read before the others: its settings file says what they are when they are not given."""
    return option("home", is_eager=True, callback=_take_home)


def add_config_option(command: Any) -> Any:
    """Give a command that works on a home the option `--config`, which is read before all others."""
    if any(each.name == "home" for each in command.params):
        alone = typer.Typer(add_completion=False)
        alone.command()(_with_config)
        [declared] = [each for each in typer.main.get_command(alone).params if each.name == "config"]
        declared.expose_value = False
        command.params.insert(0, declared)
    return command


def _take_config(ctx: typer.Context, value: str) -> str:
    if ctx.resilient_parsing:
        return value
    if value:
        set_variables({variable_of(_FIELDS["config"]): str(value)})  # Where the home is opened, and in child processes.
    _say_defaults(ctx, None)
    return value


def _with_config(config: Annotated[str, option("config", is_eager=True, callback=_take_config)] = "") -> None: ...


def _take_home(ctx: typer.Context, value: Path) -> Path:
    if not ctx.resilient_parsing:
        _say_defaults(ctx, value)
    return value


def _say_defaults(ctx: Any, home: Path | None) -> None:
    """What options are when nobody gives them."""
    settings = load_settings(home=home).service
    said = {name: getattr(settings, name) for name in _FIELDS}
    said |= {name: getattr(settings, field).split() for name, field in _NAMES.items()}
    kept = {name: [*value] if isinstance(value, tuple) else value for name, value in said.items()}
    ctx.default_map = {name: value for name, value in kept.items() if name != "query_limits"}
