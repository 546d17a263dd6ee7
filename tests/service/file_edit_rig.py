"""A job over three files that stands at the second and is paused. Nothing is loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.routine_fakes import Desk as Bench


@pytest.fixture
def paused(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "in" / f"{name}.csv").write_text("id,city\n1,essen\n")
    offset = json.dumps({"fileName": f"{tmp_path}/in/b.csv"})
    made.sql(
        f"CREATE JOB j PROPERTIES('offset'='{offset}') ON STREAMING DO INSERT INTO t SELECT * "
        f'FROM FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    made.sql("PAUSE JOB WHERE jobName = 'j'")
    yield made
    made.lading.close()
