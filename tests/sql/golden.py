"""Reading golden cases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden" / "sql"


@dataclass(frozen=True)
class Case:
    """One case of a golden file."""

    title: str
    text: str
    expected: str

    def __str__(self) -> str:
        return self.title


def load_pairs(name: str) -> list[Case]:
    """Statements and their canonical texts."""
    found: list[Case] = []
    blocks = _blocks(name)
    for (title, text), (mark, expected) in zip(blocks[::2], blocks[1::2], strict=True):
        assert mark == "=>", f"{name}: {title} has no canonical text"
        found.append(Case(title, text, expected))
    return found


def load_errors(name: str) -> list[Case]:
    """Statements and what is said about them."""
    found: list[Case] = []
    blocks = _blocks(name)
    for (title, text), (mark, rest) in zip(blocks[::2], blocks[1::2], strict=True):
        assert mark.startswith("! "), f"{name}: {title} has no error"
        assert not rest
        found.append(Case(title, text, mark.removeprefix("! ")))
    return found


def load_lines(name: str) -> list[Case]:
    """Expressions and what Spark gets."""
    lines = (FOLDER / name).read_text().splitlines()
    pairs = [line.rpartition(" => ") for line in lines if line.strip()]
    return [Case(text, text, expected) for text, _, expected in pairs]


def _blocks(name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for block in ("\n" + (FOLDER / name).read_text()).split("\n--- ")[1:]:
        title, _, body = block.partition("\n")
        found.append((title.strip(), body.strip("\n")))
    return found
