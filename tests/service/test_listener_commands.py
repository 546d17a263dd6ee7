"""Programs that listeners run: which ones, with what, and for how long."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lading.errors import ConfigError, UnavailableError
from lading.service.security.listener_commands import parse_commands, run_command
from lading.testing.marked import secret
from tests.service.listener_rig import ClockedDesk


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def clocked(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClockedDesk]:
    notify = program(tmp_path / "notify", f'env > {tmp_path}/env; echo "$#" > {tmp_path}/args; cat >> {tmp_path}/facts')
    monkeypatch.setenv("LADING_LISTENER_COMMANDS", f"notify={notify}")
    monkeypatch.setenv("DB_PASSWORD", secret("variable"))
    made = ClockedDesk(tmp_path, spark)
    yield made
    made.lading.close()


def test_a_command_gets_the_facts_and_nothing_of_the_service(clocked: ClockedDesk, tmp_path: Path) -> None:
    clocked.create_job(
        "'partition.idle_time_to_done'='0 seconds', 'listener.c.type'='command', 'listener.c.command'='notify'"
    )
    clocked.load("a.csv", "1,x,2026-01-01 00:00:00")
    [told] = [json.loads(line) for line in (tmp_path / "facts").read_text().splitlines()]
    assert told | {"partition": "dt=x", "rows": 1, "listener": "c"} == told
    assert told["key"] == f"{clocked.bill().job_id}/1/dt=x/c"
    assert (tmp_path / "args").read_text() == "0\n"
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names <= {"PATH", "LANG", "PWD", "SHLVL", "_", "OLDPWD"}


def test_a_command_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    path = program(tmp_path / "hang", f"sleep 600 > {fifo} & exec sleep 600")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    with pytest.raises(UnavailableError, match=r"did not end within 0\.5 seconds, and was killed"):
        run_command({"hang": path}, "hang", b"{}", 0.5)
    assert os.read(reader, 1) == b""  # Nobody has it open for writing any more.
    os.close(reader)


def test_a_command_that_fails_or_is_gone_says_so(tmp_path: Path) -> None:
    bad = program(tmp_path / "bad", "exit 3")
    with pytest.raises(UnavailableError, match="The command bad ended with status 3"):
        run_command({"bad": bad}, "bad", b"x" * 1_000_000, 30.0)
    with pytest.raises(UnavailableError, match="The command gone could not be started: No such file"):
        run_command({"gone": tmp_path / "gone"}, "gone", b"{}", 30.0)
    with pytest.raises(UnavailableError, match="is not the name of a command"):
        run_command({}, "bad", b"{}", 30.0)


@pytest.mark.parametrize("text", ["notify", "notify=bin/notify", "a b=/x", "a=/x,a=/y", "=/x"])
def test_a_setting_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="LADING_LISTENER_COMMANDS has an item"):
        parse_commands(text)


def test_commands_by_name() -> None:
    assert parse_commands(" a=/x , b-1=/y/z,") == {"a": Path("/x"), "b-1": Path("/y/z")}
