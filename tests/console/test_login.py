"""Who gets in, and what they see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from lading.console.new_page import NOT_ASKED
from lading.testing.marked import secret
from tests.console.service import Service, run_service
from tests.console.test_console import type_statement
from tests.logins import read_root_login

SETUP = f"""
CREATE DATABASE shop;
CREATE USER jack IDENTIFIED BY '{secret("jack")}';
CREATE USER eve IDENTIFIED BY '{secret("eve")}';
GRANT LOAD ON shop.orders TO jack;
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(tmp_path_factory.mktemp("users"), "--users") as made:
        made.put("a.csv", "1.00")
        run(made, SETUP + "USE shop;" + made.statement())
        yield made


def run(service: Service, text: str, auth: tuple[str, str] | None = None) -> None:
    login = auth or read_root_login(service.home)
    answer = httpx.post(f"{service.url}/api/sql", json={"sql": text}, auth=login, timeout=30)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 800})
    yield made
    made.close()


def log_in(page: Page, user: str, password: str) -> None:
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_label("Password").press("Enter")


def test_root_comes_in_with_the_password_of_the_file_and_only_by_the_name_of_the_service(
    context: BrowserContext, service: Service
) -> None:
    page = context.new_page()
    page.goto(service.url)
    page.wait_for_url("**/login?next=%2F")
    log_in(page, *read_root_login(service.home))
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    # A name of another site that points to this machine is not let in.
    port = service.url.rsplit(":", 1)[1]
    refused = httpx.get(service.url, headers={"host": f"rebound.example:{port}"})
    assert refused.status_code == 421


def test_with_a_password_everybody_logs_in(context: BrowserContext, service: Service, shots: Path) -> None:
    run(service, f"ALTER USER root IDENTIFIED BY '{secret('root')}'")
    before = context.new_page()
    before.goto(f"{service.url}/jobs/orders")
    before.wait_for_url("**/login?next=%2Fjobs%2Forders")
    before.screenshot(path=shots / "login.png")
    cookie = next(kept for kept in context.cookies() if kept["name"].startswith("lading_"))
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"

    voice = before.locator("[aria-live=polite]").first
    said = list[str]()
    for _ in range(2):
        log_in(before, "jack", "wrong")
        expect(before.get_by_text("Access denied for user 'jack'").last).to_be_visible()
        expect(before.get_by_role("button", name="Log in")).to_be_enabled()
        expect(voice).not_to_have_js_property("textContent", said[0] if said else "")
        said.append(voice.text_content() or "")
    log_in(before, "jack", "")
    expect(before.get_by_text("Give a password").last).to_be_visible()
    expect(voice).to_have_text("Give a password")
    log_in(before, "jack", secret("jack"))
    before.wait_for_url("**/jobs/orders")
    expect(before.locator("header")).to_contain_text("jack")
    after = next(kept for kept in context.cookies() if kept["name"] == cookie["name"])
    assert after["value"] != cookie["value"]
    assert httpx.get(service.url, cookies={cookie["name"]: cookie["value"]}).status_code == 303

    # What is taken away is gone at once, and so is the visit after logging out.
    run(service, "REVOKE LOAD ON shop.orders FROM jack", ("root", secret("root")))
    expect(before.get_by_text("There is no such job")).to_be_visible()  # Also from a page that is open.
    expect(before.locator(".ld-tiles, canvas")).to_have_count(0)
    run(service, "GRANT LOAD ON shop.orders TO jack", ("root", secret("root")))
    before.goto(f"{service.url}/jobs/orders")
    other = context.new_page()
    other.goto(service.url)
    other.locator(".ld-menu summary").click()
    other.get_by_role("button", name="Log out").click()
    other.wait_for_url("**/login")
    before.wait_for_url("**/login?next=%2Fjobs%2Forders")


