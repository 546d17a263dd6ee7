"""The audit log itself: its file, what is left out, what is lost, and what is kept of a text."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.service.security.audit_event import AuditEvent, EventKind, EventResult, parse_event_or_none, render_event
from lading.service.security.audit_file import AuditFile
from lading.service.security.audit_log import MOST_REFUSED_OF_ONE, AuditLog
from lading.service.security.audit_text import unparsed_text
from lading.service.security.origin import Face, Origin
from lading.settings import AuditSettings, load_settings
from lading.testing.clock import ManualClock
from lading.testing.marked import MARK, secret

KEY = secret("of the audit log")
FROM_HTTP = Origin(face=Face.HTTP, peer="10.0.0.5")


def event(what: str, clock: ManualClock | None = None) -> AuditEvent:
    at = (clock or ManualClock()).now()
    return AuditEvent(at=at, kind=EventKind.STATEMENT, result=EventResult.OK, user="ann", what=what)


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path / "audit", ManualClock(), AuditSettings())


@given(text=st.text(), user=st.text())
def test_an_event_is_one_line_whatever_is_in_it(text: str, user: str) -> None:
    told = AuditEvent(
        at=ManualClock().now(), kind=EventKind.ACCOUNT, result=EventResult.DENIED, user=user, what=text, error="Denied"
    )
    line = render_event(told)
    assert len(line.decode("ascii").splitlines()) == 1
    assert parse_event_or_none(line) == told


def test_files_are_private_and_rotate_by_size_and_number(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit", most_bytes=100, files=3)
    for number in range(20):
        file.append(b"%030d\n" % number)
    names = sorted(path.name for path in (tmp_path / "audit").iterdir())
    assert names == ["audit.log", "audit.log.1", "audit.log.2"]
    for path in (tmp_path / "audit").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_size <= 100
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
    kept = [int(line) for line in file.newest_first()]
    assert kept == list(range(19, 19 - len(kept), -1))
    assert len(kept) > 6


def test_a_file_that_was_moved_away_is_begun_again(tmp_path: Path) -> None:
    file = AuditFile(tmp_path, most_bytes=10_000, files=2)
    file.append(b"one\n")
    (tmp_path / "audit.log").rename(tmp_path / "elsewhere")
    file.append(b"two\n")
    assert (tmp_path / "audit.log").read_bytes() == b"two\n"
    assert (tmp_path / "elsewhere").read_bytes() == b"one\n"


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "audit.log").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic"):
        AuditFile(tmp_path, most_bytes=100, files=2).append(b"line\n")
    assert not (tmp_path / "victim").exists()


def test_lines_are_read_backwards_over_blocks_while_others_write(tmp_path: Path) -> None:
    file = AuditFile(tmp_path, most_bytes=300_000, files=3)
    lines = [b"%d %s" % (number, b"x" * (number % 5000)) for number in range(120)]
    for line in lines:
        file.append(line + b"\n")
    reading = file.newest_first()
    first = next(reading)

    def write() -> None:
        for _ in range(700):
            file.append(b"y" * 1000 + b"\n")

    writer = threading.Thread(target=write)
    writer.start()
    assert [first, *reading] == lines[::-1]
    writer.join()


def test_a_full_disk_stops_nobody_and_is_counted(
    log: AuditLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log.record(event("before"))
    real = os.write

    def full(descriptor: int, content: bytes) -> int:
        if b"lost" in bytes(content):
            real(descriptor, bytes(content)[:20])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    with caplog.at_level(logging.ERROR):
        log.record(event("lost 1"))
        log.record(event("lost 2"))
    monkeypatch.undo()
    log.record(event("after"))
    assert log.lost == 2
    assert [record.getMessage() for record in caplog.records] == [
        "The audit log cannot be written: No space left on device. 1 events are lost; the service goes on"
    ]
    assert [kept.what for kept in log.newest_first()] == ["after", "before"]


def test_a_service_whose_log_cannot_be_made_still_answers(tmp_path: Path) -> None:
    with Lading(tmp_path / "home") as lading:
        folder = tmp_path / "home" / "audit"
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("in the way")
        before = lading.audit.lost
        assert lading.sql("SHOW DATABASES")[0].rows == (("default",),)
        assert lading.audit.lost == before + 1


def test_guessing_does_not_fill_the_log_and_is_counted(log: AuditLog, tmp_path: Path) -> None:
    clock = ManualClock()
    log = AuditLog(tmp_path, clock, AuditSettings())
    for number in range(MOST_REFUSED_OF_ONE + 40):
        log.login(f"user{number}", FROM_HTTP, "password", result=EventResult.DENIED, error="Auth")
    assert len(list(log.newest_first())) == MOST_REFUSED_OF_ONE
    clock.sleep(61)
    log.login("ann", FROM_HTTP, "password", result=EventResult.DENIED, error="Auth")
    assert next(log.newest_first()).repeats == 40
    assert log.failed_logins[Face.HTTP] == MOST_REFUSED_OF_ONE + 41
    assert log.events[EventKind.LOGIN, EventResult.DENIED] == MOST_REFUSED_OF_ONE + 41


def test_a_client_that_proves_itself_with_every_request_is_one_login(tmp_path: Path) -> None:
    clock = ManualClock()
    log = AuditLog(tmp_path, clock, AuditSettings())
    for _ in range(50):
        log.login("prometheus", FROM_HTTP, "token t1")
        log.login("ann", Origin(face=Face.MYSQL, peer="10.0.0.6"), "password")
    assert [kept.user for kept in log.newest_first()].count("prometheus") == 1
    assert [kept.user for kept in log.newest_first()].count("ann") == 50
    clock.sleep(601)
    log.login("prometheus", FROM_HTTP, "token t1")
    assert next(log.newest_first()).repeats == 49


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"{KEY}", f"({len(KEY)} characters that are no statement)"),
        (f"CREATE USER ann IDENTIFIED WITH x AS {KEY}", "CREATE USER ******"),
        (f"ALTER USER root {KEY}", "ALTER USER ******"),
        (f"SET PASSWORD FOR ann = PASSWORD({KEY})", "SET PASSWORD ******"),
        (f"CREATE JOB j PROPERTIES ('s3.secret_key' = '{KEY}", "CREATE JOB j PROPERTIES ('******' = '******'"),
        (f"CREATE JOB j s3.secret_key {KEY}", "CREATE JOB j s3.secret_key ******"),
        (
            f'SELECT `timestampdiff` FRM t -- {KEY}\nWHERE x = "{KEY}"',
            'SELECT `timestampdiff` FRM t  \nWHERE x = "******"',
        ),
        (f"SELECT '{KEY}''{KEY}\\'{KEY}' FRM", "SELECT '******' FRM"),
        ("SELECT " + "x, " * 4000, "SELECT " + "x, " * 164 + "x … (3999 characters)"),
    ],
)
def test_what_is_kept_of_a_text_that_cannot_be_parsed(text: str, kept: str) -> None:
    shown = unparsed_text(text, 2000)
    assert MARK not in shown
    assert shown == kept


def test_the_settings_come_from_the_environment() -> None:
    given = {"LADING_AUDIT_FILE_MB": "1", "LADING_AUDIT_FILES": "3", "LADING_AUDIT_CHARACTERS": "100"}
    assert load_settings(given).audit == AuditSettings(audit_file_mb=1, audit_files=3, audit_characters=100)
    with pytest.raises(ConfigError, match="LADING_AUDIT_FILES is not a whole number from 1 to"):
        load_settings({"LADING_AUDIT_FILES": "0"})


def test_statements_of_the_command_line_are_kept_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LADING_AUDIT_CHARACTERS", "60")
    with Lading(tmp_path / "home", user="jack") as lading:
        lading.sql(f"CREATE USER ann IDENTIFIED BY '{KEY}'; CREATE DATABASE shop; USE shop")
        lading.sql(f"SHOW TABLES; CREATE TOKEN FOR ann COMMENT '{'x' * 99}'")
        with pytest.raises(Exception, match="mismatched"):
            lading.sql("ALTER USER ann swordfish")
    lines = (tmp_path / "home" / "audit" / "audit.log").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert [(one["kind"], one["result"], one["database"], one["what"]) for one in told] == [
        ("account", "ok", "default", "CREATE USER 'ann' IDENTIFIED BY '******'"),
        ("statement", "ok", "default", "CREATE DATABASE shop"),
        ("statement", "ok", "default", "USE shop"),
        ("statement", "ok", "shop", "SHOW TABLES"),
        ("account", "ok", "shop", f"CREATE TOKEN FOR 'ann' COMMENT '{'x' * 28} … (132 characters)"),
        ("statement", "error", "shop", "ALTER USER ******"),
    ]
    assert {(one["user"], one["face"], one["peer"]) for one in told} == {("jack", "local", "")}
    assert told[0]["time"].endswith("+00:00")
    assert told[-1]["error"] == "Sql"
    assert all(one["seconds"] >= 0 for one in told)
