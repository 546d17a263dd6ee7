"""Readers that do to the process which runs them what rows and machines do, for `test_without_spark`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lading.model.batch import Split
from lading.pipeline.tasks import ReadSplits
from lading.service.compile.compiled import Compiled
from lading.service.facade import Lading
from lading.service.runtime.context import CancellableStager

Around = Callable[[ReadSplits, Sequence[Split]], Iterator[Any]]


def dies_once(mark: Path, read: ReadSplits, splits: Sequence[Split]) -> Iterator[Any]:
    """The first process that reads is killed."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield from read(splits)


def hangs(mark: Path, read: ReadSplits, splits: Sequence[Split]) -> Iterator[Any]:
    """Reading never ends. The file says who reads."""
    draft = mark.with_suffix(".draft")
    draft.write_text(str(os.getpid()))
    draft.rename(mark)
    threading.Event().wait()
    yield from read(splits)


def fails_without_memory(mark: Path, read: ReadSplits, splits: Sequence[Split]) -> Iterator[Any]:
    """The first process has not the memory to read."""
    if not mark.exists():
        mark.touch()
        bytearray(1 << 60)
    yield from read(splits)


def tells_environment(mark: Path, read: ReadSplits, splits: Sequence[Split]) -> Iterator[Any]:
    """The file says what the process has in its environment."""
    mark.write_text("\n".join(f"{name}={value}" for name, value in os.environ.items()))
    yield from read(splits)


def prints(text: str, mark: Path, read: ReadSplits, splits: Sequence[Split]) -> Iterator[Any]:
    """A library of the process writes what it likes."""
    print(text, flush=True)
    yield from read(splits)


def tells_imports(mark: Path, read: ReadSplits, splits: Sequence[Split]) -> Iterator[Any]:
    """The file says what was imported while the task read, and wrote what it had read."""
    before = set(sys.modules)
    yield from read(splits)
    mark.write_text("\n".join(sorted(set(sys.modules) - before)))


class NearLading(Lading):
    """Its tasks read in another way."""

    around: Callable[..., Iterator[Any]] | None = None
    mark: Path

    def _stager(self, compiled: Compiled) -> CancellableStager:
        stage, around = compiled.stage, self.around
        if stage is None or around is None:
            return super()._stager(compiled)
        read = partial(around, self.mark, stage.tools.read)
        return super()._stager(replace(compiled, stage=replace(stage, tools=replace(stage.tools, read=read))))
