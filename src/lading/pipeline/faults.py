"""What Spark says when a task fails, in one sentence."""

from __future__ import annotations

import re

from lading import errors

_OURS = re.compile(r"^\s*lading\.(?:[\w.]+\.)?(\w+Error): (.*)$", re.MULTILINE)
_OTHERS = re.compile(r"^\s*([\w.]+(?:Error|Exception)): (.*)$", re.MULTILINE)


def cause_of(error: Exception) -> str:
    """What a task raised: Lading's own message when there is one, else the last error of the worker."""
    text = str(error)
    if ours := _OURS.findall(text):
        return str(ours[-1][1]).rstrip(".")
    if others := [found for found in _OTHERS.findall(text) if not found[0].startswith(("org.", "java.", "py4j."))]:
        name, message = others[-1]
        return f"{name}: {message}".rstrip(".")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:500].rstrip(".") if lines else type(error).__name__


def can_heal(error: Exception) -> bool:
    """Whether trying the same again may help. Only an error of Lading's own can say that it does not."""
    ours = _OURS.findall(str(error))
    kind = getattr(errors, ours[-1][0], None) if ours else None
    return kind is None or not issubclass(kind, errors.LadingError) or kind.retry
