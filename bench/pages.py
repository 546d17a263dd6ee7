"""Tables and plots that the bench puts into docs/performance.md, between markers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.scale import ROOT

PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put_between(text: str, name: str, part: str) -> str:
    """The page with this part between `<!-- bench:name -->` and the next `<!-- end -->`."""
    begins, ends = f"<!-- bench:{name} -->", "<!-- end -->"
    pattern = re.compile(f"{re.escape(begins)}\n.*?{re.escape(ends)}", re.DOTALL)
    if not pattern.search(text):
        msg = f"{PAGE} has no {begins} … {ends}"
        raise ValueError(msg)
    return pattern.sub(lambda _: f"{begins}\n{part.strip()}\n{ends}", text, count=1)


class Pages:
    """Prints every part, and writes it to the page when it is told to."""

    def __init__(self, *, writes: bool) -> None:
        self._writes = writes

    def show(self, name: str, part: str) -> None:
        """One part, under its marker."""
        print(f"\n{part.strip()}\n", flush=True)
        if self._writes:
            PAGE.write_text(put_between(PAGE.read_text(), name, part))

    def image(self, name: str, svg: str, alt: str) -> str:
        """Keep a plot, and say how the page shows it."""
        if self._writes:
            IMAGES.mkdir(exist_ok=True)
            (IMAGES / f"{name}.svg").write_text(svg)
        return f"![{alt}](images/{name}.svg)"
