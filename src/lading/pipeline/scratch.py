"""The folders that Spark spills to: whether they can be written, for when it does not start and cannot say why."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

_BYTES = 64 * 1024


def scratch_fault(settings: Mapping[str, str], home: Path) -> str:
    """Which scratch folder of a Spark on this machine cannot be written, and why; empty when all can."""
    for name in settings.get("spark.local.dir", str(home / "tmp")).split(","):
        folder = Path(name.strip())
        there = next(place for place in (folder, *folder.parents) if place.exists())
        try:
            with tempfile.TemporaryFile(dir=there, buffering=0) as file:
                file.write(bytes(_BYTES))
        except OSError as error:
            return f"its scratch folder {folder} (spark.local.dir) cannot be written: {error.strerror}"
    return ""
