"""What `lading demo state` shows is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.main import app


@pytest.mark.slow
@pytest.mark.java
def test_counts_per_minute_are_right_through_two_kills_and_a_rescale(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["demo", "state", "--home", str(tmp_path / "demo"), "--rows", "6000"])
    assert said.exit_code == 0, said.output
    assert said.output.count("was killed (SIGKILL)") == 2
    assert "All 90 counts are right, and each was written once" in " ".join(said.output.split())


def test_a_folder_that_is_not_the_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    said = CliRunner().invoke(app, ["demo", "state", "--home", str(tmp_path / "mine")])
    assert "was not made by the demo" in str(said.exception)
