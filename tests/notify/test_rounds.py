"""A webhook, Slack and a mail server are told of each change once, through failures and restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import deltalake
import pytest

from lading.errors import ConfigError, UnavailableError
from lading.jobs.events import BatchFailed, BatchStarted, Tick
from lading.jobs.pausing import pause
from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.jobs.record import JobRecord, JobState
from lading.net.addresses import EVERY_PRIVATE
from lading.net.outgoing import Outgoing
from lading.service.notify.books import load_books
from lading.service.notify.config import NotifySettings, load_notify_settings
from lading.service.notify.receivers import Message, Webhook
from lading.service.notify.rounds import NotifyRounds, raise_event
from lading.service.notify.signals import EventKind, Told
from lading.service.security.redaction import HIDDEN
from lading.settings_around import NotifyVariables
from lading.status.lag import LagUnit
from lading.testing.marked import secret
from tests.http.rig import Rig
from tests.notify.test_signals import AT, JOB, STAYS, tell
from tests.support.certificates import self_signed
from tests.support.hook_server import HookServer, hook_server
from tests.support.mail_server import MailServer, mail_server

CONSOLE = "https://lading.example"
BUCKET_KEY = "what-opens-the-bucket"
"""Not marked: the record of the test has it, because no source was opened that would have hidden it."""


@pytest.fixture
def hooks() -> Iterator[HookServer]:
    with hook_server() as made:
        yield made


def settings(**given: object) -> NotifySettings:
    found = load_notify_settings(replace(NotifyVariables(notify_lag_files=10), **given))  # type: ignore[arg-type]
    assert found
    return found


def rounds(rig: Rig, given: NotifySettings) -> NotifyRounds:
    made = NotifyRounds(rig.lading, given, console_url=CONSOLE, every_s=60)
    rig.lading.watches.extend((rig.metrics, made))
    return made


def fail(rig: Rig, record: JobRecord, *, retry: bool = True) -> JobRecord:
    """A batch that dies, as the loop of the job tells it."""
    code = ReasonCode.INTERNAL_ERR if retry else ReasonCode.CANNOT_RESUME_ERR
    reason = Reason(code=code, message=f"The bucket is away, with {BUCKET_KEY}")
    runner, now = rig.lading.runner(record.job_id), rig.lading.clock.now()
    task = runner.apply(BatchStarted(at=now)).task
    assert task
    return runner.apply(BatchFailed(task_id=task.task_id, failure=Failure(reason=reason, retry=retry), at=now))


def test_a_pause_by_a_person_is_told_once_also_after_a_restart(rig: Rig, hooks: HookServer) -> None:
    rig.create()
    given = settings(notify_webhook_url=hooks.url, notify_webhook_token=secret("hook"))
    telling = rounds(rig, given)
    telling.look()
    assert hooks.requests == []
    rig.sql("PAUSE JOB WHERE jobName = 'orders'")
    telling.look()
    telling.look()
    rounds(rig, given).look()
    [(_, headers, body)] = hooks.requests
    job_id = rig.lading.job("orders").job_id
    assert headers["authorization"] == f"Bearer {secret('hook')}"
    assert (body["kind"], body["job"], body["table"]) == ("paused", "orders", "shop.orders")
    assert (body["id"], headers["idempotency-key"]) == (f"{job_id}/1", f"{job_id}/1")
    assert body["link"] == f"{CONSOLE}/jobs/orders"
    assert body["text"].startswith("Job orders was paused by a person: ")
    rig.sql("RESUME JOB WHERE jobName = 'orders'")
    telling.look()
    assert len(hooks.requests) == 1, "who resumed it knows"


def test_what_nobody_took_is_told_after_a_restart_and_one_receiver_does_not_hold_up_another(
    rig: Rig, hooks: HookServer
) -> None:
    rig.create()
    hooks.status = 503
    with hook_server() as slack:
        given = settings(notify_webhook_url=hooks.url, notify_slack_url=f"{slack.url}/{secret('slack')}")
        first = rounds(rig, given)
        rig.sql("PAUSE JOB WHERE jobName = 'orders'")
        first.look()
        first.look()
        assert (len(hooks.requests), len(slack.requests)) == (1, 1), "the second look waits for 10 seconds"
        [text] = [body["text"] for body in slack.bodies]
        assert text.endswith(f"<{CONSOLE}/jobs/orders|Open the job>")
        assert "Job orders was paused" in text
        [book] = load_books(rig.lading.store).values()
        assert [each.waiting for each in book.pending] == [("webhook",)]
        hooks.status = 200
        rounds(rig, given).look()
        assert (len(hooks.requests), len(slack.requests)) == (2, 1)
        assert hooks.keys[0] == hooks.keys[1]
        [book] = load_books(rig.lading.store).values()
        assert book.pending == ()


def test_a_job_that_fails_and_recovers_is_told_of_twice_and_its_secrets_are_not(rig: Rig, hooks: HookServer) -> None:
    HIDDEN.learn([BUCKET_KEY])
    record = rig.create()
    rig.load(record)
    telling = rounds(rig, settings(notify_webhook_url=hooks.url))
    failed = rig.lading.job("orders")
    for _ in range(9):
        failed = fail(rig, rig.lading.job("orders"))
        if failed.state is JobState.PAUSED:
            break
    assert failed.state is JobState.PAUSED
    telling.batch_ended(failed, "failed", 1.0)
    # It is resumed before the next round, and a batch is committed: the watch has seen the pause.
    runner = rig.lading.runner(record.job_id)
    next_at = failed.auto_resume.next_at
    assert next_at
    resumed = runner.apply(Tick(at=next_at))
    assert resumed.state is not JobState.PAUSED
    telling.auto_resumed(resumed)
    rig.put("a.csv", "1.00")
    rig.load(rig.lading.job("orders"))
    telling.look()
    assert [body["kind"] for body in hooks.bodies] == ["paused", "resumed"]
    assert "The bucket is away" in hooks.bodies[0]["text"]
    assert BUCKET_KEY not in str(hooks.bodies)


def test_late_files_lag_and_columns_are_told(rig: Rig, hooks: HookServer) -> None:
    rig.put("a.csv", "1.00")
    record = rig.create()
    rig.load(record)
    telling = rounds(rig, settings(notify_webhook_url=hooks.url))
    telling.look()
    assert hooks.bodies == []
    for watch in rig.lading.watches:
        watch.files_left_out(record, {"late": 1, "changed": 0}, "not loaded: 0.csv")
    rig.metrics.lag_seen(record, unit=LagUnit.FILES, partitions={"inbox": 12})
    raise_event(rig.lading.watches, record.job_id, EventKind.SCHEMA_CHANGE, "Column note came.", "note")
    telling.look()
    telling.look()
    told = {body["kind"]: body for body in hooks.bodies}
    assert len(hooks.bodies) == 3
    assert (told["late_files"]["value"], told["lag"]["value"], told["schema_change"]["value"]) == (
        "1",
        "12 files",
        "note",
    )
    assert "0.csv" in told["late_files"]["text"]


def test_a_column_that_another_engine_adds_is_told(
    rig: Rig, hooks: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lading.service.notify.rounds.COLUMNS_EVERY_S", -1.0)
    rig.put("a.csv", "1.00")
    rig.load(rig.create())
    telling = rounds(rig, settings(notify_webhook_url=hooks.url, notify_on="schema_change"))
    telling.look()
    table = deltalake.DeltaTable(rig.lading.open_target(rig.lading.job("orders")).location)
    table.alter.add_columns([deltalake.Field("note", deltalake.schema.PrimitiveType("string"))])
    fail(rig, rig.lading.job("orders"))
    telling.look()
    assert [(body["kind"], body["value"]) for body in hooks.bodies] == [("schema_change", "note (string) was added")]


def test_mail_goes_over_starttls_with_a_login(rig: Rig, tmp_path: Path) -> None:
    signed = self_signed(tmp_path)
    rig.create()
    with mail_server(signed.certificate, signed.key) as box:
        mail = mail_settings(
            box, notify_smtp_ca_file=signed.certificate, notify_smtp_user="lading", notify_smtp_password=secret("mail")
        )
        rig.sql("PAUSE JOB WHERE jobName = 'orders'")
        rounds(rig, mail).look()
        assert (box.logins, box.was_encrypted) == ([("lading", secret("mail"))], [True])
        assert box.recipients == ["ada@example.com", "bob@example.com"]
        [sent] = box.mails
        assert sent["Subject"] == "Lading: orders: paused"
        text = sent.get_payload(decode=True)
        assert isinstance(text, bytes)
        assert f"{CONSOLE}/jobs/orders" in text.decode()
        assert text.decode().startswith("Job orders was paused")


def test_a_mail_server_that_nobody_vouches_for_or_without_starttls_gets_nothing(rig: Rig, tmp_path: Path) -> None:
    signed = self_signed(tmp_path)
    rig.create()
    rig.sql("PAUSE JOB WHERE jobName = 'orders'")
    with mail_server(signed.certificate, signed.key) as wrong, mail_server() as plain:
        for box in (wrong, plain):
            rounds(rig, mail_settings(box)).look()
            assert box.mails == []
        [book] = load_books(rig.lading.store).values()
        assert [each.waiting for each in book.pending] == [("email",)]
        rounds(rig, mail_settings(plain, notify_smtp_tls="none")).look()
        assert len(plain.mails) == 1


def mail_settings(box: MailServer, **given: object) -> NotifySettings:
    return settings(
        notify_email_to="ada@example.com, bob@example.com",
        notify_email_from="lading@example.com",
        notify_smtp=f"localhost:{box.port}",
        **given,
    )


def test_it_goes_round_by_itself_wakes_up_and_ends(rig: Rig, hooks: HookServer) -> None:
    rig.create()
    going = NotifyRounds(rig.lading, settings(notify_webhook_url=hooks.url), console_url=CONSOLE, every_s=60)
    came = threading.Event()
    going.start()
    record = rig.lading.job("orders")
    raise_event(rig.lading.watches, record.job_id, EventKind.SCHEMA_CHANGE, "Column note came.", "note")
    for _ in range(200):
        if hooks.requests:
            break
        came.wait(0.05)
    going.close()
    going.close()
    assert [body["value"] for body in hooks.bodies] == ["note"]
    assert going not in rig.lading.watches


def test_a_job_that_is_gone_leaves_nothing_behind(rig: Rig, hooks: HookServer) -> None:
    rig.create()
    telling = rounds(rig, settings(notify_webhook_url=hooks.url))
    rig.sql("PAUSE JOB WHERE jobName = 'orders'")
    telling.look()
    rig.sql("DROP JOB WHERE jobName = 'orders'")
    telling.look()
    assert load_books(rig.lading.store) == {}


def test_addresses_where_clouds_keep_credentials_are_never_told() -> None:
    hook = Webhook(url="http://169.254.169.254/", outgoing=Outgoing(rules=EVERY_PRIVATE, timeout_s=1))
    event = tell(Told(), pause(JOB, STAYS, AT))[1][0]
    with pytest.raises(UnavailableError, match="must not reach"):
        hook.tell(Message(event=event, job="orders", job_id=JOB.job_id, table="t", link="l"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"notify_webhook_url": "ftp://x"}, "LADING_NOTIFY_WEBHOOK_URL is not a URL"),
        ({"notify_webhook_url": "http://x", "notify_on": "paused, tea"}, "not known: tea"),
        ({"notify_slack_url": "https://x", "notify_slack_url_file": Path("/x")}, "are both set"),
        ({"notify_email_to": "ada"}, "LADING_NOTIFY_SMTP is not a mail server"),
        ({"notify_email_to": "ada", "notify_smtp": "m:25", "notify_email_from": "a@b"}, "not an address of e-mail"),
        ({"notify_email_to": "a@b", "notify_smtp": "m:25", "notify_smtp_tls": "maybe"}, "not one of starttls"),
        (
            {
                "notify_email_to": "a@b",
                "notify_smtp": "mail.example:25",
                "notify_smtp_tls": "none",
                "notify_smtp_user": "u",
                "notify_smtp_password": secret("mail"),
            },
            "in the clear",
        ),
        ({"notify_email_to": "a@b", "notify_smtp": "m:25", "notify_smtp_user": "u"}, "go together"),
    ],
)
def test_settings_that_cannot_work_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(**given)


def test_nobody_to_tell_is_no_settings() -> None:
    assert load_notify_settings(NotifyVariables(notify_lag_files=3)) is None
