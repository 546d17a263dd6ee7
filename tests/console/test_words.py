"""Numbers, times and texts as pages show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark import SparkContext

from lading.console import formatting
from lading.console.job_details import end_words
from lading.console.job_plots import rate_lines, without_steps
from lading.console.login_page import inside
from lading.console.new_page import EXAMPLES, draft_of
from lading.console.spark_glance import glance_or_none
from lading.console.statement_check import check_text
from lading.console.step_timings import SILENCE, STEPS, StepMemory
from lading.console.visits import LIFE_S, TICKET_LIFE_S, Visits
from lading.ids import JobId, new_job_id
from lading.jobs.events import Created
from lading.jobs.record import JobKind, JobRecord
from lading.jobs.transition import create_record
from lading.service.security.privileges import ROOT
from lading.service.telemetry.recent import RecentActivity, forget_lag
from lading.service.views.changes import change_words
from lading.service.views.records import AuditView, LagView
from lading.status.lag import Lag, LagUnit
from lading.status.rates import Point
from lading.testing.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_numbers() -> None:
    assert formatting.count(1234567) == "1,234,567"
    assert [formatting.rate(value) for value in (0, 0.01, 1.25, 9999.6)] == ["0", "<0.1", "1.2", "10,000"]
    assert [formatting.size(value) for value in (12, 2048, 5 * 1024**3, 9000 * 1024**4)] == [
        "12 B",
        "2.0 KiB",
        "5.0 GiB",
        "9,000.0 TiB",
    ]
    assert [formatting.took(value) for value in (0.0123, 61.04, 7300.0, None)] == ["12 ms", "61.0 s", "2 h 1 min", "—"]
    assert (formatting.took(0.9996), formatting.size(1_048_575), formatting.size(1023.9)) == (
        "1.0 s",
        "1.0 MiB",
        "1.0 KiB",
    )


def test_lag_has_its_unit() -> None:
    def lag(unit: LagUnit, behind: int | None) -> str:
        return formatting.lag(LagView(unit=unit, behind=behind, at=NOW))

    assert lag(LagUnit.FILES, 1) == "1 file"
    assert lag(LagUnit.RECORDS, 12_000) == "12,000 records"
    assert lag(LagUnit.MILLISECONDS, 1500) == "1.5 s"
    assert lag(LagUnit.FILES, None) == formatting.lag(None) == "—"


GOOD = 'CREATE JOB a ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="/x/*.csv", "format"="csv_with_names")'


def test_a_right_text_says_what_it_would_make() -> None:
    checked = check_text(f"USE shop; {GOOD};")
    assert checked.is_ready
    assert [(job.name, job.target, job.source) for job in checked.jobs] == [("a", "shop.t", "FILE /x/*.csv")]
    assert checked.others == 1


def test_a_wrong_text_says_where() -> None:
    text = GOOD.replace("INSERT INTO", "INSERT ONTO")
    mistake = check_text(text).mistake
    assert mistake is not None
    assert text[mistake.start : mistake.end] == "ONTO"
    assert (mistake.line, mistake.column) == (1, text.index("ONTO") + 1)


@pytest.mark.parametrize("text", ["CREATE", "CREATE JOB a ON STREAMING DO", f"{GOOD}; CREATE JOB", "é'"])
def test_a_text_that_is_not_finished_has_a_place_inside_it(text: str) -> None:
    mistake = check_text(text).mistake
    assert mistake is not None
    assert 0 <= mistake.start < mistake.end <= len(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DROP JOB WHERE jobname = 'a'", "cannot be run here"),
        ("CREATE DATABASE a", "No statement makes a job"),
        (GOOD.replace('"format"="csv_with_names"', '"format"="cobol"'), "cobol"),
        ("CREATE USER a IDENTIFIED BY 'hidden secret words'", "cannot be run here"),
        ("x" * 300_000, "longer than"),
    ],
)
def test_what_the_page_does_not_take(text: str, said: str) -> None:
    mistake = check_text(text).mistake
    assert mistake is not None
    assert said in mistake.message
    assert "hidden secret" not in str(mistake)


def test_no_secret_is_in_what_is_said_of_a_text() -> None:
    text = GOOD.replace('"format"', '"s3.secret_key"="hidden", "format"')
    assert "hidden" not in str(check_text(text.replace("csv_with_names", "cobol")))
    assert "hidden" not in str(check_text(text + " oops"))
    assert "hidden" not in str(check_text(text))


class _Known:
    def misses_table(self, database: str, name: str) -> bool:
        return name == "t"

    def has_job(self, name: str) -> bool:
        return name == "b"


def test_a_name_that_is_taken_is_a_mistake_and_a_table_that_is_missing_a_remark() -> None:
    assert check_text(GOOD, known=_Known()).remarks == (
        "Table default.t does not exist yet. Make it first, here or elsewhere.",
    )
    for text in (GOOD.replace("JOB a", "JOB b"), f"{GOOD}; {GOOD}"):
        mistake = check_text(text, known=_Known()).mistake
        assert mistake is not None
        assert "already" in mistake.message


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_complete(name: str) -> None:
    checked = check_text(EXAMPLES[name], known=_Empty())
    assert (checked.mistake, checked.remarks, len(checked.jobs)) == (None, (), 1)


class _Empty:
    def misses_table(self, database: str, name: str) -> bool:
        return True

    def has_job(self, name: str) -> bool:
        return False


def test_a_text_with_a_secret_is_not_kept_in_the_browser() -> None:
    assert draft_of(GOOD) == GOOD
    assert draft_of(GOOD.replace('"format"', '"s3.secret_key"="hidden", "format"')) == ""
    assert draft_of("CREATE USER a IDENTIFIED BY 'hidden'") == ""


def test_nothing_is_said_of_an_empty_text() -> None:
    checked = check_text(" \n ")
    assert (checked.mistake, checked.is_ready) == (None, False)


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/login", "/a\nb"])
def test_after_the_login_nobody_is_sent_elsewhere(path: str) -> None:
    assert inside(path) == "/"
    assert inside("/jobs/orders") == "/jobs/orders"


def test_a_ticket_opens_once_and_only_for_the_browser_that_logged_in() -> None:
    clock = ManualClock()
    visits = Visits(clock)
    assert visits.redeem(visits.issue_ticket(ROOT, "mine"), "another") is None
    ticket = visits.issue_ticket(ROOT, "mine")
    fresh = visits.redeem(ticket, "mine")
    assert fresh not in (None, "mine")
    assert visits.redeem(ticket, "mine") is None
    assert visits.find(fresh or "") is ROOT
    assert visits.find("mine") is None
    late = visits.issue_ticket(ROOT, "mine")
    clock.sleep(TICKET_LIFE_S + 1)
    assert visits.redeem(late, "mine") is None
    clock.sleep(LIFE_S)
    assert visits.find(fresh or "") is None


def test_steps_of_batches_are_averaged_by_interval() -> None:
    clock, record = ManualClock(), _record()
    memory = StepMemory(clock)
    start = clock.now()
    for seconds in (1.0, 3.0):
        memory.step(record, "plan", 0.5)  # A look that found nothing.
        memory.step(record, "plan", 0.1)
        memory.step(record, "stage", seconds)
        memory.batch_ended(record, "committed", seconds)
    starts = [start, start + timedelta(seconds=10)]
    found = memory.steps(record.job_id, starts, 10.0)
    assert found["stage"] == [2.0, None]
    assert found["plan"][0] == pytest.approx(0.1)
    assert memory.steps(JobId("nobody"), starts, 10.0) == {}


def _record() -> JobRecord:
    event = Created(
        job_id=new_job_id(),
        name="a",
        database="d",
        kind=JobKind.STREAMING,
        definition="",
        target="d.t",
        user="u",
        at=NOW,
    )
    return create_record(event)[0]


def test_rates_are_drawn_as_the_api_tells_them() -> None:
    at = [NOW + timedelta(seconds=30 * number) for number in range(4)]
    rates = [(0.0, 0.0), (2000.0, 1.0), (0.0, 0.0), (12.5, 0.0)]
    points = [Point(at=when, rows_per_s=rows, errors_per_s=bad) for when, (rows, bad) in zip(at, rates, strict=True)]
    rows, bad = rate_lines(points)
    assert [(line.name, line.kind) for line in (rows, bad)] == [("rows", "bar"), ("bad rows", "bar")]
    times = [formatting.millis(when) for when in at]
    assert rows.points == list(zip(times, [None, 2000.0, None, 12.5], strict=True))
    assert bad.points == list(zip(times, [None, 1.0, None, None], strict=True))
    assert [line.name for line in rate_lines(points[2:])] == ["rows"]


def test_what_the_bills_know_is_drawn_where_no_step_is_known() -> None:
    steps = {step: [None, 0.1] for step in STEPS}
    assert without_steps([3.0, 4.0], steps) == [3.0, None]
    assert without_steps([3.0, None], {}) == [3.0, None]


def test_the_newest_lag_is_the_last_point_and_the_others_keep_their_distance() -> None:
    lookout, job_id = RecentActivity(), new_job_id()
    for second in range(0, 100, 10):
        at = NOW + timedelta(seconds=second)
        lookout.saw_lag(job_id, Lag(unit=LagUnit.FILES, partitions={"p": second}, at=at))
        assert lookout.past_lags(job_id)[-1].behind == second
    assert [point.behind for point in lookout.past_lags(job_id)] == [0, 30, 60, 90]
    forget_lag([object(), type("Watch", (), {"lookout": lookout})()], job_id)
    assert lookout.lag(job_id, NOW) is None
    assert lookout.unit(job_id) is LagUnit.FILES


def test_steps_of_jobs_that_are_gone_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.console.step_timings.MOST_JOBS", 2)
    clock = ManualClock()
    memory = StepMemory(clock)
    records = [_record() for _ in range(4)]

    def tell(number: int) -> bool:
        memory.step(records[number], "plan", 1.0)
        memory.batch_ended(records[number], "committed", 1.0)
        return bool(memory.steps(records[number].job_id, [clock.now()], 10.0))

    assert [tell(number) for number in (0, 1, 0, 2)] == [True, True, True, False]
    clock.sleep(SILENCE.total_seconds() + 1)
    assert [tell(number) for number in (2, 3)] == [True, True]
    assert memory.steps(records[0].job_id, [clock.now() - SILENCE * 2], 1e9) == {}


def test_spark_is_never_started_by_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # Other tests of this process may have one.
    assert glance_or_none() is None


def test_a_change_is_told_in_words() -> None:
    def told(**facts: str) -> str:
        return change_words(AuditView(at=NOW, user="u", action="ALTER", subject="a", statement="", facts=facts))

    moved = {"positions": '{"0": ["3", "9"], "1": ["", null]}', "why": "late", "head": "2-7", "epoch": "1"}
    assert told(**moved) == ("position of 0: 3 → 9; position of 1: the beginning → nothing more is read; why: late")
    assert told(changed='{"property max_interval": ["", "5"]}', state="reset") == (
        "property max_interval: (not set) → 5; state: reset"
    )
    assert told(changed="******") == "facts: (not set) → ******"
    assert told() == ""


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"fileName": "/in/a.csv"}', "/in/a.csv"),
        ('{"0": "17", "1": "4"}', "0: 17, 1: 4"),
        ("", ""),
        ("7", "7"),
        ("******", "******"),
    ],
)
def test_the_end_of_a_source_is_told_without_its_json(given: str, shown: str) -> None:
    assert end_words(given) == shown
