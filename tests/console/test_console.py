"""A person at the console: create, watch, break, fix, move. In a real browser, on a real service."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import deltalake
import httpx
import pytest
from playwright.sync_api import Page, expect
from pyspark import SparkContext

from tests.console.service import Service

SLOW = 30_000
"""Milliseconds until something that a batch has to do must be visible."""


def type_statement(page: Page, text: str) -> None:
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_create_watch_break_fix_and_move(page: Page, service: Service, shots: Path) -> None:
    # Nothing there yet: the list says how to begin.
    page.goto(service.url)
    expect(page.get_by_role("heading", name="There is no job yet")).to_be_visible()
    expect(page.locator("pre")).to_contain_text("CREATE JOB")
    page.screenshot(path=shots / "1-empty.png")

    # A statement with a mistake: said with its place, and it cannot be run.
    page.get_by_role("link", name="Write the first job").click()
    expect(page.get_by_role("button", name="Create job")).to_be_disabled()
    expect(page.get_by_role("textbox", name="Statement")).to_be_visible()
    type_statement(page, service.statement().replace("INSERT INTO", "INSERT ONTO"))
    expect(page.locator(".ld-banner", has_text="Line 3, column 8: mismatched input 'ONTO'")).to_be_visible()
    expect(page.locator(".ld-wrong")).to_have_text("ONTO")
    expect(page.get_by_role("button", name="Create job")).to_be_disabled()
    page.screenshot(path=shots / "2-mistake.png")

    # Corrected, and created.
    type_statement(page, service.statement())
    expect(page.locator(".ld-banner", has_text="The statement is right")).to_be_visible()
    expect(page.locator(".ld-wrong")).to_have_count(0)
    page.get_by_role("button", name="Create job").click()
    page.wait_for_url("**/jobs/orders")
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()

    # Commits come in while somebody watches.
    service.put("a.csv", "1.00", "2.00")
    page.get_by_role("tab", name="Commits").click()
    expect(page.locator('[data-label="Kind"]').filter(has_text="load")).to_have_count(1, timeout=SLOW)
    service.put("b.csv", "3.00")
    expect(page.locator('[data-label="Kind"]').filter(has_text="load")).to_have_count(2, timeout=SLOW)
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("3")
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("commit")
    page.screenshot(path=shots / "3-commits.png")
    page.get_by_role("table", name="Commits").get_by_role("link").first.click()
    page.wait_for_url("**/jobs/orders/commits/2")
    expect(page.get_by_role("region", name="Bill")).to_contain_text('"ranges"')
    expect(page.get_by_role("table", name="Files that it wrote")).to_contain_text(".parquet")
    expect(page.get_by_role("link", name="The next one")).to_have_count(0)
    page.get_by_role("link", name="The one before").click()
    page.get_by_role("link", name="The next one").click()
    page.wait_for_url("**/jobs/orders/commits/2")
    for _ in range(3):
        page.go_back()
    expect(page.get_by_role("tab", name="Commits")).to_have_attribute("aria-selected", "true")

    # A bad file stops it, and says why.
    service.put("c.csv", "4.00", "wrong")
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED", timeout=SLOW)
    problem = page.get_by_role("region", name="What is wrong")
    expect(problem).to_contain_text("1 of 2 rows is bad: column amount cannot be read as decimal(10,2).")
    expect(problem.locator(".ld-value")).to_have_text("wrong")
    expect(problem).to_contain_text("c.csv, row 2")
    expect(page.locator(".ld-badge").nth(1)).to_have_text("needs review")
    problem.get_by_role("button", name="Show bad rows").click()
    expect(page.get_by_role("table", name="Batches that failed")).to_contain_text("cannot read 'wrong'")
    expect(page.get_by_role("table", name="Batches that failed")).to_contain_text('c.csv", "endFileName"')
    page.screenshot(path=shots / "4-broken.png")

    # Moved past the bad file: the dry run first, and only then the button works.
    page.get_by_role("button", name="Move position").click()
    dialog = page.get_by_role("dialog")
    go = dialog.get_by_role("button", name="Move", exact=True)
    expect(go).to_be_disabled()
    dialog.get_by_role("textbox", name=re.compile("New position of")).fill(str(service.inbox / "c.csv"))
    dialog.get_by_role("textbox", name="Why").fill("c.csv is broken")
    expect(go).to_be_disabled()
    dialog.get_by_role("button", name="Show what would happen").click()
    plan = dialog.get_by_role("table", name="What the move would do")
    expect(plan).to_contain_text("FORWARD")
    expect(plan.locator('[data-label="Skipped"]')).to_contain_text("1 file")
    expect(go).to_be_enabled()
    page.screenshot(path=shots / "5-dry-run.png")
    dialog.get_by_role("textbox", name=re.compile("New position of")).press("End")
    page.keyboard.type("x")
    expect(go).to_be_disabled()
    page.keyboard.press("Backspace")
    dialog.get_by_role("button", name="Show what would happen").click()
    go.click()
    expect(dialog).to_be_hidden()
    page.get_by_role("tab", name="Audit").click()
    expect(page.get_by_role("table", name="What people changed")).to_contain_text("ALTER")

    # Taken back, and done again.
    page.get_by_role("button", name="Undo last change").click()
    expect(dialog).to_contain_text("BACK")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_role("table", name="What people changed")).to_contain_text("UNDO ALTER")
    page.get_by_role("button", name="Undo last change").click()
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(dialog).to_be_hidden()

    # On it goes.
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".ld-badge").first).to_have_text("RUNNING", timeout=SLOW)
    service.put("d.csv", "5.00")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("4", timeout=SLOW)
    page.screenshot(path=shots / "6-moved.png", full_page=True)


def test_the_list_follows_without_a_reload_and_a_pause_is_announced(page: Page, service: Service) -> None:
    page.goto(service.url)
    row = page.locator("tr", has_text="orders")
    expect(row.locator(".ld-badge")).to_have_text("healthy", timeout=SLOW)
    page.evaluate("document.querySelector('tbody tr').dataset.mark = 'same'")
    other = page.context.new_page()
    other.goto(f"{service.url}/jobs/orders")
    other.get_by_role("button", name="Pause").click()
    expect(other.locator(".ld-badge").first).to_have_text("PAUSED")
    other.close()
    expect(row.locator(".ld-badge")).to_have_text("paused")
    expect(row).to_contain_text("by a user")
    expect(page.locator("[aria-live=polite]").first).to_have_text("orders is now PAUSED")
    assert page.locator("tbody tr").first.get_attribute("data-mark") == "same"  # Changed in place, not made again.


def test_a_move_of_a_running_job_offers_to_pause_it_first(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Move position").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Show what would happen")).to_be_disabled()
    dialog.get_by_role("button", name="Pause the job").click()
    expect(dialog.get_by_role("button", name="Show what would happen")).to_be_enabled()
    dialog.get_by_role("button", name="Cancel").click()


def test_jobs_are_found_and_sorted(page: Page, service: Service) -> None:
    page.goto(service.url)
    wanted = page.get_by_label("Filter by name, table, state or health")
    wanted.fill("nothing like it")
    expect(page.get_by_text("No job fits the filter.")).to_be_visible()
    expect(page.get_by_text("0 of 1")).to_be_visible()
    wanted.fill("ORD paused")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Rows loaded").click()
    expect(page.get_by_role("columnheader", name="Rows loaded")).to_have_attribute("aria-sort", "descending")
    # What is chosen stands in the address, and comes back from it.
    tile = page.get_by_role("button", name=re.compile("^Paused"))
    tile.click()
    expect(tile).to_have_attribute("aria-pressed", "true")
    page.wait_for_url("**/?q=ORD+paused&sort=rows&order=down&health=paused")
    page.reload()
    expect(tile).to_have_attribute("aria-pressed", "true")
    expect(wanted).to_have_value("ORD paused")
    expect(page.get_by_role("columnheader", name="Rows loaded")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name=re.compile("^Failing")).click()
    expect(page.get_by_text("No job fits the filter.")).to_be_visible()
    # A job is resumed in its row, and several at once by their boxes.
    page.goto(service.url)
    page.get_by_role("button", name="Resume orders").click()
    expect(page.locator("tbody tr .ld-badge")).to_have_text("healthy")
    page.get_by_role("checkbox", name="Choose orders").check()
    chosen = page.get_by_role("group", name="Chosen jobs")
    expect(chosen).to_contain_text("1 job chosen")
    chosen.get_by_role("button", name="Pause").click()
    expect(page.locator("tbody tr .ld-badge")).to_have_text("paused")


def test_a_job_is_edited_with_the_change_shown_first_and_copied(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    page.get_by_role("link", name="Edit").click()
    expect(page.locator(".cm-content")).to_contain_text("ALTER JOB orders")
    go = page.get_by_role("button", name="Apply")
    expect(go).to_be_disabled()
    page.get_by_role("button", name="Show what would change").click()
    expect(page.locator(".ld-banner", has_text="No properties or sql changed")).to_be_visible()
    type_statement(page, "DROP JOB WHERE jobname = 'orders'")
    page.get_by_role("button", name="Show what would change").click()
    expect(page.locator(".ld-banner", has_text="The text is not one ALTER of orders")).to_be_visible()
    type_statement(page, 'ALTER JOB orders PROPERTIES ("max_interval" = "2")')
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("region", name="What would change")).to_contain_text("max_interval")
    go.click()
    page.wait_for_url("**/jobs/orders")
    page.get_by_role("link", name="Duplicate").click()
    expect(page.locator(".cm-content")).to_contain_text("CREATE JOB orders_copy")
    expect(page.locator(".ld-banner", has_text="The statement is right")).to_be_visible()
    definition = httpx.get(f"{service.url}/api/jobs/orders/definition").json()["definition"]
    assert '"max_interval" = "2"' in definition


def test_pages_that_are_not_there(page: Page, service: Service) -> None:
    for path in ("nobody", "nobody/edit", "nobody/commits/1"):
        answer = httpx.get(f"{service.url}/jobs/{path}")
        assert (answer.status_code, "There is no such job" in answer.text) == (404, True)
    for seq in ("999", "-1", "x", "9" * 30, "²"):
        answer = httpx.get(f"{service.url}/jobs/orders/commits/{seq}")
        assert (answer.status_code, "There is no such commit" in answer.text) == (404, True)
    assert httpx.get(f"{service.url}/api/nobody").json()["error"]["code"] == "NoSuchPath"
    strange = httpx.get(f"{service.url}/jobs/%3C%2Ftitle%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert "<script>alert" not in strange.text
    assert httpx.get(f"{service.url}/healthz").status_code == 200
    assert "lading_up" in httpx.get(f"{service.url}/metrics").text


def test_spark_is_not_started_by_looking(page: Page, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # Other tests of this process may have one.
    page.goto(f"{service.url}/spark")
    expect(page.get_by_text("Spark is not running")).to_be_visible()
    expect(page.get_by_text("looks after")).to_be_visible()


def test_a_table_is_shown_and_statements_are_answered(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/tables")
    page.get_by_role("link", name="default.orders").click()
    expect(page.get_by_role("table", name="Columns")).to_contain_text("decimal(10,2)")
    newest = page.get_by_role("table", name="History, newest first").locator("tbody tr").first
    table = deltalake.DeltaTable(str(service.home / "warehouse" / "default" / "orders"))
    expect(newest.get_by_role("rowheader")).to_have_text(str(table.version()))
    told = table.history(1)[0]
    expect(newest.get_by_role("link", name="orders")).to_be_visible()
    expect(newest.locator('[data-label="Commit"] a')).to_have_text(str(told["lading.seq"]))
    page.get_by_text("Polars", exact=True).click()
    expect(page.get_by_label("To read it with Polars")).to_contain_text("scan_delta")
    # A query that comes with the address stands in the box, and nobody has run it.
    page.get_by_role("link", name="First rows").click()
    expect(page.locator(".cm-content")).to_contain_text("SELECT * FROM default.orders LIMIT 20")
    expect(page.get_by_role("region", name="Answer")).to_have_count(0)
    type_statement(page, "SHOW TABLES; DROP TABLE nothing_like_it")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".ld-banner[data-tone=bad]")).to_contain_text("Statements done before it: 1.")
    type_statement(page, "SELECT 'a<b>' AS x")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("table", name="Answer")).to_contain_text("a<b>")
    expect(page.locator(".ld-banner[data-tone=bad]")).to_have_count(0)


@pytest.mark.parametrize("path", ["/", "/jobs/orders", "/new", "/spark"])
def test_every_page_fits_and_can_be_read_in_words(page: Page, service: Service, shots: Path, path: str) -> None:
    page.goto(service.url + path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".ld-theme")).to_have_text("Theme: auto")
    if path == "/jobs/orders":
        expect(page.locator("canvas")).to_have_count(4)
        expect(page.locator(".ld-badge").first).to_have_text("PAUSED")
        expect(page.locator(".ld-chart").first).to_have_attribute("aria-label", re.compile("Rows per second, at most"))
    for width in (1920, 1280, 768, 390):
        for theme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            name = path.strip("/").replace("/", "-") or "jobs"
            page.screenshot(path=shots / f"{name}-{width}-{theme}.png", full_page=True)
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3')].filter(h => h.offsetParent).map(h => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button,a,input')].filter(e => e.checkVisibility() && !e.innerText.trim() "
        "&& !e.getAttribute('aria-label') && !e.closest('label') && !e.labels?.length).map(e => e.outerHTML)"
    )
    assert unnamed == []
    assert page.evaluate("document.querySelectorAll('main:not([role=presentation])').length") == 1
    faint = [name for name in focus_all(page) if name]
    assert faint == []


def focus_all(page: Page) -> list[str]:
    """What gets the focus by key without looking any different."""
    seen, faint = 0, list[str]()
    page.keyboard.press("Tab")
    while seen < 40 and page.evaluate("document.activeElement !== document.body"):
        seen += 1
        faint.append(
            page.evaluate(
                "(() => { const e = document.activeElement, s = getComputedStyle(e);"
                "const box = e.closest('.q-field__control, .cm-editor') || e;"
                "const shows = s.outlineStyle !== 'none' || (s.boxShadow !== 'none' && !/ 0px 0px 0px 0px$/.test("
                "s.boxShadow)) || box !== e; return shows ? '' : e.outerHTML.slice(0, 200); })()"
            )
        )
        if page.evaluate("!!document.activeElement.closest('.cm-editor')"):
            page.keyboard.press("Escape")
        page.keyboard.press("Tab")
    assert seen > 5
    return faint


def test_the_theme_is_chosen_and_kept(page: Page, service: Service) -> None:
    page.goto(service.url)
    switch = page.locator(".ld-theme")
    expect(switch).to_have_text("Theme: auto")
    switch.click()
    switch.click()
    expect(switch).to_have_text("Theme: dark")
    page.reload()
    expect(switch).to_have_text("Theme: dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("body")).to_have_class(re.compile("body--dark"))


def test_a_hidden_tab_asks_for_nothing(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/orders")
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(500)
    httpx.post(f"{service.url}/api/jobs/orders/resume", headers={"content-type": "application/json"})
    page.wait_for_timeout(3000)
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    expect(page.locator(".ld-badge").first).not_to_have_text("PAUSED")


def test_keyboard_alone_reaches_the_first_job(page: Page, service: Service) -> None:
    page.goto(service.url)
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "orders":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/orders")
