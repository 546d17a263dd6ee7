"""The page about loading files, run from top to bottom as a new user would."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lading.cli.main import app
from tests.service.conftest import Desk

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "files.md").read_text()
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


def test_ragged_lines_are_loaded_as_the_page_says(desk: Desk) -> None:
    (text,) = re.findall(r"((?: {4}.*\n)*(?: {4}.*ragged/.*\n))", PAGE)
    desk.table()
    (desk.inbox / "a.csv").write_text("1,essen,1.50\n2,ulm\n3\n4,bonn,2,more\n")
    desk.sql(text.replace("ragged/", f"{desk.inbox}/"))
    desk.run()
    found = DeltaTable(desk.lading.catalog.open_table("shop", "orders").location).to_pyarrow_table()
    rows = sorted(found.to_pylist(), key=str)
    assert [(row["id"], row["city"], row["amount"] and str(row["amount"])) for row in rows] == [
        (1, "essen", "1.50"),
        (2, "ulm", None),
        (3, None, None),
        (4, "bonn", "2.00"),
    ]


def test_the_page_about_a_lost_store_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.csv").write_text("id,city\n1,essen\n")
    made = (
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT, city STRING) USING delta; "
        "CREATE JOB orders_from_inbox ON STREAMING DO INSERT INTO orders "
        "SELECT * FROM FILE('uri'='inbox/*.csv', 'format'='csv_with_names', 'column_separator'=',')"
    )
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    assert CliRunner().invoke(app, ["sql", "-e", made]).exit_code == 0
    assert CliRunner().invoke(app, ["run"]).exit_code == 0
    (tmp_path / "lading-home" / "lading.db").unlink()
    told = []
    for kind, text in FENCE.findall((DOCS / "recover.md").read_text()):
        lines = [["sql", "-e", text]] if kind == "sql" else [shlex.split(line)[1:] for line in text.splitlines()]
        for words in lines:
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, f"{words}: {result.output} {result.exception}"
            told.append(result.output)
    assert "Would recover 1 table and 1 job." in told[0]
    assert "Recovered 1 table and 1 job." in told[1]
    assert "lost with the store" in told[1]
    assert "PAUSED" in told[2]
    (tmp_path / "inbox" / "b.csv").write_text("id,city\n2,bonn\n")
    assert CliRunner().invoke(app, ["run"]).exit_code == 0
    counted = CliRunner().invoke(app, ["sql", "--format", "json", "-e", "SELECT count(*) AS n FROM shop.orders"])
    assert '{"n": 2}' in counted.output
    bad = CliRunner().invoke(app, ["recover", str(tmp_path / "nowhere")])
    assert (bad.exit_code, "There is no table of Lading at" in bad.output.replace("\n", " ")) == (1, True)
    assert f"database.table={tmp_path}" in bad.output.replace("\n", "")
    known = CliRunner().invoke(app, ["recover", "shop.orders=lading-home/warehouse/shop/orders"])
    assert (known.exit_code, "table shop.orders: known" in known.output) == (0, True)
    wrong = CliRunner().invoke(app, ["recover", "--property", "s3.region"])
    assert "has no value" in str(wrong.exception)
    assert spark.range(3).count() == 3


def test_the_page_about_nested_data_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.json").write_text(
        '{"id": 1, "who": {"name": "ann", "age": 30}, "lines": [{"sku": "x", "price": 1.50}], "note": {"n": [1.10]}}\n'
        '{"id": 2, "who": {"age": 7}}\n{"id": 3, "lines": [{"price": 1}, {"price": "dear"}]}\n'
        '{"id": 4, "marks": {"a": 1}}\n'
    )
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    for kind, text in FENCE.findall((DOCS / "nested.md").read_text()):
        assert kind == "sql"
        result = CliRunner().invoke(app, ["sql", "-e", text])
        assert result.exit_code == 0, f"{text}: {result.output} {result.exception}"
    assert CliRunner().invoke(app, ["run"]).exit_code == 0
    rows = DeltaTable(tmp_path / "lading-home" / "warehouse" / "shop" / "baskets").to_pyarrow_table().to_pylist()
    assert [(row["id"], row["line"], row["note"], row["first_sku"]) for row in rows] == [
        (1, 1, '{"n":[1.10]}', "x"),
        (4, 4, None, None),
    ]
    assert (rows[0]["who"], rows[1]["marks"]) == ({"name": "ann", "age": 30}, [("a", 1.0)])
    assert rows[0]["file"] == f"file://{tmp_path}/inbox/a.json"
    told = CliRunner().invoke(app, ["sql", "--format", "json", "-e", "SHOW LOAD ERRORS FOR baskets"]).output
    assert "column lines[2].price: cannot read 'dear' as decimal(12,2)" in told
    lines = DeltaTable(tmp_path / "lading-home" / "warehouse" / "shop" / "lines").to_pyarrow_table().to_pylist()
    assert [(row["basket"], row["sku"], str(row["price"])) for row in lines] == [(1, "x", "1.50"), (3, None, "1.00")]
    assert spark.range(3).count() == 3


def test_the_page_about_schema_evolution_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.json").write_text('{"id": 1, "city": "essen"}\n{"id": 2, "new": true}\n')
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    for kind, text in FENCE.findall((DOCS / "schema-evolution.md").read_text()):
        assert kind == "sql"
        result = CliRunner().invoke(app, ["sql", "-e", text])
        assert result.exit_code == 0, f"{text}: {result.output} {result.exception}"
    assert CliRunner().invoke(app, ["run"]).exit_code == 0
    told = CliRunner().invoke(app, ["sql", "-e", "DESCRIBE visits"]).output
    assert all(name in told for name in ("city", "new", "note", "score", "checked", "_rescued"))
    assert spark.range(3).count() == 3
