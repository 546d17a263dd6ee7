"""A flame graph as SVG: a box is a function, as wide as its share of the samples, above the function that called it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

WIDTH, ROW, LEAST = 1000, 16, 3.0
COLOURS = ("#fde68a", "#fdba74", "#fca5a5", "#fcd34d", "#fbbf24")


@dataclass(slots=True)
class _Box:
    count: int = 0
    inside: dict[str, _Box] = field(default_factory=dict)


def flame_svg(title: str, stacks: Mapping[tuple[str, ...], int]) -> str:
    """Boxes narrower than three points are left out."""
    root = _Box()
    for stack, count in stacks.items():
        box = root
        box.count += count
        for name in stack:
            box = box.inside.setdefault(name, _Box())
            box.count += count
    parts: list[str] = []
    depth = _draw(root, 0.0, 0, WIDTH / max(1, root.count), parts)
    height = 30 + ROW * depth
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
        f'font-size="10">\n<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f'<text x="4" y="16" font-size="13">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _draw(box: _Box, left: float, depth: int, scale: float, parts: list[str]) -> int:
    """How many rows there are below."""
    deepest = depth
    for number, (name, inner) in enumerate(sorted(box.inside.items())):
        width = inner.count * scale
        if width >= LEAST:
            parts.append(_box(name, left, depth, width, COLOURS[(depth + number) % len(COLOURS)]))
            deepest = max(deepest, _draw(inner, left, depth + 1, scale, parts))
        left += width
    return max(deepest, depth)


def _box(name: str, left: float, depth: int, width: float, colour: str) -> str:
    top = 24 + ROW * depth
    shown = escape(name[: int(width / 6.2)]) if width > 30 else ""
    return (
        f'<g><title>{escape(name)}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" '
        f'fill="{colour}"/><text x="{left + 2:.1f}" y="{top + 11}">{shown}</text></g>'
    )
