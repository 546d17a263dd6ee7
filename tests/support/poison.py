"""A record that kills what reads it: in Spark's Python workers, for the tests that need one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lading.model.batch import BatchPlan, Split
from lading.pipeline.stager import SparkStager
from lading.pipeline.tasks import ReadSplits, TaskTools


def make_deadly(patch: pytest.MonkeyPatch, column: str, value: str, how: str = "kill", tail: int = 0) -> None:
    """From now on a worker that reads this value dies, by SIGKILL or because it has no memory left.

    `tail`: also one that reads a batch of more rows than this.
    """
    whole = SparkStager._tools

    def tools(self: SparkStager, splits: tuple[Split, ...], plan: BatchPlan) -> TaskTools:
        made = whole(self, splits, plan)
        return replace(made, read=deadly(made.read, column, value, how, tail))

    patch.setattr(SparkStager, "_tools", tools)


def deadly(read: ReadSplits, column: str, value: str, how: str, tail: int) -> ReadSplits:
    """Nested functions travel to workers whole: those have no tests to import."""

    def die() -> None:
        if how == "memory":
            bytearray(1 << 60)
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(splits: Sequence[Split]) -> Iterator[Any]:
        rows = 0
        for item in read(splits):
            if isinstance(item, pa.RecordBatch):
                rows += item.num_rows
                if value in item.column(column).to_pylist() or (tail and rows > tail):
                    die()
            yield item

    found: Callable[[Sequence[Split]], Iterator[Any]] = watch
    return found
