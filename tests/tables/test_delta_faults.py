"""Faults of Delta tables that were found by use: each would have written something that readers take for the truth."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lading.errors import SchemaMismatchError
from lading.model.outcome import Landed
from lading.model.table import Column, TableSpec
from lading.tables.delta.create import create_delta_table
from lading.tables.delta.writer import DeltaWriter
from tests.tables.delta_by_hand import change_field
from tests.tables.drive import load, new_job, opening, put_and_commit

MANY = 40
"""More columns than get statistics when the table does not say."""


@pytest.mark.parametrize(("value", "fits"), [(None, False), (7, True)])
def test_a_column_without_statistics_that_became_required_takes_no_null(
    tmp_path: Path, value: int | None, fits: bool
) -> None:
    names = [f"c{number}" for number in range(MANY)]
    table = create_delta_table(str(tmp_path), TableSpec(columns=tuple(Column(name=name, type="int") for name in names)))
    writer, job = DeltaWriter(table.writer_spec(), "a"), new_job()
    first = opening(job)
    put_and_commit(table, first)
    writer.write(pa.record_batch([pa.array([7, value], pa.int32())] * MANY, names=names))
    bill = load(job, first, writer.close())
    change_field(tmp_path, names[-1], nullable=False)
    if fits:
        assert isinstance(put_and_commit(table, bill), Landed)
        return
    with pytest.raises(SchemaMismatchError, match=f"nulls in column {names[-1]}"):
        put_and_commit(table, bill)
