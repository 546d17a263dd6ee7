"""What is known after a table was asked to commit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """The commit is part of the table."""

    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLanded:
    """Certain: this attempt is not part of the table and never will be."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """The answer was lost. The commit may have landed, may not have, or may still land."""

    why: str


Outcome = Landed | NotLanded | Unknown
