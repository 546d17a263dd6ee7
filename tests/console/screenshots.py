"""Pictures for the README and for docs/console.md.

    python -m tests.console.screenshots [FOLDER]

A service with an hour of history is looked at in light and dark, at 1280 and 390 pixels.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize

from tests.console.history import put_rows
from tests.console.service import ROOT, Service, open_browser, run_service

IMAGES = ROOT / "docs" / "images"
WIDE: ViewportSize = {"width": 1280, "height": 640}
TALL: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}


def look(
    browser: Browser,
    service: Service,
    path: str,
    picture: Path,
    *,
    size: ViewportSize = WIDE,
    dark: bool = False,
    is_whole: bool = False,
) -> None:
    """Take a picture of a page that has settled."""
    context = browser.new_context(
        viewport=size, color_scheme="dark" if dark else "light", device_scale_factor=1, timezone_id="UTC"
    )
    page = context.new_page()
    page.goto(service.url + path)
    page.wait_for_selector("h1")
    page.wait_for_timeout(4000)
    page.screenshot(path=picture, full_page=is_whole)
    context.close()


def take(folder: Path, browser: Browser) -> None:
    """All of them."""
    place = Path(tempfile.gettempdir()) / "lading-shop"  # Seen in the pictures.
    place.mkdir()
    try:
        _shoot(folder, place, browser)
    finally:
        shutil.rmtree(place)


def _shoot(folder: Path, place: Path, browser: Browser) -> None:
    with run_service(place, "--history") as service:
        for name in ("orders", "payments"):
            put_rows(service.inbox / name / "1000.csv", 5000, random.Random(8))
        look(browser, service, "/", folder / "console-jobs.png", size=TALL)
        look(browser, service, "/jobs/orders", folder / "console-job.png", is_whole=True)
        look(browser, service, "/jobs/returns", folder / "console-problem.png")
        look(browser, service, "/jobs/orders", folder / "console-job-dark.png", dark=True, is_whole=True)
        look(browser, service, "/", folder / "console-phone.png", size=PHONE)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    target.mkdir(parents=True, exist_ok=True)
    with open_browser() as opened:
        take(target, opened)
