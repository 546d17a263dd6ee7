"""A statement that is being written: it is not lost, and what it did is said."""

from __future__ import annotations

import httpx
from playwright.sync_api import Page, expect

from lading.testing.marked import secret
from tests.console.service import Service
from tests.console.test_console import type_statement

LONG = "a" * 64


def test_what_was_typed_comes_back_unless_a_secret_is_in_it(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/new")
    type_statement(page, "CREATE JOB half")
    expect(page.locator(".ld-banner", has_text="Line 1")).to_be_visible()
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("CREATE JOB half")

    # An example does not take its place unasked.
    page.get_by_role("button", name="Kafka").click()
    dialog = page.get_by_role("dialog", name="Replace what was typed?")
    dialog.get_by_role("button", name="Keep the text").click()
    expect(page.locator(".cm-content")).to_contain_text("CREATE JOB half")
    page.get_by_role("button", name="Kafka").click()
    dialog.get_by_role("button", name="Replace it").click()
    expect(page.locator(".cm-content")).to_contain_text("kafka_topic")
    page.get_by_role("button", name="Kinesis").click()
    expect(page.locator(".cm-content")).to_contain_text("kinesis_stream")

    type_statement(page, f"""CREATE JOB half PROPERTIES ("s3.secret_key" = "{secret("draft")}")""")
    expect(page.locator(".ld-banner", has_text="Line 1")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('lading-draft')") is None
    page.reload()
    expect(page.locator(".cm-content")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('lading-draft')") is None


def test_what_was_made_before_a_failure_is_said(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/new")
    first, second = service.statement(LONG), service.statement("second").replace(str(service.inbox), "/dev/null/in")
    type_statement(page, f"{first}\n{second.replace('id, city, amount', 'nosuch, city, amount')}")
    expect(page.get_by_role("button", name="Create job")).to_be_enabled()
    page.get_by_role("button", name="Create job").click()
    banner = page.locator(".ld-banner", has_text="Made before it, and there now")
    expect(banner).to_contain_text(f"table {LONG}, job {LONG}")
    expect(banner).not_to_contain_text("job second")
    type_statement(page, first)
    expect(page.locator(".ld-banner", has_text=f"There is a job {LONG} already")).to_be_visible()
    expect(page.get_by_role("button", name="Create job")).to_be_disabled()


def test_a_long_name_fits_on_a_phone(page: Page, service: Service) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/", f"/jobs/{LONG}"):
        page.goto(service.url + path)
        expect(page.get_by_text(f"into default.{LONG}").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        outside = page.evaluate(
            "[...document.querySelectorAll('tbody th, td, h1')].filter(e => e.offsetParent && "
            "e.getBoundingClientRect().right > 390).map(e => e.innerText)"
        )
        assert outside == []


def test_a_path_that_nobody_has_stands_in_the_frame(page: Page, service: Service) -> None:
    answer = httpx.get(f"{service.url}/nothing/here")
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert httpx.get(f"{service.url}/_lading/nothing.css").status_code == 404
