"""What Spark says when a task fails, in one sentence."""

from __future__ import annotations

import re

_MARK = re.compile(r"^(?:lading\.errors\.)?(\w+Error): (.*)$", re.MULTILINE)


def cause_of(error: Exception) -> str:
    """The innermost error of a Python worker, else the first line of what Spark says."""
    text = str(error)
    if found := _MARK.findall(text):
        name, message = found[-1]
        return message if name.startswith(("Stage", "Source", "Record", "Schema", "Storage")) else f"{name}: {message}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:500] if lines else type(error).__name__
