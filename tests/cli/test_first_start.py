"""The first minutes of a service, as its owner sees them: a password on the terminal, once."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest

from lading.testing.marked import secret
from tests.logins import read_root_login

pytestmark = pytest.mark.long

LADING = [
    sys.executable,
    "-c",
    "from lading.cli.main import main; main()",
]
PASSWORD = secret("from a file")


def lines_of(descriptor: int) -> Iterator[str]:
    rest = b""
    while True:
        try:
            got = os.read(descriptor, 4096)
        except OSError:  # What a terminal says when nobody writes to it any more.
            got = b""
        if not got:
            return
        *lines, rest = (rest + got).split(b"\n")
        yield from (line.decode().rstrip("\r") for line in lines)


@contextmanager
def serving(home: Path, *options: str, on_terminal: bool) -> Iterator[list[str]]:
    """A service; what it says until it is ready, and after the block also what it says then."""
    reading, writing = pty.openpty() if on_terminal else os.pipe()
    command = [*LADING, "serve", "--init", "--home", str(home), "--mysql-port=0", "--http-port=0", *options]
    process = subprocess.Popen(command, stdout=writing, stderr=writing, stdin=subprocess.DEVNULL)
    os.close(writing)
    said = list[str]()
    lines = lines_of(reading)
    for line in lines:
        said.append(line)
        if line.startswith("Lading is ready"):
            break
    try:
        yield said
    finally:
        process.terminate()
        said.extend(lines)
        os.close(reading)
        assert process.wait(60) == 0, said


def who(home: Path, password: str) -> str:
    port = json.loads((home / "service.json").read_text())["mysql_port"]
    with pymysql.connect(host="127.0.0.1", port=port, user="root", password=password) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT CURRENT_USER()")
        row = cursor.fetchone()
        assert row is not None
        return str(row[0])


def test_the_password_is_shown_once_on_a_terminal_and_never_in_a_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home, on_terminal=True) as said:
        shown = [match[1] for line in said if (match := re.fullmatch(r"The password of root is (\S+)", line))]
        assert shown == [read_root_login(home)[1]]
        assert who(home, shown[0]) == "root@%"
        with pytest.raises(pymysql.OperationalError, match=r"1045.*root\.password of the service's home folder"):
            who(home, "")
        command = [*LADING, "sql", "--home", str(home), "-e", f"ALTER USER root IDENTIFIED BY '{PASSWORD}'"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not (home / "root.password").exists()
        assert who(home, PASSWORD) == "root@%"
    assert sum(shown[0] in line for line in said) == 1


def test_a_container_gets_its_password_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, file = tmp_path / "home", tmp_path / "given"
    file.write_text(PASSWORD + "\n")
    monkeypatch.setenv("LADING_ROOT_PASSWORD_FILE", str(file))
    with serving(home, "--host", "0.0.0.0", "--insecure", on_terminal=False) as said:
        assert who(home, PASSWORD) == "root@%"
    assert not (home / "root.password").exists()
    assert not [line for line in said if PASSWORD in line]
    file.unlink()
