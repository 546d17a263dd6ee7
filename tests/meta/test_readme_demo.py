"""What the README shows of `make demo` is what the demo prints."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from lading.cli.demo import JOBS, KILLS, Counted, conclusion, counted_table, kill_note

README = Path(__file__).parents[2] / "README.md"
ROW = re.compile(r"│ (\w+) +│ (\w+) +│ ([\d,]+) +│ ([\d,]+) +│ ([\d,]+) +│ (\d+) +│ (\w+) +│")


def printed(*parts: object) -> list[str]:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip().splitlines()


def counted(row: re.Match[str]) -> Counted:
    rows, distinct, bad, batches = (int(row[at].replace(",", "")) for at in (3, 4, 5, 6))
    return Counted(row[1], row[2], rows, distinct, bad, batches, row[7])


def test_the_readme_shows_what_the_demo_prints() -> None:
    text = README.read_text()
    start, end = text.index("      the loader was killed"), text.index("## Try to break it")
    shown = [line.removeprefix("    ").rstrip() for line in text[start:end].splitlines() if line.strip()]
    rows = [ROW.fullmatch(line) for line in shown if ROW.fullmatch(line)]
    counts = [counted(row) for row in rows if row]
    others = ("loading ━", "Bad rows are in quarantine", "  orders-")
    wanted = [
        *(line for failpoint in KILLS for line in printed(kill_note(failpoint))),
        *printed(counted_table(counts)),
        *printed(conclusion(is_exact=True)),
    ]
    assert [line.rstrip() for line in wanted] == [line for line in shown if not line.startswith(others)]
    assert {each.job: each.table for each in counts} == JOBS
    assert {(each.rows + each.bad, each.rows - each.distinct, each.verify) for each in counts} == {
        (1_000_000, 0, "clean")
    }
