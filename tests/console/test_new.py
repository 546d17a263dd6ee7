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
    # What was typed before the secret came may have been kept for a moment.
    page.wait_for_function("sessionStorage.getItem('lading-draft') === null")
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


def test_a_form_leads_from_the_source_to_the_statement(page: Page, service: Service) -> None:
    service.put("guided.csv", "1.00", "2.00")
    page.goto(f"{service.url}/new")
    page.evaluate("sessionStorage.clear()")
    page.goto(f"{service.url}/new")
    page.get_by_text("Guide me").click()
    page.get_by_label("Kind of source").click()
    page.get_by_role("option", name="Files of the machine").click()
    page.get_by_label("Files on the machine of the service").fill(f"{service.inbox}/guided*.csv")
    page.get_by_role("button", name="Test and preview").click()
    expect(page.locator(".ld-banner", has_text="Checked against the source: 3 columns")).to_be_visible()
    expect(page.locator(".ld-banner", has_text="Checked against")).to_contain_text(f"FILE {service.inbox}/guided*.csv")
    expect(page.get_by_role("table", name="The first rows of the source")).to_contain_text("essen")
    page.get_by_label("Name of the new table").fill("guided")
    page.get_by_label("Name of the job").fill("guided")
    expect(page.locator(".cm-content")).to_contain_text("CREATE TABLE IF NOT EXISTS guided")
    expect(page.locator(".ld-banner", has_text="The statement is right")).to_contain_text("Its source was not asked")
    # What was seen is said of the source that was looked at, and of no other.
    page.get_by_label("Files on the machine of the service").fill(f"{service.inbox}/other*.csv")
    expect(page.locator(".ld-banner", has_text="Not checked against the source")).to_be_visible()
    page.get_by_role("button", name="Test and preview").click()
    empty = page.locator(".ld-banner", has_text="The source has no row to look at yet")
    expect(empty).to_contain_text(f"no file matches {service.inbox}/other*.csv")
    expect(page.locator(".ld-banner", has_text="Checked against the source")).to_be_hidden()
    page.get_by_label("Files on the machine of the service").fill("")
    expect(empty).to_be_hidden()
    page.get_by_role("button", name="Test and preview").click()
    expect(page.locator(".ld-banner", has_text="uri is a required property")).to_be_visible()
    page.get_by_label("Files on the machine of the service").fill(f"{service.inbox}/guided*.csv")
    page.get_by_label("Expression for city").fill("upper(city)")
    expect(page.locator(".cm-content")).to_contain_text("SELECT id, upper(city), amount")
    page.get_by_label("Expression for city").fill("city")
    expect(page.locator(".cm-content")).to_contain_text("SELECT id, city, amount")
    # Into a table that is there, its columns are filled by their names, also when the source is looked at again.
    page.get_by_role("combobox", name="Table", exact=True).click()
    page.get_by_role("option", name=f"default.{LONG}").click()
    expect(page.locator(".cm-content")).not_to_contain_text("CREATE TABLE")
    expect(page.locator(".cm-content")).to_contain_text("(id, city, amount)")
    page.get_by_label("Expression for city").fill("lower(city)")
    page.get_by_role("button", name="Test and preview").click()
    expect(page.locator(".ld-banner", has_text="Checked against the source: 3 columns")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("SELECT id, lower(city), amount")
    page.get_by_role("combobox", name="Table", exact=True).click()
    page.get_by_role("option", name="Make a new table").click()
    expect(page.locator(".cm-content")).to_contain_text("CREATE TABLE IF NOT EXISTS guided")
    page.get_by_role("combobox", name="Bad rows").click()
    page.get_by_role("option", name="Bad rows go to quarantine").click()
    expect(page.locator(".cm-content")).to_contain_text('"session.enable_insert_strict" = "false"')
    page.get_by_role("button", name="Create job").click()
    page.wait_for_url("**/jobs/guided")
