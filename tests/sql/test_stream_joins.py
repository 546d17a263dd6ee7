"""ON of two streams: which interval of time, which keys, and what else it asks for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lading.errors import NotSupportedError, SqlError
from lading.model.load import StreamJoinSpec
from lading.service.compile.listening import listen_rule
from lading.service.compile.stream_joins import map_stream_rows
from lading.service.edits.state_moves import _keys
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.load_specs import load_spec
from lading.sql.statements.stream_joins import stream_keys
from lading.sql.syntax.parse import parse_statement

MINUTE = 60_000_000
DAY = 1440 * MINUTE


def create(on: str, *, join: str = "JOIN", properties: str = "") -> CreateJob:
    made = parse_statement(
        f'CREATE JOB j PROPERTIES("watermark.column"="A.ts, b.`ts`"{properties}) ON STREAMING DO INSERT INTO shop.t '
        f'SELECT a.x, b.y FROM S3("uri"="s3://b/a*", "format"="csv") AS a {join} S3("uri"="s3://b/b*", "format"="csv") '
        f"AS b ON {on}"
    )
    assert isinstance(made, CreateJob)
    return made


def spec_of(on: str) -> StreamJoinSpec:
    found = load_spec(create(on)).stream_join
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("on", "low", "high"),
    [
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES", 0, 10 * MINUTE),
        ("a.ts BETWEEN b.ts - INTERVAL 10 MINUTES AND b.ts", 0, 10 * MINUTE),
        ("b.ts >= a.ts - INTERVAL 1 HOUR AND b.ts < a.ts", -60 * MINUTE, -1),
        ("a.ts - INTERVAL 1 MINUTE <= b.ts AND a.ts + INTERVAL '2' MINUTE > b.ts", -MINUTE, 2 * MINUTE - 1),
        ("b.ts - INTERVAL 5 SECOND = a.ts", 5_000_000, 5_000_000),
        ("b.ts = a.ts", 0, 0),
        ("(b.ts > date_sub(a.ts, INTERVAL 1 DAY)) AND b.ts <= date_add(a.ts, INTERVAL 1 WEEK)", 1 - DAY, 7 * DAY),
        ("b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts + INTERVAL 3 HOUR AND b.ts >= a.ts", 0, 180 * MINUTE),
        (
            "b.ts >= a.ts + INTERVAL 1 HOUR - INTERVAL 30 MINUTE AND b.ts <= INTERVAL 1 HOUR + a.ts",
            30 * MINUTE,
            60 * MINUTE,
        ),
    ],
)
def test_both_ends_of_the_interval_are_found_however_they_are_written(on: str, low: int, high: int) -> None:
    for condition in (f"a.k = b.k AND {on}", f"({on}) AND b.k = a.k"):
        spec = spec_of(condition)
        assert (spec.times, spec.low_us, spec.high_us) == (("ts", "ts"), low, high)


def test_keys_and_other_conditions_are_told_apart() -> None:
    spec = spec_of("b.k = lower(a.k) AND a.n <= b.n AND a.m = 3 AND b.ts BETWEEN a.ts AND a.ts AND b.z = a.z")
    found = stream_keys(spec, "a", strict_cast=False)
    assert [(one.text, other.text) for one, other in found.keys] == [("LOWER(`a.k`)", "`b.k`"), ("`a.z`", "`b.z`")]
    assert sorted(part.text for part in found.rest) == ["`a.m` = 3", "`a.n` <= `b.n`"]


@pytest.mark.parametrize(
    "on",
    [
        "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES OR a.x = b.x",
        "b.other BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES",
        "b.ts >= a.ts AND b.ts <= a.ts + INTERVAL 1 YEAR",
        "NOT (b.ts < a.ts) AND b.ts < a.ts + INTERVAL 1 DAY",
        "b.ts >= a.ts AND b.ts < a.ts + INTERVAL a.n DAY",
    ],
)
def test_what_is_no_interval_of_both_event_times_is_none(on: str) -> None:
    with pytest.raises(SqlError, match="rows would be kept for ever"):
        load_spec(create(f"a.k = b.k AND ({on})"))


def test_partitions_wait_for_results_that_may_still_come() -> None:
    more = ', "listener.l.type"="success_file", "partition.idle_time_to_done"="1 minute"'
    on = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 1 MINUTE AND a.ts + INTERVAL 2 MINUTES"
    rule = listen_rule(load_spec(create(on, properties=more)), ())
    assert rule is not None
    assert rule.hold_us == 3 * MINUTE + 1
    with pytest.raises(SqlError, match="a join of two streams, and it has listeners"):
        listen_rule(load_spec(create(on, properties=f'{more}, "s3.ingestion_mode"="ONCE"')), ())


INTERVAL = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES"


@pytest.mark.parametrize(
    "on", ["a.e > now()", "a.e > current_timestamp", "datediff(curdate(), a.d) = b.n", "b.amount > rand() * 5"]
)
def test_a_condition_that_is_another_one_each_time_is_refused(on: str) -> None:
    """A pair is judged when it comes, and a row without one again when it is done: it was written twice, or never."""
    with pytest.raises(SqlError, match="is another value each time"):
        load_spec(create(f"a.k = b.k AND {INTERVAL} AND {on}", join="LEFT JOIN"))
    assert spec_of(f"a.k = b.k AND {INTERVAL} AND a.now = b.rand")


def test_what_a_left_join_asks_for_belongs_to_its_state() -> None:
    """Rows that matched by the old condition would be written alone by the new one, and others never."""

    def kept(on: str, join: str, properties: str = "") -> object:
        return _keys(load_spec(create(f"a.k = b.k AND {INTERVAL} AND {on}", join=join, properties=properties)))

    assert kept("b.y > 10", "LEFT JOIN") != kept("b.y > 100", "LEFT JOIN")
    assert kept("b.y > 10", "JOIN") == kept("b.y > 100", "JOIN")
    zone = ', "session.time_zone"="Asia/Shanghai"'
    assert kept("b.y > 10", "JOIN") != kept("b.y > 10", "JOIN", zone)


def test_a_text_and_a_time_without_a_zone_are_not_taken_for_times_of_one_zone() -> None:
    columns = [(f"{side}.{name}", pa.string()) for side in "ab" for name in "kxy"]
    source = pa.schema([*columns, ("a.ts", pa.string()), ("b.ts", pa.timestamp("us"))])

    def compiled(properties: str) -> object:
        load = load_spec(create(f"a.k = b.k AND {INTERVAL}", properties=properties))
        assert load.stream_join is not None
        return map_stream_rows(load, load.stream_join, source, "")

    assert compiled("")
    with pytest.raises(SqlError, match="one is a text, which is a time in Asia/Shanghai"):
        compiled(', "session.time_zone"="Asia/Shanghai"')


def test_a_name_that_only_a_pair_has_is_no_source() -> None:
    for one, other in (("`S3+X`", "S3"), ("S3", "`S3+X`")):
        with pytest.raises(NotSupportedError):
            parse_statement(
                f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT a.x FROM {one}("uri"="a") AS a '
                f'JOIN {other}("uri"="b") AS b ON a.x = b.x'
            )
