"""Moving, taking back, stopping: only what was shown is done, also when the job does not stand still meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator

import deltalake
import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.service import Service, run_service
from tests.console.test_colours import contrast
from tests.console.test_console import SLOW

JSON = {"content-type": "application/json"}
INSIDE = "document.activeElement === document.body || !!document.activeElement.closest('[role=dialog]')"
"""Behind the last button the focus is with the browser for a moment."""

COLOURS = """['.q-notification__message', '.ld-told .q-btn'].map(found => [
  getComputedStyle(document.querySelector(found)).color,
  getComputedStyle(document.querySelector('.ld-told')).backgroundColor])"""


def as_hex(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(tmp_path_factory.mktemp("moves")) as made:
        for name in ("a", "b", "c"):
            made.put(f"{name}.csv", "1.00")
        assert post(made, "/api/sql", {"sql": made.statement()}).status_code == 200
        yield made


def post(service: Service, path: str, body: object = None) -> httpx.Response:
    return httpx.post(service.url + path, json=body, headers=JSON, timeout=30)


def act(service: Service, verb: str) -> None:
    assert post(service, f"/api/jobs/orders/{verb}").status_code == 200


def rows(page: Page, number: int) -> None:
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text(str(number), timeout=SLOW)


def test_two_clicks_pause_once_and_the_focus_stays(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    rows(page, 3)
    page.get_by_role("button", name="Pause").dblclick()
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED")
    expect(page.locator(".ld-told")).to_have_count(1)
    assert all(contrast(*map(as_hex, pair)) >= 4.5 for pair in page.evaluate(COLOURS)), page.evaluate(COLOURS)
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    # Files may wait meanwhile, and nobody counts them.
    expect(page.locator(".ld-tile", has_text="Lag")).to_contain_text("nobody looks while PAUSED")


def test_the_focus_stays_in_the_dialog_which_has_a_name(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    page.get_by_role("button", name="Move position").click()
    dialog = page.get_by_role("dialog", name="Move the position of orders")
    expect(dialog).to_contain_text("the last file that counts as loaded")
    page.wait_for_timeout(600)  # It comes in slowly, and keeps the focus once it is there.
    dialog.get_by_role("button", name="Cancel").focus()
    for _ in range(8):
        page.keyboard.press("Tab")
        page.wait_for_timeout(100)
        assert page.evaluate(INSIDE), page.evaluate("document.activeElement.outerHTML")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_move_that_was_shown_before_the_job_went_on_is_shown_anew(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    page.get_by_role("button", name="Move position").click()
    dialog = page.get_by_role("dialog")
    go, plan = dialog.get_by_role("button", name="Move", exact=True), dialog.get_by_role("table")
    dialog.get_by_role("textbox", name=re.compile("New position of")).fill("a.csv")
    dialog.get_by_role("textbox", name="Why").fill("again")
    dialog.get_by_role("button", name="Show what would happen").click()
    expect(plan.locator('[data-label="Loaded again"]')).to_contain_text("2 files")

    # The page does not look, as if it was a moment too late: the service itself refuses.
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    act(service, "resume")
    service.put("d.csv", "4.00")
    wait_for_rows(service, 4)
    act(service, "pause")
    go.click()
    expect(dialog).to_contain_text("Nothing was moved. This is what the move would do now.")
    expect(plan.locator('[data-label="Loaded again"]')).to_contain_text("3 files")

    # It looks again, and says at once when the job goes on.
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    act(service, "resume")
    expect(dialog.get_by_role("button", name="Pause the job")).to_be_visible()
    expect(go).to_be_disabled()
    dialog.get_by_role("button", name="Pause the job").click()
    dialog.get_by_role("button", name="Show what would happen").click()
    expect(go).to_be_enabled()
    go.click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Move position").click()
    expect(dialog.get_by_role("textbox", name="Why")).to_have_value("")
    dialog.get_by_role("button", name="Cancel").click()


def wait_for_rows(service: Service, number: int) -> None:
    for _ in range(300):
        shown = httpx.get(f"{service.url}/api/jobs/orders").json()
        if shown["job"]["totals"]["rows"]["loaded"] == number:
            return
        httpx.get(f"{service.url}/healthz")
    pytest.fail(f"{number} rows were not loaded")


def test_another_change_than_the_one_that_was_shown_is_not_taken_back(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    page.get_by_role("button", name="Undo last change").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("FORWARD")
    altered = post(service, "/api/sql", {"sql": "ALTER JOB orders PROPERTIES('max_interval'='3')"})
    assert altered.status_code == 200, altered.text
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_contain_text("Nothing was taken back. This would be taken back now.")
    expect(dialog).to_contain_text("max_interval")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_be_hidden()


def test_a_rollback_of_the_table_is_shown_and_accepted(page: Page, service: Service) -> None:
    """RESTORE by somebody else stops the job; the page says what is gone and loads it again."""
    act(service, "resume")
    page.goto(f"{service.url}/jobs/orders")
    expect(page.locator(".ld-badge").first).to_have_text("RUNNING", timeout=SLOW)
    table = deltalake.DeltaTable(str(service.home / "warehouse" / "default" / "orders"))
    table.restore(table.version() - 1)
    service.put("z.csv", "9.00")
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED", timeout=SLOW)
    page.get_by_role("button", name="Accept rollback").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("now ends with")
    dialog.get_by_label("Why").fill("it was meant")
    dialog.get_by_role("button", name="Load again").click()
    expect(page.get_by_role("button", name="Accept rollback")).to_be_hidden()
    act(service, "resume")
    expect(page.locator(".ld-badge").first).to_have_text("RUNNING", timeout=SLOW)
    act(service, "pause")


def test_a_job_is_stopped_for_good_after_a_question(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog", name="Stop orders for good?")
    expect(dialog).to_contain_text("Rows that it loaded stay in the table")
    dialog.get_by_role("button", name="Keep the job").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED")
    # Who goes away and comes back, or is sent the address, finds the tab that was open and the range of the plots.
    page.get_by_role("button", name="6 h").click()
    page.get_by_role("tab", name="Audit").click()
    expect(page.get_by_role("table", name="What people changed")).to_contain_text("CREATE")
    page.get_by_role("link", name="Spark").click()
    page.wait_for_url("**/spark")
    page.go_back()
    expect(page.get_by_role("tab", name="Audit")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("button", name="6 h")).to_have_attribute("aria-pressed", "true")
    assert page.url.endswith("/jobs/orders?range=6h&tab=audit")

    page.get_by_role("button", name="Stop", exact=True).click()
    go, name = dialog.get_by_role("button", name="Stop for good"), dialog.get_by_label("Type orders to go on")
    expect(go).to_be_disabled()
    name.fill("order")
    expect(go).to_be_disabled()
    name.fill("orders")
    go.click()
    expect(page.locator(".ld-badge").first).to_have_text("STOPPED")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
    expect(page.get_by_role("button", name="Move position")).to_be_hidden()


def test_jobs_with_event_time_show_it_in_a_row_of_its_own(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()
    expect(page.locator(".ld-tile", has_text="Watermark").first).to_be_hidden()
    text = service.statement("timed").replace("amount DECIMAL(10,2)", "amount DATETIME").replace("/*.csv", "/t/*.csv")
    text = text.replace('"max_interval" = "1"', '"watermark.column" = "amount", "dedup.keys" = "id"')
    assert post(service, "/api/sql", {"sql": text}).status_code == 200
    page.goto(f"{service.url}/jobs/timed")
    expect(page.locator(".ld-tile", has_text="Watermark").first).to_contain_text("no row yet")
    expect(page.locator(".ld-tile", has_text="Open windows")).to_contain_text("no window is open")
    expect(page.locator(".ld-tile", has_text="Late rows").locator("dd").first).to_have_text("0")
    assert post(service, "/api/jobs/timed/stop").status_code == 200
