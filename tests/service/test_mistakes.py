"""docs/errors.md says what Lading answers to typical mistakes."""

from __future__ import annotations

from pathlib import Path

from tests.meta.errors_page import written
from tests.service.mistakes import MISTAKES, render


def test_the_page_has_the_answers_that_are_given(tmp_path: Path) -> None:
    assert len(MISTAKES) == 20
    assert written()[1] == render(tmp_path), "write the page again: python -m tests.service.mistakes"
