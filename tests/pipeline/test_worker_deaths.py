"""What Spark says of a worker that died, and what it says of one that only failed."""

from __future__ import annotations

import pytest

from lading.pipeline.errors import cause_of, is_worker_lost

KILLED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n  at org.apache.spark.api"
NO_MEMORY = (
    "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
    '  File "x.py", line 3, in die\nMemoryError\n'
)
GIVEN_BACK = "ExecutorLostFailure (executor 2 exited unrelated to the running tasks) Reason: decommissioned"
LOST = "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: Container killed, 137"
OURS = "lading.errors.StageError: The file is damaged: MemoryError is a word in it. Nothing was committed"


@pytest.mark.parametrize(
    ("text", "is_lost"), [(KILLED, True), (NO_MEMORY, True), (LOST, True), (GIVEN_BACK, False), (OURS, False)]
)
def test_only_what_a_task_did_to_its_worker_counts(text: str, is_lost: bool) -> None:
    assert is_worker_lost(RuntimeError(text)) is is_lost


def test_an_error_without_a_message_is_still_the_cause() -> None:
    assert cause_of(RuntimeError(NO_MEMORY)) == "MemoryError"
