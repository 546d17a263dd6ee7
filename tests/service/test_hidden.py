"""Secrets in the words of others."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.service.security import redaction
from lading.service.security.redaction import SHORTEST, Redactor

words = st.text(alphabet="abAB ", min_size=0, max_size=12)


@given(secrets=st.lists(words, max_size=40), text=st.lists(words, max_size=6), known=st.integers(0, 39))
def test_what_is_known_is_never_shown(secrets: list[str], text: list[str], known: int) -> None:
    told = Redactor()
    told.learn(secrets)
    shown = told.redact("-".join([*text, *secrets[known : known + 1], *text]))
    assert not [value for value in secrets if len(value) >= SHORTEST and value in shown]


def test_short_values_masks_and_references_hide_nothing_else() -> None:
    told = Redactor()
    told.learn(["the", "", "******", "env:SHOP_KEY", "file:/run/secrets/shop"])
    text = "the other ****** of env:SHOP_KEY and file:/run/secrets/shop"
    assert told.redact(text) == text
    assert told.redact("password='the'") == "password='******'"


def test_the_longer_of_two_is_hidden_whole() -> None:
    told = Redactor()
    told.learn(["minioadmin", "minioadmin-2"])
    assert told.redact("with minioadmin-2, not minioadmin") == "with ******, not ******"


def test_those_used_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "MOST", 3)
    told = Redactor()
    told.learn(f"value-{number}" for number in range(3))
    told.learn(["value-0", "value-3"])
    shown = told.redact("value-0 value-1 value-2 value-3")
    assert shown == "****** value-1 ****** ******"


def test_many_secrets_cost_short_texts_little() -> None:
    """A list of a thousand jobs shows thousands of texts."""
    told = Redactor()
    told.learn(f"{number:05}-secret-key-of-a-job" for number in range(10_000))
    text = "Failed to fetch meta: the files could not all be listed. It is tried again without a person."
    began = time.process_time()
    for _ in range(1000):
        assert told.redact(text) == text
    assert time.process_time() - began < 1.0
    assert told.redact(f"{text} 01234-secret-key-of-a-job") == f"{text} ******"
