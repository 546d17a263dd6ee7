"""Partial aggregates that reading tasks compute are those of their rows, whether they add them up or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.clock import SystemClock
from lading.model.batch import StateFile
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state import partials as partials_module
from lading.pipeline.state.aggregates import DIGITS, aggregate_of
from lading.pipeline.state.files import TIME, StatePlace, StateWriter, read_state_file
from lading.pipeline.state.partials import Partials, PartialsWriter
from lading.pipeline.state.rules import START
from lading.pipeline.state.selected import Among, Ranked, Times, Wanted, read_rows
from lading.storage.local import LocalStore
from tests.support.examples import examples

SIZE_US = 60
KINDS = {
    "bigint": pa.int64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "double": pa.float64(),
}
ASKED = [("count", "string"), ("sum", "bigint"), ("sum", "decimal(10,2)"), ("sum", "double"), ("min", "bigint"),
         ("max", "string"), ("min", "decimal(10,2)"), ("bool_and", "boolean"), ("bool_or", "boolean")]  # fmt: skip
WHOLE = 1 + ASKED.index(("sum", "bigint"))
"""The place of a sum that is kept as digits."""
TOTALS = {"bigint": pa.int64(), "decimal(10,2)": pa.decimal128(38, 2), "double": pa.float64()}
VALUES = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "decimal(10,2)": st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100),
    "boolean": st.booleans(),
    "string": st.sampled_from(["", "a", "ä", "b"]),
    "double": st.integers(-1000, 1000).map(float),
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "x", "y"]),
        *(st.none() | VALUES[kind] for kind in KINDS),
        st.integers(-(10**6), 10**6),
    ),
    min_size=1,
    max_size=40,
)
MERGES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count": len, "sum": sum, "min": min, "max": max, "bool_and": all, "bool_or": any,
}  # fmt: skip


def place_at(path: Path) -> StatePlace:
    return StatePlace(open=partial(LocalStore, str(path)), folder="state")


def asked() -> Partials:
    """A count of rows, and all that Arrow can do."""
    parts, fields = [aggregate_of("count", [], "").parts[0]], [pa.field("p0", pa.int64())]
    columns = {kind: f"c{n + 1}" for n, kind in enumerate(KINDS)}
    for function, kind in ASKED:
        own = {"count": pa.int64(), "sum": TOTALS.get(kind)}.get(function, KINDS[kind])
        for part in aggregate_of(function, [(columns[kind], kind)], "").parts:
            parts.append(part)
            fields.append(pa.field(f"p{len(fields)}", own))
    keys = [pa.field("k0", pa.string()), pa.field(START, pa.int64())]
    schema = pa.schema([*keys, *fields, pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32())])
    found = tuple(part.in_tasks for part in parts if part.in_tasks is not None)
    assert len(found) == len(parts)
    return Partials(keys=1, size_us=SIZE_US, parts=found, schema=schema)


def written(place: StatePlace, rows: Sequence[tuple[Any, ...]]) -> tuple[StateFile, ...]:
    writer = PartialsWriter(StateWriter(place, "attempt"), asked())
    for first in range(0, len(rows), 7):
        columns = list(zip(*rows[first : first + 7], strict=True))
        arrays = [pa.array(columns[0], pa.string())]
        arrays += [pa.array(values, kind) for values, kind in zip(columns[1:-1], KINDS.values(), strict=True)]
        arrays += [pa.array(columns[-1], pa.int64()), pa.array([3] * len(columns[0]), pa.int32())]
        writer.write(pa.RecordBatch.from_arrays(arrays, names=[f"name {n}" for n in range(len(arrays))]))
    return writer.close()


def merged(rows: Sequence[dict[str, Any]]) -> dict[tuple[Any, int], list[Any]]:
    """As Spark merges them: sums of counts, and NULL where there is no value."""
    functions = ["sum", *("sum" if function == "count" else function for function, _ in ASKED)]
    functions[WHOLE:WHOLE] = ["sum"] * (len(DIGITS) - 1)
    groups: dict[tuple[Any, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["k0"], row[START]), []).append(row)
    found = {
        key: [_merge(function, [row[f"p{n}"] for row in group]) for n, function in enumerate(functions)]
        for key, group in groups.items()
    }
    for values in found.values():
        digits = values[WHOLE : WHOLE + len(DIGITS)]
        whole = None if None in digits else sum(digit << shift for digit, shift in zip(digits, DIGITS, strict=True))
        values[WHOLE : WHOLE + len(DIGITS)] = [whole]
    return found


def _merge(function: str, values: Sequence[Any]) -> Any:
    there = [value for value in values if value is not None]
    return MERGES[function](there) if there or function == "count" else None


@pytest.mark.parametrize("worth", [0.0, 1.0], ids=["each row for itself", "added up"])
def test_partial_aggregates_are_those_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: float
) -> None:
    monkeypatch.setattr(partials_module, "_WORTH", worth)
    place, order = place_at(tmp_path), list(KINDS)

    @settings(max_examples=examples(40), deadline=None)
    @given(rows=ROWS)
    def check(rows: list[tuple[Any, ...]]) -> None:
        files = written(place, rows)
        assert sum(file.of_rows for file in files) == len(rows)
        found = [row for file in files for row in read_state_file(place, file).to_pylist()]
        groups: dict[tuple[Any, int], list[tuple[Any, ...]]] = {}
        for row in rows:
            groups.setdefault((row[0], row[-1] - row[-1] % SIZE_US), []).append(row)
        assert merged(found) == {
            key: [
                len(group),
                *(_merge(function, [row[1 + order.index(kind)] for row in group]) for function, kind in ASKED),
            ]
            for key, group in groups.items()
        }
        assert all(row[TIME] == row[START] + SIZE_US and row[BUCKET] == 3 for row in found)
        assert worth == 0.0 or len(found) == len(groups)

    check()


def test_rows_far_ahead_of_the_clock_are_in_files_of_their_own(tmp_path: Path) -> None:
    now = int(SystemClock().now().timestamp()) * 1_000_000
    days = (-3000, 0, 0, 1.5, 33, 40, 3000)
    times = [now + int(day * 86_400_000_000) for day in days]
    files = written(place_at(tmp_path), [("k", *(None for _ in KINDS), time) for time in times])
    assert [file.of_rows for file in files] == [3, 1, 2, 1]
    assert all(file.min_us <= times[n] + 2 * SIZE_US for file, n in zip(files, (0, 3, 4, 6), strict=True))
    assert all(file.max_us >= times[n] for file, n in zip(files, (2, 3, 5, 6), strict=True))


def test_only_rows_that_are_asked_for_are_read(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    schema = pa.schema([("k0", pa.string()), (TIME, pa.int64()), (BUCKET, pa.int32())])
    known, other = StateWriter(place, "known"), StateWriter(place, "other")
    known.write(pa.record_batch([["a", "b", None, "c"], [1, 2, 3, 4], [0, 1, 2, 1]], schema=schema))
    other.write(
        pa.record_batch([[None, "b", "c"], [0, 0, 0], [0, 1, 1]], schema=schema).rename_columns(["c7", TIME, BUCKET])
    )
    files = [Ranked(file=file) for file in known.close()]

    def read(**wanted: Any) -> list[str | None]:
        batches = read_rows(place, files, Wanted(schema=schema, **wanted))
        return [name for batch in batches for name in batch.column("k0").to_pylist()]

    assert read() == ["a", "b", None, "c"]
    assert read(buckets=0b110) == ["b", None, "c"]
    assert read(times=Times(after_us=1, until_us=3)) == ["b", None]
    among = Among.of([Ranked(file=file) for file in other.close()], {"k0": "c7"})
    assert read(among=among) == ["b", None, "c"]
    assert read(among=among, buckets=0b010, times=Times(until_us=3)) == ["b"]
