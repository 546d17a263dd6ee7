"""Formats whose library is optional."""

from __future__ import annotations

import pytest

from lading.tables.kind import TableKind


def skip_without(kind: TableKind) -> None:
    """Skip a test, loudly, when the library of a format is not installed."""
    if name := kind.missing():
        pytest.skip(f"NOT PROVED, no {kind.title} table was tried: {name} is not installed; run make setup")
