"""What the bench says must be in a table, and how it writes its page."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import bench.pages
import pytest
from bench.compare.cases import Case, cases, expected
from bench.compare.check import check, data_files
from bench.compare.server import FailedError
from bench.compare.visible import latencies
from bench.pages import put_between
from bench.peers import duckdb_load
from bench.peers.order import Order
from bench.scaling.flame_plot import flame_svg
from bench.scaling.plot import Plot


@pytest.mark.parametrize("total", [1, 8, 999, 1000, 12_345])
def test_what_must_be_in_a_table_is_what_a_loop_finds(total: int) -> None:
    kept = [n for n in range(total) if n % 100 != 7]
    found = expected(total)
    assert found.rows == found.cities == len(kept)
    assert found.ids == sum(kept)
    assert found.amounts == sum((Decimal(f"{n % 1000}.50") * Decimal("1.1") for n in kept), Decimal(0))


@pytest.mark.parametrize("name", ["csv", "json", "parquet", "gzip", "wide"])
def test_duckdb_loads_every_case_and_the_check_sees_a_wrong_row(name: str, tmp_path: Path) -> None:
    order, total = small(name, tmp_path)
    duckdb_load.load(order)
    assert check("duckdb", order.out, expected(total)).bytes > 0
    with pytest.raises(FailedError):
        check("duckdb", order.out, expected(total + 1))


def test_a_log_that_repeats_those_before_it_names_each_file_once(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for name, files in (("8", "b"), ("9.compact", "abc"), ("10", "d")):
        lines = [json.dumps({"path": f"file://{tmp_path}/{file}%20.parquet"}) for file in files]
        (log / name).write_text("\n".join(["v1", *lines]))
    assert sorted(data_files(tmp_path)) == [tmp_path / f"{file} .parquet" for file in "abcd"]


def small(name: str, place: Path) -> tuple[Order, int]:
    """Two files of a case, and how many rows they have."""
    known = cases()[name]
    case = Case(name=name, title="", form=known.form, ending=known.ending, files=2, rows=150, is_wide=known.is_wide)
    inbox = case.write(place / "in")
    home = str(place / "home")
    order = Order(form=case.form, ending=case.ending, inbox=str(inbox), home=home, extra=case.extra, once=True)
    return order, case.total


def test_every_marker_of_the_page_can_be_written() -> None:
    page = bench.pages.PAGE.read_text()
    for name in [*(f"compare-{name}" for name in cases()), "latency", "first", "kafka", "scaling-rows", "scaling-age"]:
        written = put_between(page, name, "a table")
        assert f"<!-- bench:{name} -->\na table\n<!-- end -->" in written
        assert put_between(written, name, "a table") == written


def test_a_file_is_visible_when_as_many_rows_are() -> None:
    moments = [(1.0, 5), (2.0, 10), (3.0, 30)]
    assert latencies([0.5, 0.6, 0.7], moments, 10) == pytest.approx([1.5, 2.4, 2.3])


def test_plots_are_whole() -> None:
    lines = {"a & b": [(10.0, 1.0), (100.0, 3.0)]}
    ElementTree.fromstring(Plot(title="t", across="x", up="y", lines=lines).svg())
    ElementTree.fromstring(flame_svg("t", {("main (a.py)", "<lambda> (b.py)"): 3, ("main (a.py)",): 1}))
