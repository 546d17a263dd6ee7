"""Starting the service under test and a browser to look at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

ROOT = Path(__file__).parent.parent.parent
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that runs."""

    url: str
    home: Path
    inbox: Path

    def put(self, name: str, *amounts: str, city: str = "essen") -> None:
        """Let a file appear; an amount that is no number makes a bad row."""
        rows = [f"{number},{city},{amount}" for number, amount in enumerate(amounts)]
        draft = self.inbox / f".{name}"
        draft.write_text("\n".join(["id,city,amount", *rows]) + "\n")
        draft.rename(self.inbox / name)

    def statement(self, name: str = "orders") -> str:
        """A job over the inbox, and its table."""
        return (
            f"CREATE TABLE IF NOT EXISTS {name} (id BIGINT, city VARCHAR(64), amount DECIMAL(10,2)) USING delta;\n"
            f'CREATE JOB {name} PROPERTIES ("max_interval" = "1") ON STREAMING DO\n'
            f"INSERT INTO {name} SELECT id, city, amount\n"
            f'FROM FILE("uri" = "{self.inbox}/*.csv", "format" = "csv_with_names", "column_separator" = ",");'
        )


@contextmanager
def run_service(folder: Path, *flags: str, port: int = 0) -> Iterator[Service]:
    """A service in its own process, over a home in `folder`."""
    inbox = folder / "in"
    inbox.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.console.server", str(folder), str(port), *flags]
    with (
        (folder / "service.log").open("w") as log,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        ready = process.stdout.readline().split()
        assert ready[:1] == ["ready"], (folder / "service.log").read_text()
        try:
            yield Service(url=f"http://127.0.0.1:{ready[1]}", home=folder / "home", inbox=inbox)
        finally:
            process.stdin.close()
            process.wait(30)
            said = (folder / "service.log").read_text()
            assert "Traceback" not in said, said
            assert "A secret was shown" not in said, said


def find_chromium() -> str:
    """Debian's browser; installed when that can be done. Skips loudly when there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None and hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "chromium"], check=False, capture_output=True, timeout=600)
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("no chromium here: the console is NOT tested; install it with apt-get install chromium")
    return found


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A headless browser."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def keep_inside(context: BrowserContext, url: str) -> list[str]:
    """List requests to any other host, which the browser does not find.

    They are not intercepted: each would go through this process, and nothing would be kept between two pages.
    """
    outside: list[str] = []
    context.on("request", lambda request: None if _is_inside(request.url, url) else outside.append(request.url))
    return outside


def _is_inside(asked: str, url: str) -> bool:
    return asked.startswith((url, url.replace("http", "ws", 1), "data:", "blob:"))
