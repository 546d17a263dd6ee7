"""Arrays are taken apart where rows are read: every element is a row, and every record is accounted for."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.pipeline import exploding
from lading.pipeline.exploding import Exploding
from lading.sources.hidden import HIDDEN

SPLITS = [Split(number=0, partition="p", start="0", end="9")]


def read(columns: dict[str, pa.Array], errors: dict[int, str], splits: Sequence[Split]) -> Iterator[Any]:
    """A batch for each split, with numbered rows."""
    count = len(next(iter(columns.values())))
    reasons = [errors.get(number) for number in range(count)]
    hidden = [
        pa.array(["f"] * count),
        pa.array(range(1, count + 1), pa.int64()),
        pa.array([b"raw" if reason else None for reason in reasons], pa.binary()),
        pa.array(reasons, pa.string()),
    ]
    for _ in splits:
        yield pa.RecordBatch.from_arrays([*columns.values(), *hidden], names=[*columns, *HIDDEN.names])
        yield SplitEnd(end="9", rows=count, skipped=1)


def explode(
    values: pa.Array, *, keeps_empty: bool = False, errors: dict[int, str] | None = None
) -> tuple[list[tuple[Any, ...]], list[SplitEnd]]:
    columns = {"id": pa.array(range(len(values)), pa.int64()), "x": values}
    made = Exploding(read=partial(read, columns, errors or {}), column="x", keeps_empty=keeps_empty)
    rows, ends = list[tuple[Any, ...]](), list[SplitEnd]()
    for item in pickle.loads(pickle.dumps(made))(SPLITS):
        if isinstance(item, SplitEnd):
            ends.append(item)
        else:
            item.validate(full=True)
            rows += [tuple(row[name] for name in ("id", "x", "__row", "__error")) for row in item.to_pylist()]
    assert [end.rows for end in ends] == [len(rows)]
    return rows, ends


TEXTS = ['[1.10,"a",{"k":[1.0]},null,true]', "[]", None, "null", '["b"]']


def test_each_element_of_a_text_is_a_row_with_its_letters() -> None:
    rows, (end,) = explode(pa.array(TEXTS))
    assert rows == [
        (0, "1.10", 1, None),
        (0, "a", 1, None),
        (0, '{"k":[1.0]}', 1, None),
        (0, None, 1, None),
        (0, "true", 1, None),
        (4, "b", 5, None),
    ]
    assert end.skipped == 1 + 3


def test_empty_arrays_are_rows_where_they_are_kept() -> None:
    rows, (end,) = explode(pa.array(TEXTS), keeps_empty=True)
    assert [row[:2] for row in rows[5:]] == [(1, None), (2, None), (3, None), (4, "b")]
    assert end.skipped == 1


@pytest.mark.parametrize("text", ["{}", '"a"', "7", "[1", "", "[NaN]", '["\\ud800"]', "[" * 5000 + "]" * 5000])
@pytest.mark.parametrize("keeps_empty", [True, False])
def test_what_is_no_array_is_one_bad_row(text: str, *, keeps_empty: bool) -> None:
    rows, (end,) = explode(pa.array(["[1]", text, "[2]"]), keeps_empty=keeps_empty)
    assert [row[:2] for row in rows] == [(0, "1"), (1, None), (2, "2")]
    assert rows[1][3] == f"cannot explode '{text[:100]}': it is no array"
    assert end.skipped == 1


def test_rows_that_could_not_be_read_stay_one() -> None:
    rows, (end,) = explode(pa.array([None, "[1,2]"]), errors={0: "bad"})
    assert rows == [(0, None, 1, "bad"), (1, "1", 2, None), (1, "2", 2, None)]
    assert end.skipped == 1


@pytest.mark.parametrize("of", [pa.list_, pa.large_list])
def test_arrays_of_typed_files_keep_the_type_of_their_elements(of: Any) -> None:
    kind = of(pa.struct([("n", pa.int64())]))
    values = pa.array([[{"n": 9}], [{"n": 1}, None, {"n": 2}], None, [], [{"n": 3}]], kind).slice(1)
    rows, (end,) = explode(values)
    assert [row[:2] for row in rows] == [(0, {"n": 1}), (0, None), (0, {"n": 2}), (3, {"n": 3})]
    assert end.skipped == 1 + 2
    rows, _ = explode(values, keeps_empty=True, errors={3: "bad"})
    assert [row[:2] for row in rows] == [(0, {"n": 1}), (0, None), (0, {"n": 2}), (1, None), (2, None), (3, None)]


def test_what_stands_beside_is_not_repeated_in_one_large_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploding, "MAX_BYTES", 1000)
    columns = {"long": pa.array(["y" * 300, "z"]), "x": pa.array(["[1,2,3,4,5,6,7]", "[8]"])}
    batches = list(Exploding(read=partial(read, columns, {}), column="x")(SPLITS))
    found = [item.num_rows for item in batches if isinstance(item, pa.RecordBatch)]
    assert (found, sum(found)) == ([2, 2, 2, 2], 8)
    monkeypatch.setattr(exploding, "MAX_ROWS", 1)
    assert (
        sum(isinstance(item, pa.RecordBatch) for item in Exploding(read=partial(read, columns, {}), column="x")(SPLITS))
        == 8
    )


@pytest.mark.parametrize("values", [pa.array(TEXTS * 40), pa.array([[1, 2], None, [3]] * 50, pa.list_(pa.int64()))])
def test_long_arrays_are_taken_apart_a_few_at_a_time(values: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explode(values), explode(values, keeps_empty=True)
    monkeypatch.setattr(exploding, "MOST_ARRAY_BYTES", 50)
    assert (explode(values), explode(values, keeps_empty=True)) == whole


def test_a_batch_of_nothing_but_empty_arrays_gives_none() -> None:
    rows, (end,) = explode(pa.array(["[]", None]))
    assert (rows, end.skipped) == ([], 3)
