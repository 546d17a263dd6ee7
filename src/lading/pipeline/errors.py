"""What Spark says when a task fails, in one sentence."""

from __future__ import annotations

import re
import sys

from lading.errors import LadingError

_OURS = re.compile(r"^\s*(lading\.[\w.]*?)\.(\w+Error): (.*)$", re.MULTILINE)
_OTHERS = re.compile(r"^\s*([\w.]+(?:Error|Exception))(?:: (.*))?$", re.MULTILINE)


def cause_of(error: Exception) -> str:
    """What a task raised: Lading's own message when there is one, else the last error of the worker."""
    text = str(error)
    if ours := _OURS.findall(text):
        return str(ours[-1][2]).rstrip(".")
    if others := [found for found in _OTHERS.findall(text) if not found[0].startswith(("org.", "java.", "py4j."))]:
        name, message = others[-1]
        return f"{name}: {message}".rstrip(".") if message else name
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:500].rstrip(".") if lines else type(error).__name__


_DEATHS = (
    "Python worker exited unexpectedly",
    "caused by one of the running tasks",
    "OutOfMemoryError",
    "MemoryError",
)
"""How Spark tells that what a task read ended its worker or its executor, or took more memory than there is."""


def is_worker_lost(error: Exception) -> bool:
    """Whether the task did not fail but took its process with it. An executor that went for another reason, such as a
    machine that was given back, is not meant: Spark says so and runs its tasks elsewhere."""
    text = str(error)
    return not _OURS.search(text) and any(words in text for words in _DEATHS)


def can_heal(error: Exception) -> bool:
    """Whether trying the same again may help. Only an error of Lading's own can say that it does not."""
    ours = _OURS.findall(str(error))
    if not ours:
        return True
    room, name, _ = ours[-1]
    # The driver has planned with the same source: what its tasks raise is known here.
    kind = getattr(sys.modules.get(room), name, None)
    return not (isinstance(kind, type) and issubclass(kind, LadingError)) or kind.retry
