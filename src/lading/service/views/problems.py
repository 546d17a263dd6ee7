"""What is wrong with a job, as one sentence, the value that is to blame, and what would allow it."""

from __future__ import annotations

import re

from lading.jobs.reasons import ReasonCode
from lading.jobs.record import JobRecord, JobState
from lading.service.security.redaction import redact
from lading.service.views.health import health_of
from lading.service.views.records import Health, ProblemView

MOST_LETTERS = 240
QUARANTINE = {"session.enable_insert_strict": "false", "session.enable_strict_cast": "true"}
"""With these, bad rows go to quarantine. Without the second, what cannot be read would be NULL, and its row good."""
_COUNTS = re.compile(r"(\d+) of (\d+) rows (?:are|were) bad")
_FIRST = re.compile(
    r"; the first: (?P<file>.*?), row (?P<row>\d+): (?P<reason>.*?)(?=\. Nothing was committed|$)", re.DOTALL
)
_VALUE = re.compile(r"(?:column (?P<column>.*?): )?cannot read '(?P<value>.*)' as (?P<type>.+)", re.DOTALL)


def problem_of(record: JobRecord) -> ProblemView | None:
    """What stands in the way of a job; None when nothing does, or when a user paused it."""
    if health_of(record).state not in (Health.NEEDS_REVIEW, Health.FAILING):
        return None
    task = record.task
    told = record.reason.message if record.reason is not None else (task.error if task else "") or record.last_error
    message = _printable(told)
    if not message:
        return None
    if record.reason is not None and record.reason.code is ReasonCode.TOO_MANY_FAILURE_ROWS_ERR:
        return _bad_rows(record, message)
    return ProblemView(sentence=_sentence(message), detail=redact(message))


def _bad_rows(record: JobRecord, message: str) -> ProblemView:
    counts, first = _COUNTS.search(message), _FIRST.search(message)
    found = _VALUE.search(first["reason"]) if first else None
    reason = ""
    if found:
        where = f"column {found['column']} " if found["column"] else "a value "
        reason = f": {where}cannot be read as {found['type']}"
    elif first:
        reason = f": {first['reason']}"
    many = f"{int(counts[1]):,} of {int(counts[2]):,} rows {'is' if counts[1] == '1' else 'are'} bad" if counts else ""
    return ProblemView(
        sentence=redact(_short(f"{many}{reason}.")) if many else _sentence(message),
        value=redact(_short(found["value"])) if found else "",
        file=redact(first["file"]) if first else "",
        row=int(first["row"]) if first else None,
        detail=redact(message),
        has_bad_rows=True,
        allow=_allowance(record, message) if record.state is JobState.PAUSED else {},
    )


def _allowance(record: JobRecord, message: str) -> dict[str, str]:
    if record.window is not None:
        return {
            "max_error_number": str(max(record.window_rows.error, record.window.max_errors)),
            "max_filter_ratio": "1",
        }
    if "strict mode" in message:
        return dict(QUARANTINE)
    return {"session.insert_max_filter_ratio": "1"}


def _sentence(message: str) -> str:
    """The first sentence: an error says what happened, then what state it left and what to do."""
    line = " ".join(message.split())
    end = re.search(r"\.(?= [A-Z])", line)
    return redact(_short(line[: end.end()] if end else line))


def _short(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
