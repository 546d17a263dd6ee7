"""Frames of Spark are kept for the batches that follow, and not for ever."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from lading.pipeline.kept_frames import KeptFrames


class Frame:
    """Gives its name."""

    def __init__(self, name: str) -> None:
        self.name, self.error = name, ""

    def collect(self) -> list[Any]:
        if self.error:
            raise RuntimeError(self.error)
        return [self.name]


class Frames:
    """Those of a cache for two, and which were made."""

    def __init__(self) -> None:
        self.kept, self.made = KeptFrames(most=2), list[Frame]()

    def ask(self, key: str) -> Any:
        return self.kept.run(key, lambda: self._make(key))[0]

    def _make(self, key: str) -> DataFrame:
        self.made.append(Frame(f"{key}{len(self.made)}"))
        return cast("DataFrame", self.made[-1])


def test_a_frame_is_made_once_and_the_one_that_was_not_used_for_longest_goes() -> None:
    frames = Frames()
    assert [frames.ask(key) for key in "aab"] == ["a0", "a0", "b1"]
    assert [frames.ask(key) for key in "acacb"] == ["a0", "c2", "a0", "c2", "b3"]


def test_a_frame_that_fails_is_made_again() -> None:
    frames = Frames()
    frames.ask("a")
    frames.made[0].error = "a plan that failed is kept by Spark"
    with pytest.raises(RuntimeError, match="kept by Spark"):
        frames.ask("a")
    assert frames.ask("a") == "a1"
