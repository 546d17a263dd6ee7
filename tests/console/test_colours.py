"""Text can be read on its ground, in light and dark."""

from __future__ import annotations

import re

import pytest

from lading.console.mount import FOLDER

PAIRS = [
    *((ink, ground) for ink in ("ink", "muted", "accent", "bad", "warn") for ground in ("bg", "panel", "sunk")),
    *((tone, f"{tone}-bg") for tone in ("good", "warn", "bad", "idle")),
    *(("ink", f"{tone}-bg") for tone in ("good", "warn", "bad", "idle")),
    ("on-accent", "accent"),
]


def colours(theme: str) -> dict[str, str]:
    blocks = re.findall(r"^:root[^{]*{(.*?)^}", (FOLDER / "console.css").read_text(), re.DOTALL | re.MULTILINE)
    found = dict(re.findall(r"--ld-([a-z0-9-]+): (#[0-9a-f]{6});", blocks[0]))
    return (
        found if theme == "light" else {**found, **dict(re.findall(r"--ld-([a-z0-9-]+): (#[0-9a-f]{6});", blocks[1]))}
    )


def light_of(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((light_of(one), light_of(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_is_enough(theme: str) -> None:
    known = colours(theme)
    weak = {pair: round(contrast(known[pair[0]], known[pair[1]]), 2) for pair in PAIRS}
    assert {pair: value for pair, value in weak.items() if value < 4.5} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_stand_out(theme: str) -> None:
    known = colours(theme)
    lines = {f"plot-{number}" for number in range(1, 9)}
    assert {line for line in lines if contrast(known[line], known["panel"]) < 2.5} == set()