def test_without_load_a_job_is_not_there_and_cannot_be_made(context: BrowserContext, service: Service) -> None:
    page = context.new_page()
    page.goto(service.url)
    log_in(page, "eve", secret("eve"))
    expect(page.get_by_role("heading", name="There is no job that you may see")).to_be_visible()
    page.goto(f"{service.url}/jobs/orders")
    expect(page.get_by_role("heading", name="There is no such job")).to_be_visible()
    page.goto(f"{service.url}/new")
    page.locator(".cm-content").click()
    statement = service.statement().split(";", 1)[1].replace("JOB orders", "JOB mine").replace("orders", "shop.orders")
    page.keyboard.insert_text(statement)
    page.get_by_role("button", name="Create job").click()
    expect(page.locator(".ld-banner", has_text="LOAD command denied to user 'eve'")).to_be_visible()
    # Whether a table or a job is there is not said either.
    for other in ("shop.orders", "shop.nothing"):
        type_statement(page, statement.replace("shop.orders", other))
        expect(page.locator(".ld-facts", has_text=other)).to_be_visible()
        right = page.locator(".ld-banner", has_text="The statement is right")
        expect(right).to_have_text(f"The statement is right{NOT_ASKED}")
    page.goto(f"{service.url}/spark")
    expect(page.get_by_text("looks after 0 jobs of yours")).to_be_visible()


def test_a_page_of_another_site_cannot_open_the_socket(service: Service) -> None:
    path = f"{service.url}/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    assert httpx.get(path, headers={"origin": service.url}).status_code == 200
    assert httpx.get(path, headers={"origin": "https://evil.example"}).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/jobs/orders",
        "/jobs/orders/edit",
        "/jobs/orders/commits/1",
        "/new",
        "/tables",
        "/tables/shop.orders",
        "/sql",
        "/tokens",
        "/help",
        "/spark",
        "/audit",
    ],
)
def test_no_page_is_shown_to_strangers(service: Service, path: str) -> None:
    answer = httpx.get(service.url + path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert httpx.get(f"{service.url}/login/enter?ticket=guessed").headers["location"] == "/login"


def test_an_open_page_ends_with_a_new_password_and_with_its_user(context: BrowserContext, service: Service) -> None:
    root = ("root", secret("root"))
    run(service, f"CREATE USER mary IDENTIFIED BY '{secret('mary')}'", root)
    page = context.new_page()
    page.goto(service.url)
    for text, password in (
        (f"ALTER USER mary IDENTIFIED BY '{secret('mary 2')}'", secret("mary")),
        (f"DROP USER mary; CREATE USER mary IDENTIFIED BY '{secret('mary 2')}'", secret("mary 2")),
    ):
        log_in(page, "mary", password)
        expect(page.locator("header")).to_contain_text("mary")
        page.goto(f"{service.url}/new")
        expect(page.locator("header")).to_contain_text("mary")
        run(service, text, root)
        page.wait_for_url("**/login?**", timeout=10_000)
        assert page.request.get(service.url, max_redirects=0).status == 303


def test_what_was_written_before_the_page_was_connected_counts(context: BrowserContext, service: Service) -> None:
    page = context.new_page()
    page.goto(service.url)
    expect(page.get_by_label("Password")).to_be_visible()
    # What is sent now reaches nobody.
    page.evaluate("() => { window.kept = window.socket.emit; window.socket.emit = () => window.socket }")
    page.get_by_label("User").fill("root")
    page.get_by_label("Password").fill(secret("root"))
    page.evaluate("() => { window.socket.emit = window.kept }")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("link", name="Audit")).to_be_visible()


