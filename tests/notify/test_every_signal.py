"""A pause, late files, lag and new columns, as they come about: each reaches the webhook, Slack and the mail."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pytest

from lading.service.notify.rounds import NotifyRounds
from lading.service.telemetry.metrics import Metrics
from tests.console.local import LocalLading
from tests.notify.test_rounds import CONSOLE, settings
from tests.support.hook_server import HookServer, hook_server
from tests.support.mail_server import MailServer, mail_server

MAKE = (
    "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT, city STRING) USING delta; "
    'CREATE JOB orders PROPERTIES ("s3.late_files" = "SHOW", "s3.max_batch_files" = "1") ON STREAMING DO '
    "INSERT INTO shop.orders SELECT id, city "
    'FROM FILE("uri" = "{}/*.csv", "format" = "csv_with_names", "column_separator" = ",")'
)
SAID = {
    "lag": "files",
    "late_files": "a.csv",
    "schema_change": "note (string) was added",
    "paused": "was paused by a person",
}


def put(inbox: Path, name: str) -> None:
    inbox.mkdir(exist_ok=True)
    (inbox / name).write_text("id,city\n1,essen\n")


def provoke(lading: LocalLading, telling: NotifyRounds, inbox: Path) -> None:
    """Everything that people want to hear of, by files, statements and another engine."""
    telling.look()
    for number in range(4):
        put(inbox, f"m{number}.csv")
    lading.run(on_progress=lambda *_: telling.look())
    put(inbox, "a.csv")
    lading.run()
    telling.look()
    table = deltalake.DeltaTable(lading.open_target(lading.job("orders")).location)
    table.alter.add_columns([deltalake.Field("note", deltalake.schema.PrimitiveType("string"))])
    put(inbox, "n.csv")
    lading.run()
    telling.look()
    lading.sql("PAUSE JOB WHERE jobName = 'orders'")
    telling.look()


def mailed(box: MailServer) -> list[tuple[str, str]]:
    found = []
    for mail in box.mails:
        text = mail.get_payload(decode=True)
        assert isinstance(text, bytes)
        found.append((str(mail["Subject"]).rpartition(": ")[2].replace(" ", "_"), text.decode()))
    return found


def test_every_signal_reaches_every_receiver_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.service.notify.rounds.COLUMNS_EVERY_S", -1.0)
    inbox = tmp_path / "in"
    with hook_server() as hooks, hook_server() as slack, mail_server() as box:
        given = settings(
            notify_webhook_url=hooks.url,
            notify_slack_url=slack.url,
            notify_email_to="ada@example.com",
            notify_email_from="lading@example.com",
            notify_smtp=f"localhost:{box.port}",
            notify_smtp_tls="none",
            notify_lag_files=3,
        )
        with LocalLading(tmp_path / "home", user="tester") as lading:
            lading.sql(MAKE.format(inbox))
            telling = NotifyRounds(lading, given, console_url=CONSOLE, every_s=60)
            lading.watches.extend((Metrics(lading.store, lading.clock, audit=lading.audit), telling))
            provoke(lading, telling, inbox)
        check_told(hooks, slack, box)


def check_told(hooks: HookServer, slack: HookServer, box: MailServer) -> None:
    texts = {body["kind"]: body["text"] for body in hooks.bodies}
    assert [body["kind"] for body in hooks.bodies] == list(SAID)
    for kind, words in SAID.items():
        assert words in texts[kind], kind
    assert mailed(box) == [(kind, f"{text}\n\n{CONSOLE}/jobs/orders") for kind, text in texts.items()]
    link = f"<{CONSOLE}/jobs/orders|Open the job>"
    assert [body["text"] for body in slack.bodies] == [f"{text} {link}" for text in texts.values()]
