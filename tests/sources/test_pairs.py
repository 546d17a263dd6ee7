"""Two sources as one: every question is asked of both, and told under the names of their sides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lading.errors import ListingError, SourceError, SqlError
from lading.model.batch import Limits, Split
from lading.model.load import LoadSpec
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.model.rows import SplitEnd
from lading.net.addresses import EVERY_PRIVATE
from lading.plan.planner import Planner
from lading.service.security.reach import hosts_of
from lading.sources.kind import OpenContext, OpenSource
from lading.sources.pairs.source import PairSource
from lading.sources.registry import check_load, kind_of
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.load_specs import load_spec, load_with_secrets
from lading.sql.syntax.masking import mask
from lading.sql.syntax.parse import parse_statement
from lading.sql.syntax.render import render
from lading.testing.clock import ManualClock
from lading.testing.marked import secret

CSV = '"format"="csv_with_names", "column_separator"=","'
KAFKA = '"kafka_broker_list"="broker:9092", "kafka_topic"="orders", "format"="json"'


def create(left: str, right: str, properties: str = "") -> CreateJob:
    made = parse_statement(
        f'CREATE JOB j PROPERTIES("watermark.column"="a.at, b.at"{properties}) ON STREAMING DO '
        f"INSERT INTO shop.t SELECT a.v, b.v FROM {left} AS a JOIN {right} AS b ON a.k = b.k AND b.at = a.at"
    )
    assert isinstance(made, CreateJob)
    return made


def folders(path: Path) -> tuple[CreateJob, LoadSpec]:
    for name in ("one", "two"):
        (path / name).mkdir()
    statement = create(*(f'FILE("uri"="{path}/{name}/*.csv", {CSV})' for name in ("one", "two")))
    check_load(statement)
    return statement, load_with_secrets(statement)


def opened(load: LoadSpec, *columns: str) -> OpenSource:
    context = OpenContext(consumer="j", clock=ManualClock(), addresses=EVERY_PRIVATE, reads_rows=True, is_trial=True)
    return kind_of(load.source.kind).open(load, replace(context, columns=columns))


def put(path: Path, name: str, *rows: str) -> None:
    (path / name).write_text("\n".join(["k,at,v", *rows]) + "\n")


def read(source: OpenSource, splits: tuple[Split, ...]) -> tuple[list[dict[str, Any]], list[SplitEnd]]:
    items = list(source.read(splits))
    batches = [item for item in items if isinstance(item, pa.RecordBatch)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    return rows, [item for item in items if isinstance(item, SplitEnd)]


def test_both_are_planned_and_read_as_one(tmp_path: Path) -> None:
    _, load = folders(tmp_path)
    put(tmp_path / "one", "1.csv", "x,2026-01-01,1", "y,2026-01-02,2")
    put(tmp_path / "two", "1.csv", "x,2026-01-03,3")
    source, kind = opened(load), kind_of(load.source.kind)
    assert source.schema is not None
    assert source.schema.names == ["a.k", "a.at", "a.v", "b.k", "b.at", "b.v"]
    planner = Planner(source.driver, ManualClock())
    base = planner.open(source.start)
    one, two = f"left.file://{tmp_path}/one/", f"right.file://{tmp_path}/two/"
    assert sorted(base.partitions) == [one, two]
    plan = planner.plan(base, Limits())
    assert [(split.number, split.partition) for split in plan.splits] == [(0, one), (1, two)]
    rows, ends = read(source, plan.splits)
    shown = [{name: row[name] for name in row if not name.startswith("__") and row[name] is not None} for row in rows]
    assert shown == [
        {"a.k": "x", "a.at": "2026-01-01", "a.v": "1"},
        {"a.k": "y", "a.at": "2026-01-02", "a.v": "2"},
        {"b.k": "x", "b.at": "2026-01-03", "b.v": "3"},
    ]
    assert [end.rows for end in ends] == [2, 1]
    after = Positions(partitions={split.partition: PartitionState(at=split.end or "") for split in plan.splits})
    text = json.loads(kind.position_text(after))
    assert {side: Path(place["fileName"]).parent.name for side, place in text.items()} == {
        "left": "one",
        "right": "two",
    }
    assert set(json.loads(source.show_range(plan, None))) == {"left", "right"}
    assert source.survey is not None
    assert source.survey(base).pending == {one: 1, two: 1}


def test_a_side_of_texts_without_a_file_is_expected_and_not_read(tmp_path: Path) -> None:
    _, load = folders(tmp_path)
    put(tmp_path / "one", "1.csv", "x,2026-01-01,1")
    source = opened(load, "a.k", "b.k", "b.v")
    assert source.schema is not None
    assert source.schema.names == ["a.k", "a.at", "a.v", "b.k", "b.v"]
    assert (source.is_provisional, source.can_learn_columns()) == (True, False)
    planner = Planner(source.driver, ManualClock())
    base = planner.open(source.start)
    for _ in range(2):  # Also when a file has come since: its columns are not known to who reads it.
        plan = planner.plan(base, Limits())
        assert [split.partition for split in plan.splits] == [f"left.file://{tmp_path}/one/"]
        assert read(source, plan.splits)[0][0]["b.v"] is None
        put(tmp_path / "two", "1.csv", "x,2026-01-01,1")
    assert source.can_learn_columns()
    again = opened(load, "a.k", "b.k", "b.v")
    assert (again.is_provisional, again.can_learn_columns()) == (False, False)


def test_a_side_whose_types_nobody_knows_leaves_the_columns_open(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    right = f'FILE("uri"="{tmp_path}/two/*.parquet", "format"="parquet")'
    load = load_with_secrets(create(f'FILE("uri"="{tmp_path}/one/*.csv", {CSV})', right))
    source = opened(load, "a.k", "b.k")
    assert (source.schema, source.is_provisional) == (None, False)
    put(tmp_path / "one", "1.csv", "x,2026-01-01,1")
    assert not source.can_learn_columns()
    pq.write_table(pa.table({"k": ["x"]}), tmp_path / "two" / "1.parquet")
    assert source.can_learn_columns()


def test_a_move_is_told_for_the_side_that_is_moved(tmp_path: Path) -> None:
    _, load = folders(tmp_path)
    for number in (1, 2, 3):
        put(tmp_path / "two", f"{number}.csv", "x,2026-01-01,1")
    put(tmp_path / "one", "1.csv", "x,2026-01-01,1")
    source, kind = opened(load), kind_of(load.source.kind)
    last = str(tmp_path / "two" / "3.csv")
    moved = f"right.file://{tmp_path}/two/"
    states = {f"left.file://{tmp_path}/one/": PartitionState(at=""), moved: PartitionState(at=last)}
    offset = json.dumps({"right": {"fileName": str(tmp_path / "two" / "1.csv")}})
    places = source.resolve(kind.places_of(offset, states))
    assert list(places) == [moved]
    move = kind.plan_move(source, moved, states[moved], places[moved])
    assert (move.partition, move.direction, move.again) == (moved, "BACK", 2)
    for wrong in ('{"middle": {"fileName": "x"}}', "7", '{"fileName": "x"}'):
        with pytest.raises(SqlError, match="does not say which stream is moved"):
            kind.places_of(wrong, states)


def test_hosts_and_secrets_of_both_are_known_and_shown_by_nobody() -> None:
    keys = f'"s3.access_key"="{secret("id")}", "s3.secret_key"="{secret("key")}"'
    bucket = f'S3("uri"="s3://b/*.csv", {CSV}, "s3.endpoint"="http://store:9000", {keys})'
    statement = create(bucket, f"KAFKA({KAFKA})")
    check_load(statement)
    load = load_with_secrets(statement)
    hosts = {(each.property, each.host) for each in hosts_of(load.source)}
    assert {("left.s3.endpoint", "store"), ("right.kafka_broker_list", "broker")} <= hosts
    assert all("uri" not in name for name, _ in hosts)
    assert [name for name in load_spec(statement).source.properties if "key" in name] == []
    assert '"s3.secret_key" = "******"' in render(mask(statement))
    kind = kind_of(load.source.kind)
    assert not kind.uses_service_identity(load.source.properties)
    assert kind.uses_service_identity(load_spec(statement).source.properties)
    assert not kind.is_local(load.source.properties)
    assert kind_of("KAFKA+FILE").is_local({"right.uri": "/etc/*"})


def test_each_side_is_checked_as_if_it_were_alone() -> None:
    with pytest.raises(SqlError, match="kafka_topic"):
        check_load(create(f'FILE("uri"="/in/*.csv", {CSV})', 'KAFKA("kafka_broker_list"="h:1")'))
    once = ', "s3.ingestion_mode"="ONCE"'
    with pytest.raises(SqlError, match="goes on for ever"):
        check_load(create(f'FILE("uri"="/in/*.csv", {CSV})', f"KAFKA({KAFKA})", once))
    statement = create(f"KAFKA({KAFKA})", 'KINESIS("aws.region"="eu-west-1", "kinesis_stream"="s", "format"="json")')
    check_load(statement)
    assert kind_of("KAFKA+KINESIS").way(PartitionState(at="1"), PartitionState(at="2")) == "UNKNOWN"
    assert parse_statement(render(statement)) == statement


def test_one_group_cannot_tell_the_progress_of_two_readers_of_a_topic() -> None:
    own, other = (f'KAFKA({KAFKA}, "property.group.id"="{group}")' for group in ("lag", "lag2"))
    with pytest.raises(SqlError, match=r"Both streams read orders with the property\.group\.id 'lag'"):
        check_load(create(own, own))
    elsewhere = own.replace('"orders"', '"refunds"')
    for left, right in ((own, other), (own, elsewhere), (f"KAFKA({KAFKA})", f"KAFKA({KAFKA})")):
        check_load(create(left, right))


def test_both_are_closed_also_when_one_cannot_be() -> None:
    closed = list[str]()

    def close(name: str) -> None:
        closed.append(name)
        msg = f"{name} cannot be closed"
        raise SourceError(msg, left="", todo="")

    for broken in ("left", "right"):
        sides = {
            side: SimpleNamespace(close=partial(close if side == broken else closed.append, side))
            for side in ("left", "right")
        }
        with pytest.raises(SourceError, match=f"{broken} cannot be closed"):
            PairSource(cast("Any", sides)).close()
    assert sorted(closed) == ["left", "left", "right", "right"]


class Side:
    """A source of which one partition may be gone."""

    def __init__(self, names: set[str], *, can_shrink: bool) -> None:
        self.names, self.can_shrink = names, can_shrink

    def list_partitions(self) -> Listing:
        return Listing(partitions={name: ListedPartition() for name in self.names}, can_shrink=self.can_shrink)

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        return ()


def test_partitions_of_one_side_go_also_when_those_of_the_other_never_do() -> None:
    topic, stream = Side({"0", "1"}, can_shrink=False), Side({"s1", "s2"}, can_shrink=True)
    sides = {
        side: SimpleNamespace(driver=driver, schema=pa.schema([]))
        for side, driver in (("left", topic), ("right", stream))
    }
    planner = Planner(PairSource(cast("Any", sides)), ManualClock(), on_data_loss="CONTINUE")
    known = {name: PartitionState(at="5") for name in ("left.0", "left.1", "right.s1", "right.s2")}
    stream.names.remove("s1")
    plan = planner.plan(Positions(partitions=known), Limits())
    assert [gap.partition for gap in plan.gaps] == ["right.s1"]
    assert plan.positions.partitions["right.s1"].given_up
    topic.names.remove("1")
    with pytest.raises(ListingError, match=r"left\.1, and its partitions never go"):
        planner.plan(Positions(partitions=known), Limits())
