"""An error is a task: each of its buttons is pressed, and the job and the table are looked at afterwards."""

from __future__ import annotations

import re
from typing import Any

import httpx
import polars as pl
from playwright.sync_api import Locator, Page, expect

from tests.console.service import Service
from tests.console.test_colours import colours


def run(service: Service, text: str) -> None:
    answer = httpx.post(f"{service.url}/api/sql", json={"sql": text}, timeout=60)
    assert answer.status_code == 200, answer.text


def job_of(service: Service, name: str = "orders") -> dict[str, Any]:
    found = httpx.get(f"{service.url}/api/jobs/{name}", timeout=60).json()["job"]
    assert isinstance(found, dict)
    return found


def amounts(service: Service) -> list[str]:
    """What somebody else reads in the table."""
    table = pl.read_delta(str(service.home / "warehouse" / "default" / "orders"))
    return sorted(str(value) for value in table["amount"])


def task_of(page: Page, service: Service) -> Locator:
    page.goto(f"{service.url}/jobs/orders")
    task = page.get_by_role("region", name="What is wrong")
    expect(task).to_contain_text("bad: column amount cannot be read as decimal(10,2).")
    return task


def test_a_file_that_was_corrected_is_tried_again_by_retry(page: Page, service: Service) -> None:
    run(service, service.statement())
    service.put("a.csv", "1.00", "wrong")
    task = task_of(page, service)
    expect(task.locator(".ld-value")).to_have_text("wrong")
    expect(task).to_contain_text("It does not go on by itself.")
    task.get_by_role("button", name="Edit").click()
    page.wait_for_url("**/jobs/orders/edit")
    expect(page.locator(".cm-content")).to_contain_text("ALTER JOB orders")

    # Tried again while it is as bad as before: the job says so again.
    task = task_of(page, service)
    failed = job_of(service)["batches"]["failed"]
    task.get_by_role("button", name="Retry now").click()
    expect(page.locator(".ld-tile", has_text="Batches")).to_contain_text(f"{failed + 1} failed")
    expect(task).to_be_visible()
    assert job_of(service)["state"] == "PAUSED"

    service.put("a.csv", "1.00", "2.00")
    task.get_by_role("button", name="Retry now").click()
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("2")
    expect(task).to_be_hidden()
    assert amounts(service) == ["1.00", "2.00"]


def test_a_file_is_skipped_and_the_timeline_tells_all_of_it(page: Page, service: Service) -> None:
    service.put("ab.csv", "wrong", "8.00")
    task = task_of(page, service)
    # Files before it by name that came late are not left out with it.
    service.put("aa.csv", "7.00")
    task.get_by_role("button", name="Skip the file").click()
    dialog = page.get_by_role("dialog", name="Skip a file in orders?")
    expect(dialog.locator("pre")).to_have_text(f"{service.inbox}/ab.csv")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert job_of(service)["state"] == "PAUSED"
    task.get_by_role("button", name="Skip the file").click()
    dialog.get_by_role("textbox", name="Why").fill("nobody needs it")
    dialog.get_by_role("button", name="Skip and resume").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".ld-badge").nth(1)).to_have_text("healthy")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("3")
    service.put("ac.csv", "2.50")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("4")
    assert sorted(amounts(service)) == ["1.00", "2.00", "2.50", "7.00"]
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.locator("tbody tr").first).to_contain_text("2 commits, 4 to 5")
    kinds = timeline.locator(".ld-badge").all_text_contents()
    assert kinds[:6] == ["commit", "commit", "resume", "edit", "commit", "failure"]
    expect(timeline).to_contain_text("ab.csv, row 1")
    edit = timeline.locator("tbody tr").filter(has_text="nobody needs it")
    expect(edit).to_contain_text(f'"file.skip" = "{service.inbox}/ab.csv"')
    expect(edit).to_contain_text("anonymous")
    page.get_by_role("tab", name="Audit").click()
    expect(page.get_by_role("table", name="What people changed")).to_contain_text("nobody needs it")


def test_bad_rows_are_shown_and_allowed(page: Page, service: Service) -> None:
    service.put("b.csv", "3.00", "worse")
    task = task_of(page, service)
    task.get_by_role("button", name="Show bad rows").click()
    page.wait_for_url("**/jobs/orders?tab=errors")
    expect(page.get_by_role("table", name="Batches that failed")).to_contain_text("cannot read 'worse'")

    # What is altered is shown first; Escape leaves all as it is.
    task.get_by_role("button", name="Allow bad rows").click()
    dialog = page.get_by_role("dialog", name="Allow bad rows in orders?")
    expect(dialog).to_contain_text('"session.enable_insert_strict" = "false"')
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert job_of(service)["state"] == "PAUSED"

    task.get_by_role("button", name="Allow bad rows").click()
    dialog.get_by_label("Why").fill("the shop knows")
    dialog.get_by_label("Why").press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator(".ld-tile", has_text="Bad rows").locator("dd").first).to_have_text("1")
    expect(task).to_be_hidden()
    assert sorted(amounts(service)) == ["1.00", "2.00", "2.50", "3.00", "7.00"]
    definition = httpx.get(f"{service.url}/api/jobs/orders/definition").json()["definition"]
    assert '"session.enable_insert_strict" = "false"' in definition
    page.get_by_role("tab", name="Audit").click()
    expect(page.get_by_role("table", name="What people changed")).to_contain_text("the shop knows")


