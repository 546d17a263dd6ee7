"""What is kept of windows is read only by a job that keeps the same: the shape says the types of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.pipeline.state.aggregates import Aggregate, aggregate_of
from lading.pipeline.state.rules import WindowRule
from lading.service.compile import windows
from lading.service.facade import Lading


def shape_of(lading: Lading, inbox: Path, kind: pa.DataType) -> str:
    """Of the job as it would run now, with an amount of this type in its files."""
    columns = {"at": pa.array([0], pa.timestamp("us")), "amount": pa.array([1], pa.int64()).cast(kind)}
    pq.write_table(pa.table(columns), inbox / "1.parquet")
    compiled, _ = lading.compile(lading.job("j"), is_trial=True)
    compiled.source.close()
    assert compiled.stage is not None
    assert compiled.stage.state is not None
    assert isinstance(compiled.stage.state.rule, WindowRule)
    return compiled.stage.state.rule.shape


def test_parts_of_other_types_are_another_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inbox := tmp_path / "in").mkdir()
    with Lading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE DATABASE shop; USE shop; CREATE TABLE t (at DATETIME, total DOUBLE, most DOUBLE) USING delta"
        )
        lading.sql(
            'CREATE JOB j PROPERTIES("watermark.column"="at") ON STREAMING DO INSERT INTO t '
            f'SELECT window_start, sum(amount), max(amount) FROM FILE("uri"="{inbox}/*.parquet", "format"="parquet") '
            "GROUP BY window(at, '1 minute')"
        )
        kinds = (pa.int64(), pa.float64(), pa.decimal128(30, 2), pa.decimal128(30, 4), pa.string())
        shapes = [shape_of(lading, inbox, kind) for kind in kinds]
        assert len(set(shapes)) == len(kinds)

        def newer(*given: object) -> Aggregate:
            """As a version of Lading would have it that keeps the same in another type."""
            found = aggregate_of(*given)  # type: ignore[arg-type]
            return replace(found, parts=tuple(replace(part, type="decimal(38,0)") for part in found.parts))

        monkeypatch.setattr(windows, "aggregate_of", newer)
        assert shape_of(lading, inbox, kinds[0]) not in shapes
