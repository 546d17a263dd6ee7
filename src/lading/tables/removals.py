"""Files that a table had and has no more: who took them out, as far as the table's own history tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A commit that took a file out."""

    by: str
    """For people: "DELETE in version 7"."""
    is_rewrite: bool
    """The same rows were written into other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """What is known of files that are gone."""

    found: Mapping[str, Removal] = field(default_factory=dict)
    """By path, relative to the table."""
    is_complete: bool
    """Whether the history goes back far enough: then a file that is not among them was taken out by nobody."""