def test_the_gravest_comes_first_and_several_are_paused_and_resumed_at_once(page: Page, service: Service) -> None:
    for name in ("alpha", "broken"):
        (service.inbox / name).mkdir()
        run(service, service.statement(name).replace("/*.csv", f"/{name}/*.csv"))
    (service.inbox / "broken" / "x.csv").write_text("id,city,amount\n1,essen,no\n")
    page.goto(service.url)
    health = page.locator("tbody tr .ld-badge")
    expect(health).to_have_text(["needs review", "healthy", "healthy"])
    expect(page.locator("tbody th a")).to_have_text(["broken", "alpha", "orders"])
    for name in ("alpha", "orders"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    chosen = page.get_by_role("group", name="Chosen jobs")
    expect(chosen).to_contain_text("2 jobs chosen")
    chosen.get_by_role("button", name="Pause").click()
    expect(health).to_have_text(["needs review", "paused", "paused"])
    assert [job_of(service, name)["state"] for name in ("alpha", "orders")] == ["PAUSED", "PAUSED"]
    tile = page.get_by_role("button", name=re.compile("^Needs review"))
    tile.click()
    expect(page.locator("tbody th a")).to_have_text(["broken"])
    tile.click()
    chosen.get_by_role("button", name="Resume").click()
    expect(health).to_have_text(["needs review", "healthy", "healthy"])
    # An error stays after it was cured, and says how old it is.
    trouble = page.locator("tbody tr", has_text="into default.orders").locator('[data-label="Last error"]')
    expect(trouble.locator("time")).to_have_text(re.compile(r"now|\d+ (s|min) ago"))
    # All that the filter finds, and no others.
    page.get_by_label("Filter by name, table, state or health").fill("healthy")
    expect(page.locator("tbody tr")).to_have_count(2)
    chosen.get_by_role("button", name="Choose none").click()
    expect(chosen).to_be_hidden()
    page.get_by_role("checkbox", name="Choose alpha").check()
    chosen.get_by_role("button", name="Choose all found").click()
    expect(chosen).to_contain_text("2 jobs chosen")
    expect(page.get_by_role("checkbox", name="Choose orders")).to_be_checked()
    chosen.get_by_role("button", name="Choose none").click()
    expect(chosen).to_be_hidden()


def test_files_that_will_not_be_loaded_are_named(page: Page, service: Service) -> None:
    (service.inbox / "shown").mkdir()
    (service.inbox / "shown" / "b.csv").write_text("id,city,amount\n1,essen,1.00\n")
    text = service.statement("shown").replace("/*.csv", "/shown/*.csv")
    run(service, text.replace('"max_interval"', '"s3.late_files" = "SHOW", "max_interval"'))
    page.goto(f"{service.url}/jobs/shown")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("1")
    # A job that has nothing to do looks for such files once in a minute, and after each commit.
    for name in ("a", "c"):
        (service.inbox / "shown" / f"{name}.csv").write_text("id,city,amount\n2,ulm,2.00\n")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("2")
    expect(page.locator(".ld-badge").nth(1)).to_have_text("late files")
    banner = page.locator(".ld-banner", has_text="Some files are there and will not be loaded")
    expect(banner).to_contain_text("1 file before the position")
    expect(banner).to_contain_text("a.csv")
    run(service, "DROP JOB WHERE jobname = 'shown'")


def test_a_job_whose_folder_is_away_is_tried_again_and_each_try_is_told(page: Page, service: Service) -> None:
    folder = service.inbox / "moved"
    folder.mkdir()
    (folder / "a.csv").write_text("id,city,amount\n1,essen,1.00\n")
    run(service, service.statement("moved").replace("/*.csv", "/moved/*.csv"))
    page.goto(f"{service.url}/jobs/moved")
    loaded = page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first
    expect(loaded).to_have_text("1")
    folder.rename(service.inbox / "elsewhere")
    folder.write_text("somebody moved the folder")
    task = page.get_by_role("region", name="What is wrong")
    expect(page.locator(".ld-badge").nth(1)).to_have_text("failing")
    expect(task).to_contain_text("could not all be listed")
    # The first time it is tried again at once, then after 20 seconds, which are counted down.
    expect(task).to_contain_text(re.compile(r"2 tries failed\. It is tried again in (1\d|20) s"))
    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.locator(".ld-badge").nth(1)).to_have_text("retry")
    assert timeline.locator(".ld-badge").all_text_contents()[:3] == ["pause", "retry", "commit"]
    expect(timeline.locator("tbody tr").nth(1)).to_contain_text("could not all be listed")

    # What is looked at is in the address: the range of the plots and the tab.
    page.get_by_role("group", name="How far back").get_by_text("15 min").click()
    page.get_by_role("tab", name="Errors").click()
    expect(page).to_have_url(re.compile(r"(?=.*range=15min)(?=.*tab=errors)"))
    page.reload()
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("tab", name="Errors")).to_have_attribute("aria-selected", "true")

    folder.unlink()
    (service.inbox / "elsewhere").rename(folder)
    (folder / "b.csv").write_text("id,city,amount\n2,ulm,2.00\n")
    task.get_by_role("button", name="Retry now").click()
    expect(loaded).to_have_text("2")
    expect(task).to_be_hidden()
    run(service, "DROP JOB WHERE jobname = 'moved'")


