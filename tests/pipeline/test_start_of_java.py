"""A Java that never says that it is there: its launcher waits for something that does not come."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.errors import StageError
from lading.pipeline.gateway import Launch, launch_java


def test_a_start_that_never_ends_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, said = tmp_path / "bin" / "spark-submit", tmp_path / "said"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {said}.new; mv {said}.new {said}\nwait\n")
    launcher.chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(StageError, match="has not said for 1 seconds"):
        launch_java(Launch(options={}, environment={"PATH": "/usr/bin:/bin"}, most_s=1.0))
    state = Path(f"/proc/{said.read_text().strip()}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
