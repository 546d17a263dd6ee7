"""Reading ranges, on the quick imitation of a broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from lading.errors import StageError, TrimmedError
from lading.model.row_formats import CsvOptions, JsonOptions
from lading.model.rows import SplitEnd
from lading.sources.kafka import reader
from lading.sources.kafka.reader import read_splits
from lading.sources.kafka.spec import METADATA
from lading.sources.records.spec import RecordFormat, RecordKind
from lading.testing.clock import ManualClock
from tests.sources.kafka.support import FORMAT, new_name, read, row, spec_of, split_of
from tests.support.kafka_broker import MockKafka


def fill(mock: MockKafka, count: int, partition: int = 0, topic: str = "") -> str:
    name = topic or new_name()
    for number in range(count):
        mock.producer.produce(name, row(partition, number), partition=partition)
    assert mock.producer.flush(20) == 0
    return name


def test_no_splits_no_reading() -> None:
    assert list(read_splits(spec_of("127.0.0.1:1", "t"), [])) == []


def test_a_range_gives_its_records_and_no_others(mock: MockKafka) -> None:
    name = fill(mock, 100)
    got = read(spec_of(mock.bootstrap, name), [split_of(0, 10, 60)])
    assert got.numbers == list(range(10, 60))
    assert [one["__row"] for one in got.rows] == got.numbers
    assert {one["__file"] for one in got.rows} == {f"{name}/0"}
    (end,) = got.ends
    assert (end.end, end.rows, end.skipped, end.finished) == ("60", 50, 0, False)
    assert end.received_bytes == sum(len(row(0, number)) for number in range(10, 60))


def test_splits_come_one_after_the_other_each_with_its_end(mock: MockKafka) -> None:
    name = new_name()
    sizes = {0: 300, 1: 5, 2: 9000, 3: 40}
    for partition, count in sizes.items():
        fill(mock, count, partition, name)
    order: list[str] = []
    for item in read_splits(
        spec_of(mock.bootstrap, name), [split_of(p, 0, n, place) for place, (p, n) in enumerate(sizes.items())]
    ):
        if isinstance(item, SplitEnd):
            order.append(f"end {item.rows}")
        elif not order or order[-1] != f"rows {item.column(0)[0]}":
            order.append(f"rows {item.column(0)[0]}")
    assert order == ["rows 0", "end 300", "rows 1", "end 5", "rows 2", "end 9000", "rows 3", "end 40"]


def test_what_waits_of_later_ranges_is_bounded(mock: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_AHEAD_BYTES", 100)
    name = new_name()
    for partition in range(4):
        fill(mock, 3000, partition, name)
    got = read(spec_of(mock.bootstrap, name), [split_of(p, 0, 3000, p) for p in range(4)])
    assert [(one["k"], int(one["n"])) for one in got.rows] == [(str(p), n) for p in range(4) for n in range(3000)]
    assert [end.end for end in got.ends] == ["3000"] * 4


def test_records_without_a_value_are_counted_and_passed(mock: MockKafka) -> None:
    name = new_name()
    for value in (row("a", 1), None, b"", row("a", 2), None):
        mock.producer.produce(name, value, key="a", partition=0)
    mock.producer.flush(20)
    got = read(spec_of(mock.bootstrap, name), [split_of(0, 0, 5)])
    assert got.numbers == [1, 2]
    assert (got.ends[0].end, got.ends[0].rows, got.ends[0].skipped) == ("5", 2, 3)


@pytest.mark.parametrize(
    "format",
    [
        FORMAT,
        RecordFormat(kind=RecordKind.JSON, columns=("k", "n"), json=JsonOptions(strip_outer_array=True)),
        RecordFormat(kind=RecordKind.CSV, columns=("k", "n"), csv=CsvOptions(column_separator=",")),
    ],
)
def test_a_record_of_white_space_counts_as_every_other(mock: MockKafka, format: RecordFormat) -> None:
    name, is_csv = new_name(), format.kind is RecordKind.CSV
    good = b"a,1" if is_csv else b'{"k": "a", "n": 1}'
    good = b"[" + good + b"]" if format.json.strip_outer_array else good
    for value in (good, b"\n" if is_csv else b" \n\t ", good, b"" if is_csv else b"  "):
        mock.producer.produce(name, value, partition=0)
    mock.producer.flush(10)
    got = read(spec_of(mock.bootstrap, name, format=format), [split_of(0, 0, 4)])
    assert (got.ends[0].end, got.ends[0].rows, got.ends[0].skipped) == ("4", 2, 2)


def test_metadata_stands_beside_the_columns(mock: MockKafka) -> None:
    name = new_name()
    headers: list[tuple[str, str | bytes | None]] = [
        ("trace", b"x"),
        ("tag", b"1"),
        ("tag", b"\xff"),
        ("none", None),
        ("tag", b"3"),
    ]
    mock.producer.produce(
        name, row("a", 1), key=b"caf\xc3\xa9\xff", partition=2, timestamp=1_700_000_000_123, headers=headers
    )
    mock.producer.produce(name, row("a", 2), partition=2, timestamp=1_700_000_000_124)
    mock.producer.flush(20)
    spec = spec_of(mock.bootstrap, name, metadata=tuple(METADATA.names))
    first, second = read(spec, [split_of(2, 0, 2)]).rows
    assert first["_key"] == "café�"
    assert (first["_partition"], first["_offset"]) == (2, 0)
    assert first["_timestamp"] == datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_000)
    assert json.loads(first["_headers"]) == {"trace": "x", "tag": ["1", "�", "3"], "none": None}
    assert (second["_key"], second["_headers"], second["_offset"]) == (None, None, 1)


def test_bad_records_are_rows_too(mock: MockKafka) -> None:
    name = new_name()
    for value in (row("a", 1), b"{not json", row("a", 3)):
        mock.producer.produce(name, value, partition=0)
    mock.producer.flush(20)
    got = read(spec_of(mock.bootstrap, name), [split_of(0, 0, 3)])
    assert [one["__row"] for one in got.rows if one["__error"]] == [1]
    assert (got.ends[0].end, got.ends[0].rows) == ("3", 3)


def test_a_range_may_end_early_by_bytes_and_then_says_where(mock: MockKafka) -> None:
    name = fill(mock, 1000)
    got = read(spec_of(mock.bootstrap, name), [split_of(0, 0, 1000, size_bytes=len(row(0, 0)) * 3)])
    assert got.numbers == [0, 1, 2]
    assert got.ends[0].end == "3"
    assert read(spec_of(mock.bootstrap, name), [split_of(0, 3, 1000, size_bytes=1)]).numbers == [3]


def test_a_range_may_end_early_by_time_and_then_says_where(mock: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_BLOCK_ROWS", 100)
    name = new_name()
    for partition in range(2):
        fill(mock, 9000, partition, name)
    clock = ManualClock()
    splits = [split_of(partition, 0, 9000, partition, seconds=10) for partition in range(2)]
    rows, ends = [0], []
    for item in read_splits(spec_of(mock.bootstrap, name), splits, clock=clock):
        if isinstance(item, SplitEnd):
            ends.append(item)
            rows.append(0)
        else:
            rows[-1] += item.num_rows
            clock.sleep(4)
    assert all(0 < int(end.end) == end.rows < 9000 for end in ends)
    assert [end.rows for end in ends] == rows[:2]


def test_an_offset_that_is_not_there_is_an_error_and_not_an_empty_answer(mock: MockKafka) -> None:
    name = fill(mock, 10)
    with pytest.raises(TrimmedError, match=r"Offset out of range.*consume partition 0.*consume offset 50"):
        read(spec_of(mock.bootstrap, name), [split_of(0, 50, 60)])


def test_a_range_that_does_not_come_is_an_error_and_not_an_empty_answer(mock: MockKafka) -> None:
    name = fill(mock, 10)
    with pytest.raises(StageError, match=r"from offset 10: nothing came for 0\.5 seconds") as caught:
        read(spec_of(mock.bootstrap, name, patience_s=0.5), [split_of(0, 5, 20)])
    assert caught.value.retry


def test_no_broker_is_an_error_that_says_why() -> None:
    with pytest.raises(StageError, match="Connection refused"):
        read(spec_of("127.0.0.1:1", "t", patience_s=0.5), [split_of(0, 0, 5)])
