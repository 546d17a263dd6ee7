"""A page that explains the words of the others."""

from __future__ import annotations

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console.desk import Console
from lading.console.layout import frame, to_login
from lading.console.widgets.basic import box, facts, link, text
from lading.service.views.records import Health

HEALTH = {
    Health.NEEDS_REVIEW: "It waits for a person to decide: too many bad rows, a table that was rolled back, "
    "or an error that trying again does not cure. Its page says which, and what can be done.",
    Health.FAILING: "Its last batches failed. It is tried again by itself, later each time; its page counts down.",
    Health.LATE_FILES: "It runs, and there are files that it will not load, because they came late or changed.",
    Health.CATCHING_UP: "It is more than a minute behind its source, as the source says or at its present pace.",
    Health.PAUSED: "A user paused it.",
    Health.HEALTHY: "It runs, and keeps up.",
    Health.ENDED: "It was stopped, or has loaded all there was.",
}
_WORDS = {
    "Batch": "What is read and committed together.",
    "Commit": "One atomic change of the table: rows, positions and statistics together.",
    "Bill": "The record of one commit, beside the table. It never changes.",
    "Position": "What is read next in a partition of the source; for files, the last one that counts as loaded.",
    "Epoch": "Grows by one when somebody moves a position. What was planned before cannot be committed any more.",
    "Bad row": "One that cannot be read or does not fit the table. It goes to quarantine, or refuses its batch.",
    "Quarantine": "Where bad rows are kept, with the reason. They stay readable on the page of the job, under Errors.",
}

_KEYS = {
    "Ctrl+Space": "In the editor: what can be written next. Arrows choose, Enter takes it, Escape leaves it.",
    "Ctrl+Enter": "On the page SQL: runs what is written.",
    "Escape": "Closes a dialog or the menu; in the editor, lets the next Tab leave it.",
    "Enter": "In a field of a dialog: does what the dialog is for, once all is filled in.",
}


def add_help(console: Console) -> None:
    """The page at `/help`."""

    @ui.page("/help")
    async def show(request: Request) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title="Help", here="/help"):
            text("h1", "Help")
            with box("section", "ld-panel ld-pad ld-stack", aria_label="Health"):
                text("h2", "How a job is doing, the gravest first")
                facts({health.value: words for health, words in HEALTH.items()})
            with box("section", "ld-panel ld-pad ld-stack", aria_label="Words"):
                text("h2", "Words")
                facts(_WORDS)
            with box("section", "ld-panel ld-pad ld-stack", aria_label="Keys"):
                text("h2", "Keys")
                facts(_KEYS)
            with box("section", "ld-panel ld-pad ld-stack", aria_label="Elsewhere"):
                text("h2", "Elsewhere")
                text("p", "The documentation is in the folder docs of Lading. This service describes its API itself:")
                link("/api/openapi.json", "/api/openapi.json")
        return None
