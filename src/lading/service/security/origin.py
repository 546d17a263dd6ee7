"""From where somebody came: over which face, from which address."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Face(Enum):
    """A way into the service."""

    MYSQL = "mysql"
    HTTP = "http"
    CONSOLE = "console"
    LOCAL = "local"
    """The command line or the Python API, which open the home folder itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """From where a login or a statement came."""

    face: Face = Face.LOCAL
    peer: str = ""
    """An address without its port; empty on the machine itself."""


LOCAL = Origin()
