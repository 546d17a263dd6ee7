"""Logs of a service: text for people, JSON lines for machines; every line of a job names it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import Enum

from lading.service.security.log_output import LogHandler, capture_stderr, log_uncaught, redacted_message
from lading.service.security.redaction import redact

_FIELDS = ("job", "seq", "batch")
_LINE_ENDS = {number: f"\\u{number:04x}" for number in (0x85, 0x2028, 0x2029)}
_CONTROLS = {number: f"\\x{number:02x}" for number in (*range(9), *range(10, 32), *range(127, 160))}


class LogFormat(Enum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """For machines: one line for each record. No line holds a secret that this service knows."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        body: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redacted_message(record),
        }
        for name in _FIELDS:
            if hasattr(record, name):
                value = getattr(record, name)
                body[name] = value if isinstance(value, int | float) else redact(str(value))
        if trouble := _trouble(self, record):
            body["error"] = trouble
        line = json.dumps(body, ensure_ascii=False)
        # JSON leaves these as they are, and many readers of lines begin a new one at them.
        return line.translate(_LINE_ENDS)


class TextLines(logging.Formatter):
    """For people. No line holds a secret that this service knows, and no message begins a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        marks = " ".join(f"{name}={redact(str(getattr(record, name)))}" for name in _FIELDS if hasattr(record, name))
        line = f"{at} {record.levelname:7} {redacted_message(record)}{f' ({marks})' if marks else ''}"
        trouble = _trouble(self, record)
        whole = f"{line}\n{trouble}" if trouble else line
        # What a client sent may hold line ends: a second line is indented, so that it cannot pass for another record.
        return "\n    ".join(part.translate(_CONTROLS) for part in whole.splitlines())


def _trouble(form: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback of a record, redacted. What other handlers left in `exc_text` was not."""
    parts = [form.formatException(record.exc_info)] if record.exc_info else [record.exc_text or ""]
    if record.stack_info:
        parts.append(form.formatStack(record.stack_info))
    return redact("\n".join(part for part in parts if part))


def set_up_logs(form: LogFormat, level: int = logging.INFO, *, is_service: bool = False) -> None:
    """Send the logs of Lading to standard error. Those of libraries only when something is wrong.

    A service captures its whole standard error: what Java, libraries in C or Python itself write there is logged.
    """
    stream = capture_stderr() if is_service else sys.stderr
    handler = LogHandler(stream)
    handler.setFormatter(JsonLines() if form is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("lading").setLevel(level)
    log_uncaught()
