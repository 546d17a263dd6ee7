"""Texts, paths, seconds and choices of the command line, read without pydantic, whose import takes longer than many a
statement.

typer turns every value into its type with pydantic. For the types here that needs no library. Should a later typer
not ask a parameter for `_runtime_param` any more, its own way is taken again: right, and slower; a test says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import typer

_PLAIN = {str: str, Path: Path, str | None: str, Path | None: Path}
_LISTS = {list[str]: str, list[str] | None: str, list[Path]: Path, list[Path] | None: Path}


@dataclass(frozen=True, slots=True)
class _Reader:
    """What typer asks for a value."""

    kind: Any
    is_list: bool = False

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        if self.is_list:
            return [self.kind(each) for each in value or ()]
        if value is None or isinstance(value, self.kind):
            return value
        try:
            return self.kind(value)
        except ValueError:
            raise typer.BadParameter(self._wrong(value), ctx=ctx, param=param) from None

    def _wrong(self, value: Any) -> str:
        if self.kind is float:
            return f"{value!r} is not a valid float."
        return f"{value!r} is not one of {', '.join(repr(each.value) for each in self.kind)}."


def read_plainly(command: Any) -> Any:
    """Give the parameters of a command readers of their own, where their type is plain."""
    for each in (*command.params, command.get_help_option(typer.Context(command))):
        descriptor = getattr(each, "type_descriptor", None)
        kind = getattr(descriptor, "annotation", None)
        info = getattr(descriptor, "parameter_info", None)
        if kind is None or info is None:
            continue
        if kind is bool and not each.envvar:
            each._runtime_param = _Reader(bool)  # noqa: SLF001 - a flag that is there or not
        elif kind in _PLAIN or (isinstance(kind, type) and issubclass(kind, Enum)):
            each._runtime_param = _Reader(_PLAIN.get(kind, kind))  # noqa: SLF001 - see above
        elif kind is float and info.min is None and info.max is None:
            each._runtime_param = _Reader(float)  # noqa: SLF001 - see above
        elif kind in _LISTS:
            each._runtime_param = _Reader(_LISTS[kind], is_list=True)  # noqa: SLF001
    return command
