"""Keys of a job are on no page, whatever is typed, clicked and broken. The service itself listens; see server.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

import boto3
import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from lading.testing.marked import MARK, secret
from tests.console.service import Service, run_service
from tests.console.test_console import SLOW, type_statement
from tests.console.test_login import log_in
from tests.logins import read_root_login
from tests.tables.s3_server import S3Server

KEYS = {"access": secret("console-access"), "key": secret("console-key")}
PASSWORD = secret("console-root")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(tmp_path_factory.mktemp("secrets"), "--users") as made:
        yield made


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 800})
    yield made
    made.close()


def job(s3: S3Server, bucket: str, **keys: str) -> str:
    given = {**KEYS, **keys}
    return (
        "CREATE TABLE IF NOT EXISTS kept (id BIGINT, city VARCHAR(64)) USING delta;\n"
        'CREATE JOB kept PROPERTIES ("max_interval" = "1") ON STREAMING DO\n'
        f'INSERT INTO kept SELECT id, city FROM S3("uri" = "s3://{bucket}/in/*.csv", "format" = "csv_with_names",\n'
        f'"column_separator" = ",", "s3.endpoint" = "{s3.endpoint}", "s3.region" = "us-east-1",\n'
        f'"use_path_style" = "true", "s3.access_key" = "{given["access"]}", "s3.secret_key" = "{given["key"]}");'
    )


def test_no_page_shows_a_key(context: BrowserContext, service: Service, s3: S3Server) -> None:
    owner = {"aws_access_key_id": secret("owner"), "aws_secret_access_key": secret("owner")}
    store = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **owner)
    bucket = s3.make_bucket()
    store.put_object(Bucket=bucket, Key="in/a.csv", Body=b"id,city\n1,essen\n")
    answer = httpx.post(
        f"{service.url}/api/sql",
        json={"sql": f"ALTER USER root IDENTIFIED BY '{PASSWORD}'"},
        auth=read_root_login(service.home),
    )
    assert answer.status_code == 200
    page = context.new_page()
    page.goto(f"{service.url}/new")
    log_in(page, "root", PASSWORD + "x")
    expect(page.locator("strong", has_text="denied")).to_be_visible(timeout=SLOW)
    log_in(page, "root", PASSWORD)
    page.wait_for_url("**/new")

    # Mistakes are said without the keys that stand beside them.
    whole = job(s3, bucket)
    for text, said in (
        (whole.replace("INSERT INTO", "INSERT ONTO"), "mismatched input 'ONTO'"),
        (whole.replace('"format"', '"formt"'), "formt"),
        (whole[:-4], "Line 5"),
        (whole, "The statement is right"),
    ):
        type_statement(page, text)
        expect(page.locator(".ld-banner", has_text=said).first).to_be_visible()
    page.get_by_role("button", name="Create job").click()
    page.wait_for_url("**/jobs/kept")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("1", timeout=SLOW)
    _walk(page)

    # The keys are changed, the bucket goes away: audit and errors do not show them either.
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".ld-badge").first).to_have_text("PAUSED", timeout=SLOW)
    altered = f"ALTER JOB kept {job(s3, bucket, key=secret('another')).partition(' DO')[2].strip().rstrip(';')}"
    answer = httpx.post(f"{service.url}/api/sql", json={"sql": altered}, auth=("root", PASSWORD), timeout=30)
    assert answer.status_code == 200, answer.text
    store.delete_object(Bucket=bucket, Key="in/a.csv")
    store.delete_bucket(Bucket=bucket)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".ld-banner", has_text="GET_REMOTE_DATA_ERROR")).to_be_visible(timeout=SLOW)
    # It is tried again by itself, and the page counts down to it; who cannot wait need not.
    task = page.get_by_role("region", name="What is wrong")
    expect(page.locator(".ld-badge").nth(1)).to_have_text("failing")
    expect(task).to_contain_text(re.compile(r"tr(y|ies) failed\. It is tried again in \d+ s\."), timeout=SLOW)
    expect(task.get_by_role("button", name="Retry now")).to_be_visible()
    _walk(page)
    page.goto(service.url)
    expect(page.locator("tr", has_text="kept").locator(".ld-badge")).to_have_text("failing")
    expect(page.get_by_role("button", name=re.compile("^Failing"))).to_contain_text("1")
    assert MARK not in page.content()
    for path in ("/jobs/kept/edit", "/jobs/kept/commits/1", "/new?from=kept"):
        page.goto(service.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert MARK not in page.content()


def _walk(page: Page) -> None:
    """Every tab of the job, as the browser has it."""
    for tab in page.get_by_role("tab").all():
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        assert MARK not in page.content()
