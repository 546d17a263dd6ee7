"""REPLAY ERRORS of a routine load: records that could not be taken apart, moves of a stream. No Spark is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from lading.errors import JobStateError
from lading.model.batch import Split
from lading.model.load import LoadSpec
from lading.model.rows import SplitEnd
from lading.service.facade import Lading
from lading.sources import registry
from lading.sources.kind import OpenContext, OpenSource
from lading.sources.open_streams import StreamParts, opened_stream
from lading.sources.records.parser import RecordBlock, RecordParser, parse_record, stands_alone
from lading.sources.records.spec import RecordFormat, record_format
from tests.service.test_replays import VectorLading
from tests.sources.toy import BOXES, ToyKind, ToySource

NOTHING = pa.schema([])


class RecordToy(ToyKind):
    """The toy, with records that are taken apart as those of Kafka are."""

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        box, format = load.source.properties["toy_box"], record_format(load, context.columns)
        assert stands_alone(format, NOTHING)
        parts = StreamParts(
            source=ToySource(box),
            read=partial(read_records, box, format),
            parse=partial(parse_record, format),
            schema=RecordParser(format, NOTHING).schema,
            start=load.source.properties.get("toy_start", "0"),
            resolve=lambda moves: dict(moves),
        )
        return opened_stream(self, load, parts)


def read_records(box: str, format: RecordFormat, splits: Sequence[Split]) -> Iterator[pa.RecordBatch | SplitEnd]:
    for split in splits:
        first, end = int(split.start), int(split.end or split.start)
        values = [record.encode() for record in BOXES[box][split.partition][first:end]]
        block = RecordBlock(values, f"{box}/{split.partition}", list(range(first, end)), {})
        yield from RecordParser(format, NOTHING).parse(block)
        yield SplitEnd(end=str(end), rows=len(values))


@pytest.fixture
def lading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    monkeypatch.setitem(registry.STREAMS, "TOY", RecordToy())
    monkeypatch.setitem(BOXES, "csv", {"north": ["1,hare", "two,lynx", "3,newt,green"]})
    with VectorLading(tmp_path / "home", user="tester") as made:
        made.sql("CREATE TABLE t (id BIGINT NOT NULL, word STRING) USING delta")
        made.sql(
            "CREATE ROUTINE LOAD words ON t COLUMNS TERMINATED BY ',', COLUMNS (id, word) "
            'PROPERTIES ("max_filter_ratio"="1", "max_error_number"="10", "format"="csv") FROM TOY ("toy_box"="csv")'
        )
        made.run()
        yield made


def rows(lading: Lading) -> list[tuple[object, ...]]:
    location = lading.catalog.open_table("default", "t").location
    return sorted(pl.read_delta(location.removeprefix("file://")).rows())


def alter(lading: Lading, columns: str) -> None:
    if lading.sql("SHOW ROUTINE LOAD FOR words")[0].dicts()[0]["State"] != "PAUSED":
        lading.sql("PAUSE ROUTINE LOAD FOR words")
    lading.sql(f"ALTER ROUTINE LOAD FOR words COLUMNS ({columns})")


def replay(lading: Lading) -> str:
    return lading.sql("REPLAY ERRORS FOR words")[-1].message


def test_a_record_is_taken_apart_by_the_definition_of_now(lading: Lading) -> None:
    assert rows(lading) == [(1, "hare")]
    alter(lading, "id, word, colour")
    assert "1 bad row of job default.words was loaded" in replay(lading)
    assert rows(lading) == [(1, "hare"), (3, "newt")], "the other was read as columns of other names"
    assert "none of the 1 bad rows" in replay(lading)
    alter(lading, "id, word")
    assert "none of the 1 bad rows" in replay(lading)
    assert lading.verify("default.words").is_clean


def test_a_value_is_mapped_by_the_definition_of_now(lading: Lading) -> None:
    alter(lading, "id, word, id = coalesce(try_cast(id AS BIGINT), 2)")
    assert "1 bad row of" in replay(lading)
    assert rows(lading) == [(1, "hare"), (2, "lynx")]


def test_a_stream_that_was_moved_back_is_refused_and_one_that_went_on_is_not(lading: Lading) -> None:
    alter(lading, "id, word, colour")
    lading.sql('ALTER ROUTINE LOAD FOR words FROM TOY ("toy_start"="1")')
    with pytest.raises(JobStateError, match=r"may be loaded twice.*only what lies behind the position"):
        replay(lading)
    lading.sql("UNDO ALTER ROUTINE LOAD FOR words")
    BOXES["csv"]["north"] += ["7,ibex", "8,boar"]
    lading.sql('ALTER ROUTINE LOAD FOR words FROM TOY ("toy_start"="4")')
    assert "1 bad row of" in replay(lading)
    lading.sql("RESUME ROUTINE LOAD FOR words")
    lading.run()
    assert (3, "newt") in rows(lading)
    assert len(rows(lading)) == 2, "records of now have two fields, and the definition asks for three"


def test_records_of_a_stream_are_taken_apart_into_rows(lading: Lading, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions count records, and totals rows; a batch may begin and end at any record."""
    boxes = ['{"id":1,"words":["hare","lynx"]}', '{"id":2,"words":[]}', "{", '{"id":3,"words":["newt"]}']
    monkeypatch.setitem(BOXES, "json", {"north": boxes})
    lading.sql("CREATE TABLE w (id BIGINT NOT NULL, word STRING) USING delta")
    lading.sql(
        "CREATE ROUTINE LOAD parts ON w COLUMNS (id, words, word = upper(explode(words))) "
        'PROPERTIES ("max_filter_ratio"="1", "max_error_number"="10", "format"="json", "max_batch_rows"="200000") '
        'FROM TOY ("toy_box"="json")'
    )
    lading.run()
    BOXES["json"]["north"].append('{"id":4,"words":["toad","crow"]}')
    lading.run()
    location = lading.catalog.open_table("default", "w").location.removeprefix("file://")
    assert sorted(pl.read_delta(location).rows()) == [(1, "HARE"), (1, "LYNX"), (3, "NEWT"), (4, "CROW"), (4, "TOAD")]
    (job,) = [stored.record for stored in lading.store.list_jobs() if stored.record.name == "parts"]
    counted = lading.bills(job, 1)[0].totals.rows
    assert (counted.total, counted.loaded, counted.error, counted.unselected) == (7, 5, 1, 1)
    # The record that could not be taken apart may be several rows: it stays in quarantine.
    lading.sql("PAUSE ROUTINE LOAD FOR parts")
    assert "none of the 1 bad rows" in lading.sql("REPLAY ERRORS FOR parts")[-1].message
