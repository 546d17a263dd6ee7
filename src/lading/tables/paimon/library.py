"""pypaimon, which is optional: refused by name when it is absent, and its errors in Lading's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lading.errors import ConfigError, LadingError, TableError

_NEEDED = ("pypaimon", "backports.zstd", "cachetools", "fastavro", "readerwriterlock", "requests")
"""What is imported here. pypaimon names more, and an older pyarrow, for parts that Lading does not use."""
_TODO = "Run: pip install --no-deps 'pypaimon==2.1.*' && pip install 'lading[paimon]'. See docs/paimon.md."


def missing_library() -> str:
    """The first package that is not there; empty when all are."""
    return next((name for name in _NEEDED if not _is_there(name)), "")


def require_library() -> None:
    """Raises ConfigError when pypaimon, or what it imports, is not there."""
    if name := missing_library():
        msg = f"{name} is not installed: Lading needs it for tables of Paimon"
        raise ConfigError(msg, left="Nothing was changed.", todo=_TODO)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # The package above it is not there.
        return False


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of pypaimon as TableError; errors of Lading's storage, which it wraps, as they were."""
    try:
        yield
    except LadingError:
        raise
    except (RuntimeError, ValueError, KeyError, TypeError, EOFError, OSError) as error:
        cause = error.__cause__
        if isinstance(cause, LadingError):
            raise cause from error
        msg = f"The Paimon table at {where} cannot be read: {error}"
        todo = "Restore the missing or broken file from a copy of the table."
        raise TableError(msg, left="Nothing was changed.", todo=todo) from error
