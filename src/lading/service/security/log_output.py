"""Everything that reaches standard error passes the redaction and has the form of the log.

Lines come from five sides: loggers, `sys.stderr` (tracebacks, libraries that print), the hooks for exceptions that
nobody caught, file descriptor 2 itself (libraries in C, child processes that inherit it) and a crash of Python. The
first three are records of a logger at once. Descriptor 2 is replaced by a pipe whose lines are logged. A crash goes to
a file, because nothing can be formatted then; the next start logs it.
"""

from __future__ import annotations

import atexit
import faulthandler
import io
import logging
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TextIO

from lading.pipeline.child_output import LONGEST, MARGIN, log_lines
from lading.service.security.redaction import redact

CRASH_FILE = "crash.txt"
_LAST_LINES_S = 5.0
"""So long the end of a process waits for its last lines, when something else has its standard error open."""
_CRASH_CHARACTERS = 20_000
_CUT = " … (cut)"
_log = logging.getLogger("lading.uncaught")
_raw = logging.getLogger("lading.stderr")


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes to one stream, and never writes a record that could not be formatted: nothing would redact it."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - a broken record of any library must not end the thread that logs
            line = self.format(_unformatted(record, error))
        try:
            self.stream.write(f"{line}\n")
            self.stream.flush()
        except (OSError, ValueError):
            return  # Nobody reads standard error any more; there is no other place to say so.


def _unformatted(record: logging.LogRecord, error: Exception) -> logging.LogRecord:
    message = f"A log record of {record.pathname}:{record.lineno} could not be formatted: {type(error).__name__}"
    return logging.LogRecord(record.name, record.levelno, record.pathname, record.lineno, message, None, None)


def redacted_message(record: logging.LogRecord) -> str:
    """The message of a record without secrets; of a raw line that is too long, the beginning."""
    message = record.getMessage()
    shown = redact(message)
    if not getattr(record, "is_raw", False) or len(message) <= LONGEST + len(_CUT):
        return shown
    # The end of a line that was cut may hold half of a secret, which nothing recognises.
    return f"{shown[: min(LONGEST, len(shown) - MARGIN)]}{_CUT}"


class _Redaction(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redacted_message(record), None
        return True


_REDACTION = _Redaction()


def redact_logger(name: str) -> None:
    """Redact what a logger is given, also where a program that uses Lading as a library formats its logs itself."""
    logging.getLogger(name).addFilter(_REDACTION)  # Once, however often it is added.


class LogStream(io.TextIOBase):
    """Stands in for `sys.stderr`: each line becomes a record. Each thread has its own unfinished line."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._pending = threading.local()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # of TextIOBase, which declares an attribute
        return "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Where child processes write that are given `sys.stderr`."""
        return 2

    def write(self, text: str) -> int:
        *lines, pending = (getattr(self._pending, "text", "") + text).split("\n")
        self._pending.text = pending
        for line in lines:
            if line.strip():
                self._logger.warning("%s", line, extra={"is_raw": True})
        return len(text)


def log_uncaught() -> None:
    """Log what nobody caught or asked for: in the main thread, in other threads, in finalizers, and warnings."""
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable
    logging.captureWarnings(True)


def _uncaught(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    _log.critical("The process ends with an error that nobody caught", exc_info=(kind, error, at))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit or args.exc_value is None:
        return
    name = args.thread.name if args.thread is not None else "unknown"
    _log.error("Thread %s ended with an error", name, exc_info=(args.exc_type, args.exc_value, args.exc_traceback))


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    what = args.err_msg or "Exception ignored"
    trouble = (args.exc_type, args.exc_value, args.exc_traceback) if args.exc_value is not None else None
    _log.error("%s in %s", what, type(args.object).__name__, exc_info=trouble)


def capture_stderr() -> TextIO:
    """Turn descriptor 2 and `sys.stderr` into lines of the log. Returns the real standard error, for the log itself."""
    real = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    sys.stderr = LogStream(_raw)
    reader = log_lines(reading, _raw)
    atexit.register(_let_go, reader)
    return real


def close_stdout() -> None:
    """From here on what is written to standard output is logged as well: only the ready line belongs there."""
    sys.stdout.flush()
    os.dup2(2, 1)


def _let_go(reader: threading.Thread) -> None:
    """At the very end the last lines are taken; the thread that reads ends before the interpreter does."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        if descriptor == 2 or os.fstat(1).st_ino == os.fstat(2).st_ino:
            os.dup2(nowhere, descriptor)
    os.close(nowhere)
    reader.join(_LAST_LINES_S)


def keep_crashes(home: Path) -> None:
    """Log the stack of a crash of the last run, and let this run keep one. Call it with the lock of the home held."""
    file = home / CRASH_FILE
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as kept:
        if last := kept.read(_CRASH_CHARACTERS).strip():
            _log.error("The last run of the service crashed:\n%s", last)
        kept.seek(0)
        kept.truncate()
    faulthandler.enable(file=file.open("a"))
