"""Writing a statement with the keyboard: what can be written next is offered, and taken or left."""

from __future__ import annotations

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.console.service import Service


def editor_of(page: Page, service: Service, path: str) -> Locator:
    page.goto(f"{service.url}{path}")
    made = page.locator(".cm-content")
    expect(made).to_have_attribute("aria-label", "Statement")
    made.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    return made


def test_statements_properties_tables_and_columns_are_offered(page: Page, service: Service) -> None:
    asked = {"sql": service.statement().split(";")[0]}
    assert httpx.post(f"{service.url}/api/sql", json=asked, timeout=60).status_code == 200
    editor = editor_of(page, service, "/sql")
    listed = page.locator(".cm-tooltip-autocomplete [role=option]")

    # A statement: chosen with the arrows, taken with Enter.
    page.keyboard.type("create ro")
    expect(listed).to_have_text(["CREATE ROUTINE LOAD", "CREATE ROLE"])
    page.wait_for_timeout(200)  # The editor takes no key for a list that has only now come.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(editor).to_have_text("CREATE ROLE")

    # Tables, then the columns of the one that was chosen.
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT  FROM ord")
    expect(listed).to_have_text(["ordersdelta"])
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    expect(editor).to_have_text("SELECT  FROM orders")
    for _ in range(len(" FROM orders")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.type("am")
    expect(listed).to_have_text(["amountdecimal(10,2)"])
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    expect(editor).to_have_text("SELECT amount FROM orders")

    # Properties of a source, asked for before a letter is typed. Escape leaves them, and nothing was written.
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT * FROM KAFKA(")
    page.keyboard.press("Control+Space")
    expect(listed.filter(has_text='"kafka_topic"')).to_be_visible()
    page.keyboard.press("Escape")
    expect(listed).to_have_count(0)
    expect(editor).to_have_text("SELECT * FROM KAFKA()")
    page.keyboard.type('"kafka_to')
    expect(listed).to_have_text(["kafka_topic"])

    # A word that stands there already: Enter is a new line. With Ctrl it runs.
    page.keyboard.press("Control+a")
    page.keyboard.type("SHOW TABLES")
    page.keyboard.press("Enter")
    expect(page.locator(".cm-line")).to_have_count(2)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("table", name="Answer")).to_contain_text("orders")
