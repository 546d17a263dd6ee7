"""All mutants there are."""

from __future__ import annotations

from lading.testing import mutants_commit, mutants_files, mutants_replays, mutants_runner, mutants_source, mutants_state
from lading.testing.mutants import MUTANTS, applied

__all__ = [
    "MUTANTS",
    "applied",
    "mutants_commit",
    "mutants_files",
    "mutants_replays",
    "mutants_runner",
    "mutants_source",
    "mutants_state",
]
