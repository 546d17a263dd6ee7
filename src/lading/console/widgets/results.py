"""The answer to a statement as a table. Everything in it is text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from lading.console import formatting
from lading.console.widgets.basic import text
from lading.console.widgets.live import Column, LiveTable
from lading.service.views.build import printable

MOST_CELL = 300
MOST_UNBROKEN, LEAST_WIDE = 32, 60
"""Shorter values are not broken into lines, and longer ones get room: a table that is too broad scrolls."""
MOST_WHOLE = 20_000
"""Of longer values the browser gets no more."""


def result_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str) -> LiveTable:
    """A table of values, in the place where it is made."""
    shown = LiveTable(caption, [Column(name=f"c{at}", label=name) for at, name in enumerate(columns)], empty=empty)
    shown.show(
        [
            {"key": number, **{f"c{at}": cell_of(value) for at, value in enumerate(row)}}
            for number, row in enumerate(rows)
        ]
    )
    return shown


def cell_of(value: Any) -> dict[str, Any]:
    """One value: long ones are cut and can be opened; NULL does not look like a text."""
    if value is None:
        return {"text": "NULL", "tone": "idle", "whole": True}
    whole = printable(_word(value))[:MOST_WHOLE]
    short = formatting.shorten(whole, MOST_CELL)
    return {
        "text": short,
        "title": whole if short != whole else "",
        "mono": True,
        "whole": len(short) <= MOST_UNBROKEN,
        "wide": len(short) > LEAST_WIDE,
    }


def _word(value: Any) -> str:
    """As SQL and JSON write it, and not as Python does."""
    match value:
        case bool():
            return str(value).lower()
        case bytes() | bytearray():
            return value.hex()
        case Mapping() | list() | tuple():
            return json.dumps(_plain(value), ensure_ascii=False)
    return str(value)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {_word(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case None | bool() | int() | str():
            return value
        case float() if isfinite(value):
            return value
    return _word(value)


def answer_words(columns: Sequence[str], rows: int, message: str, *, is_cut: bool) -> str:
    """What a statement answered, in words."""
    if not columns:
        return message or "Done"
    said = f"{formatting.count(rows)} {formatting.plural(rows, 'rows')}"
    return f"The first {said}; there are more" if is_cut else said


def show_answer(columns: Sequence[str], rows: Sequence[Sequence[Any]], message: str, *, is_cut: bool = False) -> None:
    """The whole answer, in the place where it is made."""
    text("p", answer_words(columns, len(rows), message, is_cut=is_cut), "ld-muted ld-pad", role="status")
    if columns:
        result_table("Answer", columns, rows, empty="No row.")