def test_a_job_that_is_far_behind_is_catching_up_until_it_has_loaded_what_there_is(
    page: Page, service: Service
) -> None:
    """Its batches have one file each, and take a second; then larger ones are chosen."""
    name = "orders_backfill"
    (service.inbox / name).mkdir()
    for number in range(300):
        (service.inbox / name / f"{number:03}.csv").write_text("id,city,amount\n1,essen,1.00\n")
    text = service.statement(name).replace("/*.csv", f"/{name}/*.csv")
    run(
        service,
        text.replace('"max_interval"', '"s3.max_batch_files" = "1", "file.settle_seconds" = "0", "max_interval"'),
    )
    page.goto(f"{service.url}/jobs/{name}")
    expect(page.locator(".ld-badge").nth(1)).to_have_text("catching up")
    expect(page.locator(".ld-badge").nth(0)).to_have_text("RUNNING")
    expect(page.locator(".ld-tile", has_text="Lag")).to_contain_text(re.compile(r"29\d files"))

    # In the list it stands before those that are healthy, and its tile shows it alone.
    page.goto(service.url)
    tile = page.get_by_role("button", name=re.compile("^Catching up"))
    expect(tile).to_contain_text("1")
    row = page.locator("tbody tr", has_text=name)
    expect(row.locator('[data-label="Health"]')).to_contain_text("catching up")
    expect(row.locator('[data-label="Lag"]')).to_contain_text("files")
    tile.click()
    expect(page.locator("tbody th a")).to_have_text([name])
    expect(page).to_have_url(re.compile(r"health=catching"))
    assert job_of(service, name)["health"]["state"] == "catching up"

    run(
        service,
        f'PAUSE JOB WHERE jobname = \'{name}\'; ALTER JOB {name} PROPERTIES ("s3.max_batch_files" = "256"); '
        f"RESUME JOB WHERE jobname = '{name}'",
    )
    page.goto(f"{service.url}/jobs/{name}")
    expect(page.locator(".ld-badge").nth(1)).to_have_text("healthy")
    expect(page.locator(".ld-tile", has_text="Rows loaded").locator("dd").first).to_have_text("300")
    run(service, f"DROP JOB WHERE jobname = '{name}'")


def test_the_end_of_a_job_is_asked_for_by_its_name_with_keys_alone(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/jobs/broken")
    page.get_by_role("button", name="Stop", exact=True).press("Enter")
    dialog = page.get_by_role("dialog", name="Stop broken for good?")
    expect(dialog).to_be_visible()
    red = dialog.get_by_role("button", name="Stop for good")
    expect(red).to_be_disabled()
    typed = dialog.get_by_label("Type broken to go on")
    typed.fill("brokem")
    typed.press("Enter")
    expect(dialog).to_be_visible()
    assert job_of(service, "broken")["state"] == "PAUSED"
    typed.press("Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Stop", exact=True).press("Enter")
    typed.fill("broken")
    expect(red).to_be_enabled()
    bad = bytes.fromhex(colours("light")["bad"][1:])
    expect(red).to_have_css("background-color", f"rgb({bad[0]}, {bad[1]}, {bad[2]})")
    # Somebody else has it open to change it, and is told.
    other = page.context.new_page()
    other.goto(f"{service.url}/jobs/broken/edit")
    expect(other.get_by_role("button", name="Show what would change")).to_be_enabled()
    typed.press("Enter")
    expect(page.locator(".ld-badge").first).to_have_text("STOPPED")
    expect(other.locator(".ld-banner", has_text="The job is STOPPED")).to_contain_text("It has ended")
    expect(other.get_by_role("button", name="Show what would change")).to_be_disabled()
    expect(other.get_by_role("button", name="Pause the job")).to_be_hidden()
    other.close()
