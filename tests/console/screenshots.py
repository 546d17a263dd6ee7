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

from playwright.sync_api import Browser, Page, ViewportSize

from tests.console.history import put_rows
from tests.console.service import ROOT, Service, open_browser, run_service

IMAGES = ROOT / "docs" / "images"
WIDE: ViewportSize = {"width": 1280, "height": 640}
PHONE: ViewportSize = {"width": 390, "height": 844}


def look(browser: Browser, service: Service, path: str, *, size: ViewportSize, dark: bool = False) -> Page:
    """A page that has settled."""
    context = browser.new_context(
        viewport=size, color_scheme="dark" if dark else "light", device_scale_factor=1, timezone_id="UTC"
    )
    page = context.new_page()
    page.goto(service.url + path)
    page.wait_for_selector("h1")
    page.wait_for_timeout(4000)
    return page


def main(folder: Path) -> None:
    place = Path(tempfile.gettempdir()) / "lading-shop"  # Seen in the pictures.
    place.mkdir()
    try:
        _shoot(folder, place)
    finally:
        shutil.rmtree(place)


def _shoot(folder: Path, place: Path) -> None:
    with run_service(place, "--history") as service:
        for name in ("orders", "payments"):
            put_rows(service.inbox / name / "1000.csv", 5000, random.Random(8))
        with open_browser() as browser:
            look(browser, service, "/", size=WIDE).screenshot(path=folder / "console-jobs.png")
            light = look(browser, service, "/jobs/orders", size=WIDE)
            light.screenshot(path=folder / "console-job.png", full_page=True)
            look(browser, service, "/jobs/returns", size=WIDE).screenshot(path=folder / "console-problem.png")
            dark = look(browser, service, "/jobs/orders", size=WIDE, dark=True)
            dark.screenshot(path=folder / "console-job-dark.png", full_page=True)
            look(browser, service, "/", size=PHONE).screenshot(path=folder / "console-phone.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    target.mkdir(parents=True, exist_ok=True)
    main(target)
