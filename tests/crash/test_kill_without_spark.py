"""SIGKILL in a process that runs a job without Spark, and again in the next; then start again and count."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.tables.registry import NAMES
from tests.crash.test_kill_jobs import IN_BATCHES, IN_START, check_kill


def test_a_kill_without_spark_loses_and_doubles_nothing(tmp_path: Path) -> None:
    check_kill(tmp_path, "delta", ("commit.after=kill:2",), {})


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("failpoint", [*IN_BATCHES, *IN_START])
def test_a_kill_without_spark_at_every_step_of_every_format(tmp_path: Path, form: str, failpoint: str) -> None:
    check_kill(tmp_path, form, (failpoint, failpoint), {})
