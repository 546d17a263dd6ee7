"""Every page, at four widths, in light and dark: pictures to look at, and what must be true of each of them.

LADING_TEST_PICTURES=/some/folder pytest -m slow tests/console/test_gallery.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.console import screenshots
from tests.console.gallery import JOURNEYS, MOMENTS, PAGES, hear, shoot
from tests.console.service import ROOT, Service, run_service
from tests.console.test_login import log_in
from tests.logins import read_root_login

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wanted = os.environ.get("LADING_TEST_PICTURES")
    made = Path(wanted) if wanted else tmp_path_factory.mktemp("pictures")
    made.mkdir(parents=True, exist_ok=True)
    return made


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(tmp_path_factory.mktemp("shop"), "--users", "--history") as made:
        yield made


@pytest.fixture(scope="module")
def visit(browser: Browser, service: Service) -> Iterator[BrowserContext]:
    """Somebody who has logged in."""
    context = browser.new_context(timezone_id="UTC")
    context.set_default_timeout(30_000)
    first = context.new_page()
    first.goto(service.url)
    log_in(first, *read_root_login(service.home))
    expect(first.get_by_role("heading", name="Jobs")).to_be_visible()
    yield context
    context.close()


@pytest.mark.parametrize("name", [*PAGES, *MOMENTS])
def test_a_page_is_right_at_every_width_in_light_and_dark(
    visit: BrowserContext, service: Service, folder: Path, name: str
) -> None:
    page = visit.new_page()
    said = hear(page)
    path, clicked = MOMENTS.get(name, (PAGES.get(name, ""), ""))
    page.goto(service.url + path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_timeout(2500)  # What follows by itself has come.
    if clicked:
        page.click(clicked)
        page.wait_for_timeout(1000)
    wrong = shoot(page, name, folder)
    page.close()
    assert wrong == {}
    assert said == []


@pytest.mark.parametrize("name", JOURNEYS)
def test_what_comes_with_several_steps_is_right_too(
    visit: BrowserContext, service: Service, folder: Path, name: str
) -> None:
    page = visit.new_page()
    said = hear(page)
    JOURNEYS[name](page, service)
    wrong = shoot(page, name, folder)
    page.close()
    assert wrong == {}
    assert said == []


def test_who_has_not_logged_in_sees_the_login(browser: Browser, service: Service, folder: Path) -> None:
    page = browser.new_page()
    page.goto(f"{service.url}/jobs/orders")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert shoot(page, "login", folder) == {}
    page.close()


def test_the_pictures_of_the_documents_are_made(browser: Browser, folder: Path) -> None:
    """`LADING_TEST_PICTURES=docs/images` renews those of the README and of docs/console.md."""
    screenshots.take(folder, browser)
    texts = [(ROOT / name).read_text() for name in ("README.md", "docs/console.md")]
    named = {found for text in texts for found in re.findall(r"images/(console-[a-z-]+\.png)", text)}
    assert named
    assert {name for name in named if not (folder / name).read_bytes().startswith(b"\x89PNG")} == set()
