"""A connection that is lost: the page is dimmed and says how old it is; and it goes on by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.console.service import Service, run_service

STAMP = re.compile(r"Connection lost\. This page shows what was known at \d\d:\d\d:\d\d; it goes on when")


class Wire:
    """What lies between a page and the service, and can be cut."""

    def __init__(self, page: Page) -> None:
        self._is_cut = False
        self._is_silent = False
        self._open: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("socket.io"), self._pass)

    def _pass(self, route: WebSocketRoute) -> None:
        if self._is_cut:
            route.close()
            return
        self._open.append(route)
        server = route.connect_to_server()
        route.on_message(lambda said: None if self._is_silent else server.send(said))
        server.on_message(lambda said: None if self._is_silent else route.send(said))

    def cut(self) -> None:
        self._is_cut = True
        for route in self._open:
            route.close()

    def silence(self) -> None:
        """Nothing comes through, and nobody is told: as with a service that hangs, or a cable that is out."""
        self._is_silent = True

    def join(self) -> None:
        self._is_cut = self._is_silent = False
        self._open.clear()


def expect_lost(page: Page) -> None:
    expect(page.get_by_role("alert").filter(has_text="Connection lost")).to_have_text(STAMP)
    expect(page.locator("html")).to_have_attribute("data-lost", "yes")
    expect(page.locator("#popup")).to_be_hidden()  # One message is enough.
    dim = page.evaluate("+getComputedStyle(document.querySelector('.ld-main')).opacity")
    assert dim < 0.7


def test_a_lost_connection_dims_the_page_and_stamps_it_until_it_is_back(page: Page, service: Service) -> None:
    wire = Wire(page)
    page.goto(service.url)
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.wait_for_function("window.socket?.connected")
    expect(page.locator(".ld-lost")).to_be_hidden()
    wire.cut()
    expect_lost(page)
    wire.join()
    expect(page.locator("html")).not_to_have_attribute("data-lost", "yes")
    expect(page.locator(".ld-lost")).to_be_hidden()
    assert page.evaluate("+getComputedStyle(document.querySelector('.ld-main')).opacity") == 1


@pytest.mark.slow
def test_a_service_that_hangs_is_noticed(page: Page, service: Service) -> None:
    wire = Wire(page)
    page.goto(service.url)
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.wait_for_function("window.socket?.connected")
    wire.silence()
    expect(page.locator("html")).to_have_attribute("data-lost", "yes", timeout=30_000)
    expect_lost(page)
    wire.join()
    expect(page.locator("html")).not_to_have_attribute("data-lost", "yes", timeout=30_000)


@pytest.mark.slow
def test_a_service_that_is_started_again_is_found_again(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    with run_service(tmp_path) as first:
        page.goto(first.url)
        expect(page.get_by_role("heading", name="There is no job yet")).to_be_visible()
    expect_lost(page)
    button = page.get_by_role("link", name="Write the first job")
    expect(button).to_be_visible()  # What was known can still be read.
    with run_service(tmp_path, port=int(first.url.rsplit(":", 1)[1])):
        expect(page.locator("html")).not_to_have_attribute("data-lost", "yes", timeout=60_000)
        button.click()
        page.wait_for_url("**/new")
    context.close()
