"""Raw lines of standard error, as lines of the log: what Java writes, what a library in C writes.

Nobody formats these lines and nobody takes secrets out of them before they reach us. So they are read through a pipe,
and each one becomes a record of a logger, whose handler redacts it like every other record.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator

LONGEST = 16 * 1024
"""Bytes of a line that are kept."""
MARGIN = 8 * 1024
"""More than that is read before a line is cut, so that a secret at the cut is seen whole and redacted."""
_CHUNK = 64 * 1024
_GREETINGS = (
    "WARNING: Using incubator modules: jdk.incubator.vector",
    "Setting default log level to ",
    "To adjust logging level use sc.setLogLevel(",
)
"""What Java and Spark say at every start, and what nobody can act on."""
_PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def log_lines(descriptor: int, logger: logging.Logger, *, level: int = logging.WARNING) -> threading.Thread:
    """Log every line that comes out of a pipe until its last writer is gone; then the descriptor is closed.

    For a child process: `Popen(stderr=PIPE)`, then `log_lines(os.dup(process.stderr.fileno()), logger)`. The thread
    never ends early: a full pipe would stop the writer.
    """
    thread = threading.Thread(
        target=_log_all, args=(descriptor, logger, level), name=f"lading-lines-{logger.name}", daemon=True
    )
    thread.start()
    return thread


def _log_all(descriptor: int, logger: logging.Logger, level: int) -> None:
    try:
        for line in read_lines(descriptor):
            if line.strip():
                said = logging.DEBUG if is_greeting(line) else level
                logger.log(said, "%s", line, extra={"is_raw": True})
    finally:
        os.close(descriptor)


def is_greeting(line: str) -> bool:
    """Whether Java or Spark says it at every start."""
    return line.startswith(_GREETINGS)


def read_lines(descriptor: int) -> Iterator[str]:
    """Lines of a pipe without their ends. The rest of a line that is too long is dropped."""
    pending, is_dropping = b"", False
    while chunk := os.read(descriptor, _CHUNK):
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            if not is_dropping:
                yield _decoded(line)
            is_dropping = False
        if len(pending) > LONGEST + MARGIN:
            if not is_dropping:
                yield _decoded(pending)
            pending, is_dropping = b"", True
    if pending and not is_dropping:
        yield _decoded(pending)


def _decoded(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "replace")


def silence_pyspark() -> None:
    """PySpark logs every error of a query with its text, by a handler of its own, which redacts nothing. The error
    itself reaches us anyway.
    """
    from pyspark.logger import PySparkLogger

    for name in _PYSPARK_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
