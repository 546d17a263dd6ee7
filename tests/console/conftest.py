"""One browser for all tests; one service for those that share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

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


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """A page that may ask nobody but the service, and must not stumble."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(20_000 * PATIENCE)
    outside, faults = keep_inside(context, service.url), list[str]()
    made = context.new_page()
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield made
    context.close()
    assert outside == []
    assert faults == []
