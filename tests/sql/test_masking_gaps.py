"""Secrets are hidden whatever stands between a name and its value."""

from __future__ import annotations

import pytest

from lading.sql.syntax.spans import mask_text


@pytest.mark.parametrize(
    "gap", ["=", " = ", " /* c */ = ", "= /* c */ ", " = -- c\n", "=\n# c\n", "/**/=/* a *//* b */"]
)
def test_a_comment_beside_the_sign_hides_nothing_less(gap: str) -> None:
    text = f"""CREATE TABLE t PROPERTIES ('s3.secret_key'{gap}'swordfish', 's3.region' = 'eu')"""
    shown = mask_text(text)
    assert "swordfish" not in shown
    assert "'eu'" in shown