def test_the_audit_page_shows_who_did_what_and_to_others_their_own(
    context: BrowserContext, service: Service, shots: Path
) -> None:
    root = ("root", secret("root"))
    run(service, f"CREATE USER ann IDENTIFIED BY '{secret('ann')}'; GRANT SELECT ON shop.* TO ann", root)
    page = context.new_page()
    page.goto(f"{service.url}/audit")
    log_in(page, "ann", "wrong")
    expect(page.get_by_text("Access denied for user 'ann'").last).to_be_visible()
    log_in(page, *root)
    page.wait_for_url("**/audit")
    rows = page.locator("tbody tr")
    expect(rows.filter(has_text="GRANT SELECT ON shop.* TO 'ann'").filter(has_text="http")).to_have_count(1)
    expect(rows.filter(has_text="CREATE USER 'ann' IDENTIFIED BY '******'")).to_have_count(1)
    expect(rows.first).to_contain_text("console")
    page.screenshot(path=shots / "audit.png", full_page=True)
    page.get_by_label("User").fill("ann")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("denied")
    expect(rows.first).to_contain_text("127.0.0.1")
    page.get_by_label("User").fill("root")
    page.get_by_label("Kind").click()
    page.get_by_role("option", name="account").click()
    expect(rows.filter(has_text="GRANT SELECT ON shop.* TO 'ann'")).to_have_count(1)
    expect(rows.filter(has_text="login")).to_have_count(0)
    # The address has what was chosen, for who is sent it.
    page.wait_for_url("**/audit?user=root&kind=account")
    page.reload()
    expect(page.get_by_label("User")).to_have_value("root")
    expect(rows.filter(has_text="GRANT SELECT ON shop.* TO 'ann'")).to_have_count(1)
    expect(rows.filter(has_text="login")).to_have_count(0)
    context.clear_cookies()
    page.goto(f"{service.url}/audit")
    log_in(page, "ann", secret("ann"))
    expect(page.get_by_text("These are your own")).to_be_visible()
    expect(rows.filter(has_text="root")).to_have_count(0)
    expect(rows).to_have_count(2)


def test_a_token_is_made_used_and_dropped_from_the_menu(context: BrowserContext, service: Service) -> None:
    page = context.new_page()
    page.goto(service.url)
    log_in(page, "jack", secret("jack"))
    menu, listed = page.get_by_label("Menu of jack"), page.locator(".ld-menu-list")
    menu.press("Enter")
    expect(listed.get_by_role("link", name="Help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    page.get_by_role("heading", level=1).click()
    expect(listed).to_be_hidden()
    menu.click()
    listed.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens")
    expect(page.get_by_text("There is no token.")).to_be_visible()
    page.get_by_label("What it is for").fill("a report")
    page.get_by_label("What it is for").press("Enter")
    shown = page.get_by_label("The new token")
    expect(shown).to_be_visible()
    expect(page.get_by_role("table", name="Tokens")).to_contain_text("a report")
    token = {"authorization": f"Bearer {shown.text_content()}"}
    assert httpx.get(f"{service.url}/api/jobs/orders", headers=token).status_code == 200
    # It only reads.
    answer = httpx.post(f"{service.url}/api/jobs/orders/pause", headers={**token, "content-type": "application/json"})
    assert answer.status_code == 403

    # Dropped by its id, and by no other.
    page.get_by_role("button", name=re.compile("^Drop token")).click()
    dialog = page.get_by_role("dialog")
    token_id = (dialog.get_by_role("heading").text_content() or "").removeprefix("Drop token ").rstrip("?")
    typed = dialog.get_by_label("Type the id of the token to go on")
    typed.fill("another")
    typed.press("Enter")
    expect(dialog.get_by_role("button", name="Drop")).to_be_disabled()
    typed.fill(token_id)
    expect(dialog.get_by_role("button", name="Drop")).to_be_enabled()
    typed.press("Enter")
    expect(page.get_by_text("There is no token.")).to_be_visible()
    assert httpx.get(f"{service.url}/api/jobs/orders", headers=token).status_code == 401
    expect(shown).to_be_hidden()
    page.reload()
    expect(page.get_by_label("The new token")).to_be_hidden()  # It was shown once.
    menu.click()
    listed.get_by_role("link", name="Help").click()
    page.wait_for_url("**/help")
    expect(page.get_by_role("main")).to_contain_text("It waits for a person to decide")
