"""The home folder: everything of one installation in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lading.errors import ConfigError

_SIGNS = ("lading.db", "secret.key", "service.json", "service.id", "warehouse")
"""One of them is in every home, also in one that has lost the others."""


def is_home(path: Path) -> bool:
    """Whether a folder was made by Lading."""
    return any((path / name).exists() for name in _SIGNS)


def require_home(path: Path, how: str = "") -> Path:
    """The home, which must be there: a name that was mistyped is not made. Raises ConfigError."""
    if is_home(path):
        return path
    what = f"{path} is not a home of Lading" if path.exists() else f"There is no home at {path}"
    todo = how or f"Make it with: lading init --home {path}. Or name yours with --home or LADING_HOME."
    raise ConfigError(what, code="NoHome", left="Nothing was made.", todo=todo)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where things are kept."""

    path: Path

    @property
    def store_url(self) -> str:
        return str(self.path / "lading.db")

    @property
    def warehouse(self) -> Path:
        return self.path / "warehouse"

    @property
    def spark(self) -> Path:
        return self.path / "spark"

    @property
    def audit(self) -> Path:
        return self.path / "audit"

    def quarantine(self, job_id: str) -> str:
        """Where bad rows of a job go, when nobody but this process writes or reads them."""
        return str(self.path / "quarantine" / job_id)
