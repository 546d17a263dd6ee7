"""A small line plot as SVG: points by number, the number on a scale of powers of ten."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 34, 46
COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d")
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What the axes are called, and the lines."""

    title: str
    across: str
    up: str
    lines: Mapping[str, Points]

    def svg(self) -> str:
        """Drawn."""
        points = [point for line in self.lines.values() for point in line]
        first, last = min(x for x, _ in points), max(x for x, _ in points)
        top = _round_up(max(y for _, y in points) * 1.05)
        frame = _Frame(math.log10(first), math.log10(last) if last > first else math.log10(first) + 1, top)
        parts = self._axes(frame, top)
        for number, (name, line) in enumerate(self.lines.items()):
            parts += _line(frame, line, COLOURS[number % len(COLOURS)], name, number)
        body = "\n".join(parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            f'font-size="12">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
        )

    def _axes(self, frame: _Frame, top: float) -> list[str]:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        parts = [
            f'<text x="{LEFT}" y="20" font-size="14">{escape(self.title)}</text>',
            f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self.across)}</text>',
            f'<text x="14" y="{(TOP + bottom) / 2:.0f}" text-anchor="middle" '
            f'transform="rotate(-90 14 {(TOP + bottom) / 2:.0f})">{escape(self.up)}</text>',
        ]
        for step in range(5):
            y = frame.y(top * step / 4)
            parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * step / 4:g}</text>')
        marks = sorted({x for line in self.lines.values() for x, _ in line})
        under = f'y="{bottom + 18}" text-anchor="middle"'
        return parts + [f'<text x="{frame.x(x):.1f}" {under}>{_short(x)}</text>' for x in marks]


class _Frame:
    def __init__(self, low: float, high: float, top: float) -> None:
        self._low, self._high, self._top = low, high, top

    def x(self, value: float) -> float:
        return LEFT + (math.log10(value) - self._low) / (self._high - self._low) * (WIDTH - RIGHT - LEFT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self._top * (HEIGHT - BOTTOM - TOP)


def _line(frame: _Frame, line: Points, colour: str, name: str, number: int) -> list[str]:
    places = [(frame.x(x), frame.y(y)) for x, y in line]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    at = TOP + 16 * number
    legend = f'<text x="{WIDTH - RIGHT + 12}" y="{at + 4}" fill="{colour}">{escape(name)}</text>'
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, legend]


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 5, 8 and 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 4, 5, 8, 10) if power * step >= value)


def _short(value: float) -> str:
    for size, word in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{word}"
    return f"{value:g}"
