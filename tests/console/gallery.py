"""Every page of the console, and what must be true of it at any width, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.console.service import Service
from tests.console.test_connection import Wire, expect_lost
from tests.console.test_console import type_statement

WIDTHS = (375, 768, 1280, 1920)
THEMES = ("light", "dark")
PAGES = {
    "jobs": "/",
    "jobs-none-fits": "/?q=nothing+like+it",
    "job": "/jobs/orders",
    "job-commits": "/jobs/orders?tab=Commits",
    "job-errors": "/jobs/payments?tab=Errors",
    "job-definition": "/jobs/orders?tab=Definition",
    "job-audit": "/jobs/stock_levels?tab=Audit",
    "job-problem": "/jobs/returns",
    "job-failing": "/jobs/invoices",
    "job-late": "/jobs/shipments",
    "job-catching-up": "/jobs/orders_backfill",
    "job-missing": "/jobs/nobody",
    "commit": "/jobs/orders/commits/2",
    "edit": "/jobs/orders/edit",
    "new": "/new",
    "copy": "/new?from=orders",
    "tables": "/tables",
    "table": "/tables/shop.orders",
    "sql": "/sql?q=SELECT+*+FROM+shop.orders+LIMIT+20",
    "spark": "/spark",
    "audit": "/audit",
    "tokens": "/tokens",
    "help": "/help",
    "missing": "/nothing/here",
}
"""Of a service with the history of tests/console/history.py."""
MOMENTS = {
    "menu": ("/help", ".ld-menu summary"),
    "guide": ("/new", ".ld-guide summary"),
    "example": ("/new", ".ld-small:has-text('Kafka')"),
    "move": ("/jobs/orders", ".ld-button:has-text('Move position')"),
    "stop": ("/jobs/orders", ".ld-button:has-text('Stop')"),
    "allow": ("/jobs/returns", ".ld-button:has-text('Allow bad rows')"),
    "chosen": ("/", ".ld-pick >> nth=0"),
    "snippet": ("/tables/shop.orders", "summary:has-text('Polars')"),
}
"""What comes with a click, by its page and what is clicked."""


def _preview(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/new")
    page.get_by_text("Guide me").click()
    page.get_by_label("Kind of source").click()
    page.get_by_role("option", name="Files of the machine").click()
    page.get_by_label("Files on the machine of the service").fill(f"{service.inbox}/orders/*.csv")
    page.get_by_role("button", name="Test and preview").click()
    expect(page.locator(".ld-banner", has_text="Checked against the source")).to_be_visible()
    page.get_by_label("Name of the new table").fill("shop.orders_again")
    page.get_by_label("Name of the job").fill("orders_again")
    expect(page.locator(".ld-banner", has_text="The statement is right")).to_be_visible()


def _answer(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/sql?q=SHOW+JOBS")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Answer")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    heights = page.evaluate("[...document.querySelectorAll('tbody tr')].map(row => row.offsetHeight)")
    assert max(heights) < 400, heights


def _refusal(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/sql?q=SELECT+*+FORM+shop.orders")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".ld-banner[data-tone=bad]")).to_be_visible()


def _change(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/returns/edit")
    expect(page.locator(".cm-content")).to_contain_text("ALTER JOB returns")
    type_statement(page, 'ALTER JOB returns PROPERTIES ("max_interval" = "30")')
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("region", name="What would change")).to_be_visible()


def _skip(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/returns")
    page.get_by_role("button", name="Skip the file").click()
    expect(page.get_by_role("dialog", name=re.compile("Skip a file"))).to_be_visible()


def _lost(page: Page, service: Service) -> None:
    wire = Wire(page)
    page.goto(service.url)
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    page.wait_for_function("window.socket?.connected")
    wire.cut()
    expect_lost(page)


JOURNEYS: Mapping[str, Callable[[Page, Service], None]] = {
    "preview": _preview,
    "answer": _answer,
    "refusal": _refusal,
    "change": _change,
    "skip": _skip,
    "lost": _lost,
}
"""What somebody comes to by several steps."""
_NOISE = ("Failed to load resource: the server responded with a status of 404",)
"""What the browser itself says of a page that is not there."""

_FACTS = (Path(__file__).parent / "facts.js").read_text()


def facts_of(page: Page) -> dict[str, Any]:
    """What is wrong with what is shown now, by kind; a list that is empty is good news."""
    found = page.evaluate(_FACTS)
    assert isinstance(found, dict)
    return found


def shoot(page: Page, name: str, folder: Path) -> dict[str, Any]:
    """A picture at every width in light and dark; what is wrong in any of them."""
    wrong: dict[str, Any] = {}
    for width in WIDTHS:
        for theme in THEMES:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            page.wait_for_timeout(400)  # Plots take their new size.
            page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)
            if bad := {kind: places for kind, places in facts_of(page).items() if places}:
                wrong[f"{name} at {width} in {theme}"] = bad
    return wrong


def hear(page: Page) -> list[str]:
    """Errors that the browser tells of from now on."""
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "console",
        lambda word: said.append(word.text) if word.type == "error" and not word.text.startswith(_NOISE) else None,
    )
    return said
