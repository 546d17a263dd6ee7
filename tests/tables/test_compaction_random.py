"""Loads, compactions, deletes and strangers in any order: no row is lost or doubled, and each key stays in order."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.model.table import Column, TableSpec
from lading.tables.compaction.model import CompactionPolicy
from tests.support.examples import examples
from tests.tables.compacting import EAGER, Filled, filled, in_order
from tests.tables.rig import RigFactory
from tests.tables.rig_delta import delta_local
from tests.tables.rig_iceberg import iceberg_local

SPEC = TableSpec(columns=(Column(name="key", type="int"), Column(name="n", type="bigint")))
SCHEMA = pa.schema([("key", pa.int32()), ("n", pa.int64())])
STRANGE = 1_000_000
LAZY = CompactionPolicy(min_files=3, min_age=EAGER.min_age)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.lists(st.integers(0, 2), min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["compact", "compact", "lazy", "stranger", "checkpoint"]), st.just([0])),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 2), min_size=1, max_size=1)),
    ),
    min_size=3,
    max_size=10,
)


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.parametrize("make", [delta_local, iceberg_local])
@settings(max_examples=examples(8, costs=20), deadline=None)
@given(steps=STEPS)
def test_rows_and_their_order_survive(make: RigFactory, steps: list[tuple[str, list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = filled(make(Path(folder), None), batches=0, spec=SPEC)
        wanted: Counter[tuple[int, int]] = Counter()
        next_n = 0
        for step, keys in steps:
            if step == "load":
                rows = [{"key": key, "n": next_n + at} for at, key in enumerate(keys)]
                next_n += len(keys)
                made.add(pa.Table.from_pylist(rows, schema=SCHEMA))
                wanted.update((row["key"], row["n"]) for row in rows)
            elif step == "delete":
                _delete(made, keys[0])
                wanted = Counter({row: count for row, count in wanted.items() if row[0] != keys[0]})
            elif step == "stranger":
                made.rig.append_unrelated(made.name, pa.Table.from_pylist([{"key": 9, "n": STRANGE}], schema=SCHEMA))
                wanted[9, STRANGE] += 1
            elif step == "checkpoint" and make is delta_local:
                made.rig.stranger(made.name).create_checkpoint()  # type: ignore[attr-defined]
            else:
                made.compact(EAGER if step == "compact" else LAZY)
            assert Counter((row["key"], row["n"]) for row in made.read()) == wanted
        _check_order(made)
        assert made.table.read_head(made.job.job_id) == made.bill.head


def _delete(made: Filled, key: int) -> None:
    """A stranger deletes the rows of a key: the files that had some are written again, and are not Lading's then."""
    stranger = made.rig.stranger(made.name)  # type: ignore[attr-defined]
    if isinstance(stranger, deltalake.DeltaTable) or stranger.current_snapshot() is not None:
        stranger.delete(f"key = {key}")


def _check_order(made: Filled) -> None:
    last: dict[int, int] = {}
    own = {file.path for file in made.lake.live_files().files if file.is_ours}
    for row in in_order(made.lake, own):
        assert row["n"] > last.get(row["key"], -1)
        last[row["key"]] = row["n"]
