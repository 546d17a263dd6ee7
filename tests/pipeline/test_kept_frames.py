"""Frames of Spark are kept for the batches that follow, and not for ever."""

from __future__ import annotations

from typing import cast

from pyspark.sql import DataFrame

from lading.pipeline.kept_frames import KeptFrames


def test_a_frame_is_made_once_and_the_one_that_was_not_used_for_longest_goes() -> None:
    frames, made = KeptFrames(most=2), list[str]()

    def ask(key: str) -> str:
        def make() -> DataFrame:
            made.append(key)
            return cast("DataFrame", f"frame {key}")

        return cast("str", frames.frame(key, make))

    assert [ask(key) for key in "aab"] == ["frame a", "frame a", "frame b"]
    ask("a")
    ask("c")  # b goes.
    assert made == ["a", "b", "c"]
    assert [ask(key) for key in "acb"] == ["frame a", "frame c", "frame b"]
    assert made == ["a", "b", "c", "b"]
