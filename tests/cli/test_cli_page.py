"""The page about the command line, typed from top to bottom."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.main import COMMANDS, app
from lading.cli.output import OutputFormat

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "web.sql").write_text("CREATE DATABASE web;")
    for kind, text in FENCE.findall(PAGE):
        lines = [shlex.split(line)[1:] for line in text.strip().splitlines()] if kind == "sh" else [["sql", "-e", text]]
        for words in lines:
            done = CliRunner().invoke(app, words)
            assert done.exit_code == 0, f"{words}: {done.output} {done.exception}"


def test_the_error_that_it_shows_is_the_one_that_is_said(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    CliRunner().invoke(app, ["init", "--home", home])
    error = CliRunner().invoke(app, ["sql", "--home", home, "-e", "SHWO DATABASES"]).exception
    assert "\n    ".join(f"Sql: {error}".splitlines()) in PAGE


def test_every_format_is_explained() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [form.value for form in OutputFormat]


def test_the_commands_are_those_that_help_lists() -> None:
    said = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).output
    words = " ".join(re.sub(r"[│╭╮╰╯─]", " ", said).split())
    shown = re.findall(r"^\| `lading (\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
    for name, what in shown:
        assert f"{name} {what}" in words
    assert [name for name, _ in shown] == list(COMMANDS)
