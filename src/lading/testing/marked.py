"""Secrets for tests that cannot be mistaken for anything else, so that a search for one mark finds them all."""

from __future__ import annotations

MARK = "hUsh7QuietxZ"


def secret(name: str) -> str:
    """A key or password that holds the mark."""
    return f"{MARK}-{name}"
