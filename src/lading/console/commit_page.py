"""One commit of a job: its rows, what it read, what it wrote, and the bill itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nicegui import ui
from starlette.requests import Request
from starlette.responses import Response

from lading.console import formatting
from lading.console.desk import Console
from lading.console.layout import STORE_S, commit_path, frame, job_path, show_no_job, to_login
from lading.console.widgets.basic import Tiles, box, button, facts, link, text
from lading.console.widgets.results import result_table
from lading.errors import JobNotFoundError, LadingError
from lading.service.views.build import redacted

MOST_SEQ = 2**63 - 1
MOST_LISTED = 500
_FATES = {
    "loaded": "Rows loaded",
    "error": "Bad rows",
    "unselected": "Left out by WHERE",
    "late": "Late rows",
    "duplicate": "Duplicate rows",
}


def add_commit(console: Console) -> None:
    """The page at `/jobs/{name}/commits/{seq}`."""

    @ui.page("/jobs/{name}/commits/{seq}", response_timeout=STORE_S)
    async def commit(request: Request, name: str, seq: str) -> Response | None:
        visitor = await console.ask(console.visitor, request)
        if visitor is None:
            return to_login(request)
        with frame(console, visitor, title=f"Commit {seq} of {name}", here="/"):
            why = ""
            bill: Mapping[str, Any] | None = None
            try:
                if (wanted := seq_of(seq)) is not None:
                    bill = await console.ask(console.sights.bill_or_none, name, wanted, visitor.may_see)
                newest = await console.ask(console.sights.bills, name, limit=1, may_see=visitor.may_see)
            except JobNotFoundError:
                show_no_job(name)
                return None
            except LadingError as error:
                why = redacted(str(error))
            if bill is None:
                ui.context.client.status_code = 503 if why else 404
                text("h1", "This commit cannot be read right now" if why else "There is no such commit")
                text("p", why or f"The history of {name} has no commit {seq}.", "ld-muted")
                link(f"The job {name}", job_path(name))
                return None
            show_bill(name, bill, is_newest=newest[0].seq <= int(bill["seq"]))
        return None


def seq_of(text: str) -> int | None:
    """The number of a commit as an address has it; None for what can be none."""
    seq = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_SEQ)) else -1
    return seq if 0 <= seq < MOST_SEQ else None


def show_bill(name: str, bill: Mapping[str, Any], *, is_newest: bool) -> None:
    """The page of a bill, as its JSON has it."""
    seq, rows = int(bill["seq"]), bill["tally"]["rows"]
    with box("div", "ld-stack"):
        with box("nav", "ld-crumb", aria_label="Where you are"):
            link("Jobs", "/")
            text("span", " / ")
            link(name, job_path(name))
        with box("div", "ld-bar"):
            text("h1", f"Commit {seq:,}", "ld-grow")
            with box("div", "ld-bar ld-acts"):
                if seq:
                    link("The one before", commit_path(name, seq - 1), "ld-link")
                if not is_newest:
                    link("The next one", commit_path(name, seq + 1), "ld-link")
    tiles = Tiles(_FATES, has_notes=False)
    for fate in _FATES:
        tone = {"error": "bad", "late": "warn"}.get(fate) if rows.get(fate) else None
        tiles.show(fate, formatting.count(rows.get(fate, 0)), tone=tone)  # type: ignore[arg-type]
    with box("section", "ld-panel ld-pad", aria_label="Facts"):
        facts(facts_of(bill))
    _list("What it read", ("Partition", "From", "To"), bill.get("ranges", ()), ("partition", "start", "end"))
    gaps = bill.get("gaps", ())
    if gaps:
        keys = ("partition", "start", "end", "reason")
        _list("Rows that the source no longer had", ("Partition", "From", "To", "Reason"), gaps, keys)
    _list("Files that it wrote", ("File", "Rows", "Data"), files_of(bill), ("path", "rows", "size"))
    whole = json.dumps(bill, indent=2, ensure_ascii=False)
    with box("section", "ld-panel ld-pad ld-stack", aria_label="Bill"):
        text("h2", "The bill, as it is kept beside the table")
        with box("div", "ld-bar"):
            button("Copy", lambda: ui.clipboard.write(whole))
        text("pre", whole, "ld-code", tabindex="0", aria_label="Bill")


def files_of(bill: Mapping[str, Any]) -> list[dict[str, str]]:
    """The files of a commit, as people read their numbers."""
    return [
        {
            "path": str(each["path"]),
            "rows": formatting.count(each.get("rows") or 0),
            "size": formatting.size(each.get("size_bytes")),
        }
        for each in bill.get("files", ())
    ]


def facts_of(bill: Mapping[str, Any]) -> dict[str, str]:
    """What a bill says beside its numbers. What it does not say is left out."""
    planned, billed = datetime.fromisoformat(bill["planned_at"]), datetime.fromisoformat(bill["billed_at"])
    version = bill.get("table_version")
    told = {
        "Kind": bill["kind"],
        "Committed": billed.isoformat(sep=" ", timespec="seconds"),
        "From plan to bill": formatting.took((billed - planned).total_seconds()),
        "Epoch": formatting.count(bill["epoch"]),
        "Prepared on version": "" if version is None else formatting.count(version),
        "Data": formatting.size(bill["tally"].get("data_bytes")),
        "Read": formatting.size(bill["tally"].get("received_bytes")),
        "First bad row": str(bill.get("first_error") or ""),
        "Why": str(bill.get("reason") or ""),
        "Rows loaded in all": formatting.count(bill["totals"]["rows"]["loaded"]),
        "Lading": str(bill.get("lading_version") or ""),
        "Incarnation": str(bill.get("incarnation") or ""),
    }
    return {name: value for name, value in told.items() if value}


def _list(title: str, columns: Sequence[str], found: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    with box("section", "ld-panel", aria_label=title):
        text("h2", title, "ld-pad")
        rows = [[each.get(key) if each.get(key) != "" else "the beginning" for key in keys] for each in found]
        result_table(title, columns, rows[:MOST_LISTED], empty="Nothing.")
        if len(rows) > MOST_LISTED:
            text("p", f"The first {MOST_LISTED} of {len(rows):,}; the bill has all.", "ld-muted ld-pad")
