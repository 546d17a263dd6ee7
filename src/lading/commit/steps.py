"""Operations as generators of step names: between two steps anything may happen.

In production `run_steps` drives them without a pause and passes each name to the failpoint hook. The simulator
drives several at once and may stop, interleave or drop them at any name. Nothing durable happens in clean-up code,
so dropping a generator is the same as killing the process there.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from lading.failpoints import failpoint

T = TypeVar("T")

Steps = Generator[str, None, T]

STEP_NAMES: tuple[str, ...] = tuple(
    f"{step}.{side}"
    for step in ("start", "edit", "plan", "stage", "check", "merge", "bill", "commit", "settle", "follow")
    for side in ("before", "after")
)


def run_steps(steps: Steps[T]) -> T:
    """Drive an operation to its end."""
    while True:
        try:
            name = next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # the generator's own return type
        failpoint(name)
