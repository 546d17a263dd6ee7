"""docs/read.md: its snippets read the tables that were loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.service.test_rollbacks import LocalDesk

PAGE = Path(__file__).parents[2] / "docs" / "read.md"
_SNIPPET = re.compile(r"^```py\n(.*?)^```", re.DOTALL | re.MULTILINE)


def snippets(title: str) -> list[str]:
    (part,) = [part for part in PAGE.read_text().split("\n## ") if part.startswith(title)]
    return _SNIPPET.findall(part)


@pytest.mark.parametrize(("form", "rows"), [("Delta", (9, 1, 5)), ("Iceberg", (9, 1)), ("Paimon", (10,))])
def test_each_snippet_reads_the_rows(tmp_path: Path, form: str, rows: tuple[int, ...]) -> None:
    """Ten rows in two commits: those above 1, their sum, those of the first commit, all."""
    desk = LocalDesk(tmp_path)
    lake = tmp_path / "lake"
    desk.table(form=form.lower(), more=f"LOCATION '{lake}/shop.db/orders'" if form == "Paimon" else "")
    desk.create()
    for number in range(2):
        desk.put_orders(f"{number}.csv", number * 5, 5)
        desk.run()
    desk.lading.close()
    found = snippets(form)
    for text, expected in zip(found, rows, strict=True):
        names: dict[str, Any] = {}
        exec(compile(text.replace("HOME", f"{tmp_path}/home").replace("LAKE", str(lake)), "snippet", "exec"), names)
        frame = names["frame"]
        assert frame.shape[0] == expected, text
        if expected == 1:
            assert (frame["city"][0], frame["amount"][0]) == ("essen", 50)
