"""Logs of a service: text for people, JSON lines for machines; every line of a job names it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum

from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.service.hidden import hide
from lading.status.outcomes import Outcome

_FIELDS = ("job", "seq", "batch")


class LogFormat(Enum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """For machines. No line holds a secret that this service knows."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        body: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        body.update({name: getattr(record, name) for name in _FIELDS if hasattr(record, name)})
        if record.exc_info:
            body["error"] = self.formatException(record.exc_info)
        hidden = {name: hide(value) if isinstance(value, str) else value for name, value in body.items()}
        return json.dumps(hidden, ensure_ascii=False)


class TextLines(logging.Formatter):
    """For people. No line holds a secret that this service knows."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        marks = " ".join(f"{name}={getattr(record, name)}" for name in _FIELDS if hasattr(record, name))
        line = f"{at} {record.levelname:7} {record.getMessage()}{f' ({marks})' if marks else ''}"
        return hide(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


def set_up_logs(form: LogFormat, level: int = logging.INFO) -> None:
    """Send the logs of Lading to standard error. Those of libraries only when something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("lading").setLevel(level)


class LogWatch:
    """Writes down what jobs do. Steps are for metrics; here they would only be noise."""

    def __init__(self) -> None:
        self._log = logging.getLogger("lading.jobs")

    def step(self, record: JobRecord, step: str, seconds: float) -> None:
        pass

    def committed(self, record: JobRecord, bill: Bill) -> None:
        rows = bill.tally.rows
        marks = {"job": str(record.full_name), "seq": bill.seq, "batch": f"{bill.token:016x}"}
        self._log.info("committed %d rows, %d bad, %d files", rows.loaded, rows.error, len(bill.files), extra=marks)

    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        if outcome in ("committed", "empty"):
            return
        reason = record.reason.message if record.reason else record.last_error
        self._log.warning("batch %s after %.1f s: %s", outcome, seconds, reason, extra={"job": str(record.full_name)})

    def fenced(self, record: JobRecord) -> None:
        self._log.error("stopped: its table was changed by another", extra={"job": str(record.full_name)})

    def auto_resumed(self, record: JobRecord) -> None:
        self._log.info("resumed automatically", extra={"job": str(record.full_name)})

    def files_behind(self, record: JobRecord, files: Mapping[str, int]) -> None:
        pass
