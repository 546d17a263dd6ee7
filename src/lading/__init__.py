"""Lading: continuous loads into lakehouse tables, each record once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lading.service.facade import connect

__version__ = "0.1.0"

__all__ = ["__version__", "connect"]


def __getattr__(name: str) -> Any:
    # Workers of Spark import this package for a reader or a writer: they must not pay for the service.
    if name == "connect":
        from lading.service.facade import connect

        return connect
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
