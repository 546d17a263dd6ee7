"""What Spark says when a task fails, in one sentence."""

from __future__ import annotations

import re
import sys

from py4j.protocol import Py4JError

from lading.errors import FILE_FOUND, LadingError, SourceError
from lading.pipeline.guard import UNFIT

_OURS = re.compile(r"^\s*(lading\.[\w.]*?)\.(\w+Error): (.*)$", re.MULTILINE)
_UNFIT = re.compile(rf"RuntimeError: {UNFIT}: (.*)")
_NO_MODULE = re.compile(
    r"No module named '?lading\b|ModuleNotFoundError: No module named '([\w.]+)'.*?PYTHONPATH was", re.DOTALL
)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"[^\n]*?(?:error=|error: )(?:2|13)\b')
"""It is not there, or may not be run. A machine without memory or with too many open files has other numbers."""
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\]\s*(.*)")
_HOST = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \((\S+) executor (\S+)\)")
_OTHERS = re.compile(r"^\s*([\w.]+(?:Error|Exception))(?:: (.*))?$", re.MULTILINE)

_OF_JAVA = re.compile(r"(?:executor \S+\)|^Caused by): (?:[\w$]+\.)+([\w$]*(?:Error|Exception)): (.+)$", re.MULTILINE)
"""What failed in Spark itself, such as its scratch disk; the last one is what the others come from."""


def unfitness_of(error: Exception) -> str:
    """Why an executor cannot run the tasks of this Lading, in one sentence; empty when something else failed."""
    text = text_of(error)
    if found := _UNFIT.search(text):
        return found[1].rstrip(".")
    host = _HOST.search(text)
    where = f"The executor on {host[1]}" if host else "An executor"
    if "Error from python worker" in text and (module := _NO_MODULE.search(text)):
        return (
            f"{where} has no {(module[1] or 'lading').replace('lading', 'Lading')}, which the tasks of the service need"
        )
    if program := _NO_PROGRAM.search(text):
        return f"{where} has no Python called {program[1]}, which the service asks for (spark.pyspark.python)"
    if python := _OTHER_PYTHON.search(text):
        return f"{where} runs another Python than the service: {python[1]}".rstrip(".")
    return ""


def cause_of(error: Exception) -> str:
    """What a task raised: Lading's own message when there is one, else the last error of the worker, else of Spark."""
    text = text_of(error)
    if unfit := unfitness_of(error):
        return unfit
    if ours := _OURS.findall(text):
        return str(ours[-1][2]).rstrip(".")
    if others := [found for found in _OTHERS.findall(text) if not found[0].startswith(("org.", "java.", "py4j."))]:
        name, message = others[-1]
        return f"{name}: {message}".rstrip(".") if message else name
    if of_java := _OF_JAVA.findall(text):
        return ": ".join(of_java[-1]).strip()[:500].rstrip(".")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:500].rstrip(".") if lines else type(error).__name__


_DEATHS = (
    "Python worker exited unexpectedly",
    "caused by one of the running tasks",
    "OutOfMemoryError",
    "MemoryError",
)
"""How Spark tells that what a task read ended its worker or its executor, or took more memory than there is."""

_SHARED = ("UNABLE_TO_ACQUIRE_MEMORY", "SparkOutOfMemoryError", "heartbeat timed out")
"""What others may have caused as well: memory that all tasks of Spark share, and a machine that gave no answer."""


def is_worker_lost(error: Exception) -> bool:
    """Whether the task did not fail but took its process with it. An executor that went for another reason, such as a
    machine that was given back, is not meant: Spark says so and runs its tasks elsewhere."""
    text = text_of(error)
    if _OURS.search(text) or unfitness_of(error) or any(words in text for words in _SHARED):
        return False
    return any(words in text for words in _DEATHS)


def is_unreadable_file(error: Exception) -> bool:
    """Whether the task found that what is in a file cannot be read. Of its error the driver knows class and message."""
    ours = _OURS.findall(text_of(error))
    is_found = bool(ours) and ours[-1][1] == SourceError.__name__ and ours[-1][2].startswith("File ")
    return is_found and FILE_FOUND in ours[-1][2] and not unfitness_of(error)


def can_heal(error: Exception) -> bool:
    """Whether trying the same again may help. Only an error of Lading's own can say that it does not."""
    if unfitness_of(error):
        return False
    ours = _OURS.findall(text_of(error))
    if not ours:
        return True
    room, name, _ = ours[-1]
    # The driver has planned with the same source: what its tasks raise is known here.
    kind = getattr(sys.modules.get(room), name, None)
    return not (isinstance(kind, type) and issubclass(kind, LadingError)) or kind.retry


def text_of(error: Exception) -> str:
    """What an error says. Those of Java ask Java for it, which may be gone by now."""
    try:
        return str(error)
    except (Py4JError, OSError):
        return f"{type(error).__name__}: Java ended before it could say why"
