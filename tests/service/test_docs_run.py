"""The page about loading files, run from top to bottom as a new user would."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lading.cli.main import app

PAGE = (Path(__file__).parent.parent.parent / "docs" / "files.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_page_about_files_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inbox").mkdir()
    lines = [f"{order},essen,{order}.50" for order in range(10)]
    (tmp_path / "inbox" / "2026-03-02.csv").write_text("\n".join(["id,city,amount", *lines]) + "\n")
    blocks = FENCE.findall(PAGE)
    (tmp_path / "orders.sql").write_text(blocks[0][1])
    for kind, text in blocks[1:]:
        if kind == "sh":
            for line in text.strip().splitlines():
                result = CliRunner().invoke(app, shlex.split(line)[1:])
                assert result.exit_code == 0, f"{line}: {result.output} {result.exception}"
        elif kind == "sql":
            result = CliRunner().invoke(app, ["sql", "-e", text])
            assert result.exit_code == 0, f"{text}: {result.output} {result.exception}"
        else:
            exec(compile(text, "example", "exec"), {})
    assert spark.range(3).count() == 3
