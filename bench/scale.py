"""How much is measured, and how often: variables of the environment."""

from __future__ import annotations

import os
from pathlib import Path

SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))
ROUNDS = int(os.environ.get("LADING_BENCH_ROUNDS", "3"))
COLD_ROUNDS = int(os.environ.get("LADING_BENCH_COLD_ROUNDS", str(ROUNDS)))
FOLDER = os.environ.get("LADING_BENCH_FOLDER")
"""Where temporary files are kept; the usual place when it is not set."""
ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lading-bench"
"""Environments of the peers, made once."""


def scaled(count: int, *, least: int = 1) -> int:
    return max(least, int(count * SCALE))
