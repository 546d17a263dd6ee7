"""One browser for all tests; one service for those that share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.console.service import Service, keep_inside, open_browser, run_service

PATIENCE = int(os.environ.get("LADING_TEST_PATIENCE", "1"))
"""Times that browsers wait longer, on a machine that has other things to do."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=15_000 * PATIENCE)
    with open_browser() as made:
        yield made


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of this run are kept."""
    return tmp_path_factory.mktemp("console-pictures")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture(scope="module")
def window(browser: Browser, service: Service) -> Iterator[tuple[BrowserContext, list[str]]]:
    """What the pages of a file share: scripts that the browser has read once. And what they asked of anybody else."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(20_000 * PATIENCE)
    outside = keep_inside(context, service.url)
    yield context, outside
    context.close()


@pytest.fixture
def page(window: tuple[BrowserContext, list[str]], service: Service) -> Iterator[Page]:
    """A page that may ask nobody but the service, and must not stumble. It finds nothing of those before it."""
    context, outside = window
    faults = list[str]()
    made = context.new_page()
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield made
    if not made.is_closed() and made.url.startswith(service.url):
        made.evaluate("localStorage.clear()")
    context.clear_cookies()
    for each in context.pages:
        each.close()
    asked, outside[:] = [*outside], []
    assert asked == []
    assert faults == []
