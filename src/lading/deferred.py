"""Functions whose module is imported when they are first called: light statements do not pay for Spark or Arrow.

if TYPE_CHECKING:
    from lading.service.statements.loads import create
else:
    create = deferred("lading.service.statements.loads", "create")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def deferred(module: str, name: str) -> Any:
    """A function, or a class that is only called, that imports where it comes from at the first call."""

    @cache
    def found() -> Callable[..., Any]:
        target: Callable[..., Any] = getattr(import_module(module), name)
        return target

    def call(*values: Any, **named: Any) -> Any:
        return found()(*values, **named)

    call.__name__ = call.__qualname__ = name
    return call
