"""A Java that never says that it is there, and one that says nothing any more. Spark itself: tests/faults."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lading.errors import LadingError, StageError
from lading.pipeline.answering import watch_answers
from lading.pipeline.gateway import Launch, launch_java

Launcher = Callable[[str], None]


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    """What starts Java does this instead."""

    def write(script: str) -> None:
        place = tmp_path / "bin" / "spark-submit"
        place.parent.mkdir()
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o700)

    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    return write


@pytest.mark.parametrize(
    ("script", "status", "is_tried_again"), [("kill -9 $$", -9, True), ("exit 137", 137, True), ("exit 1", 1, False)]
)
def test_a_java_that_is_killed_while_it_starts_is_started_again(
    launcher: Launcher, script: str, status: int, is_tried_again: bool
) -> None:
    """A job whose batch wanted Spark must not wait for people then. What Java refuses is refused again."""
    launcher(script)
    with pytest.raises(LadingError, match=f"Java ended with status {status} before") as caught:
        launch_java(Launch(options={}, environment={"PATH": "/usr/bin:/bin"}))
    assert caught.value.retry == is_tried_again


def test_a_start_that_never_ends_is_ended_with_what_it_started(launcher: Launcher, tmp_path: Path) -> None:
    said = tmp_path / "said"
    launcher(f"sleep 600 &\necho $! > {said}.new; mv {said}.new {said}\nwait")
    with pytest.raises(StageError, match="has not said for 1 seconds"):
        launch_java(Launch(options={}, environment={"PATH": "/usr/bin:/bin"}, most_s=1.0))
    assert has_ended(int(said.read_text()))


def has_ended(process: int, patience_s: float = 30.0) -> bool:
    """The system ends what was killed when it comes to it; nobody of ours is its parent."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], patience_s)[0])
    finally:
        os.close(watched)


class Gateway:
    """To a process that lives for a minute, and answers until somebody says otherwise."""

    def __init__(self) -> None:
        self.proc = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.asked, self.answers = threading.Semaphore(0), threading.Event()
        self.answers.set()
        self.jvm: Any = SimpleNamespace(
            java=SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=self._ask)))
        )

    def _ask(self) -> int:
        self.asked.release()
        self.answers.wait(60)
        return 0


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.proc.kill()
    made.proc.wait()
    made.answers.set()


def test_a_java_is_ended_when_it_answers_no_more_and_not_before(gateway: Gateway) -> None:
    watch_answers(gateway, 1.0)
    for _ in range(25):  # Longer than it may be silent.
        assert gateway.asked.acquire(timeout=30)
    assert gateway.proc.poll() is None
    gateway.answers.clear()
    assert gateway.proc.wait(30) == -9
