"""`lading sql` typed at a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner

from lading.cli.main import app

LADING = [sys.executable, "-c", "from lading.cli.main import main; main()"]
WITHIN_S = 30


class Terminal:
    """A person at a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.seen = ""
        self._unread = ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def expect(self, words: str) -> None:
        """Read until the words have come."""
        while words not in self._unread:
            ready, _, _ = select.select([self._descriptor], [], [], WITHIN_S)
            assert ready, f"{words!r} did not come after {self.seen + self._unread!r}"
            self._unread += os.read(self._descriptor, 4096).decode(errors="replace")
        before, found, self._unread = self._unread.partition(words)
        self.seen += before + found


@contextmanager
def shell(home: Path) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "100"}
    process = subprocess.Popen(
        [*LADING, "sql", "--home", str(home)], stdin=theirs, stdout=theirs, stderr=theirs, env=variables
    )
    os.close(theirs)
    try:
        yield Terminal(ours), process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_statement_over_lines_help_ctrl_c_history_and_ctrl_d(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert CliRunner().invoke(app, ["init", "--home", str(home)]).exit_code == 0
    with shell(home) as (terminal, process):
        terminal.expect("lading>")
        terminal.type("CREATE DATABASE\r")
        terminal.expect("...>")
        terminal.type("typed;\r")
        terminal.expect("OK")
        terminal.type("help\r")
        terminal.expect("routine loads:")
        terminal.type("DROP DATABASE typed\x03")  # Ctrl-C clears it.
        terminal.type("SHOW DATABASES\\G\r")
        terminal.expect("2. row")
        terminal.expect("Database: typed")
        terminal.type("SHWO;\r")
        terminal.expect("Did you mean")
        terminal.expect("lading>")
        terminal.type("\x04")
        process.wait(WITHIN_S)
    assert process.returncode == 0
    assert "CREATE DATABASE" in (home / "history").read_text()
