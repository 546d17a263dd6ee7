"""Small patches that each break one law. The simulator must find every one of them.

A mutant replaces one function of the real code, or of the part of a fake that stands for real code. The suite is
only as good as the mutants it finds, so a law without a mutant is a law without a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Patch = Callable[[object, str, Any], None]
"""set(owner, name, value) until the mutant is taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One broken law."""

    name: str
    law: str
    """The law that is switched off, in words."""
    apply: Callable[[Patch], None]


MUTANTS: dict[str, Mutant] = {}


def mutant(name: str, law: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Register a function that applies a mutant."""

    def register(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[name] = Mutant(name=name, law=law, apply=apply)
        return apply

    return register


@contextmanager
def applied(chosen: Mutant) -> Iterator[None]:
    """Break the law inside the block."""
    undo: list[tuple[object, str, Any]] = []

    def patch(owner: object, name: str, value: Any) -> None:
        undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    try:
        chosen.apply(patch)
        yield
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)
