"""CSV and JSON files for several sections."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from bench.scale import SCALE

__all__ = ["CONSOLE", "SCALE", "write_files"]
CONSOLE = Console()


def write_files(folder: Path, files: int, rows: int, form: str) -> Path:
    """Files with four columns and so many rows each."""
    folder.mkdir(parents=True)
    for number in range(files):
        base = number * rows
        if form == "csv":
            lines = [f"{base + n},city {n % 100},{n % 1000}.25,some text {n}" for n in range(rows)]
            text = "\n".join(["id,city,amount,note", *lines])
        else:
            text = "\n".join(
                f'{{"id": {base + n}, "city": "city {n % 100}", "amount": "{n % 1000}.25", "note": "some text {n}"}}'
                for n in range(rows)
            )
        (folder / f"{number:06d}.{form}").write_text(text + "\n")
    return folder
