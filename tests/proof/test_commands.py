"""Commands of the documents run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from tests.meta.test_docs import examples

COMMAND = re.compile(r"^ {4}(lading .+?)(?: +#.*)?$", re.MULTILINE)
"""Commands in indented blocks. Those that need Spark stand in fences and are run by tests/service."""


@pytest.mark.parametrize("command", examples(COMMAND))
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["init"]).exit_code == 0  # The pages say so first.
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == (1 if "--mutant" in command else 0), result.output
