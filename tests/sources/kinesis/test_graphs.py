"""Shard graphs as data: where a job opens, and what it may read then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from lading.errors import ConfigError
from lading.model.batch import Limits
from lading.model.positions import PartitionState, merge_listing, ready_partitions
from lading.sources.kinesis.starts import render_start
from lading.testing.clock import ManualClock
from tests.sources.kinesis.support import Job, make_spec, shard
from tests.support.kinesis.fake import FakeKinesis

HOUR = 3600.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Graph:
    """How a stream came to be, where a job starts, and what it must know then.

    story: `s0` splits shard 0, `m1,2` merges 1 and 2, `p0` puts a record into 0, `w3` waits 3 hours; retention is 24.
    opens: per shard `H` from the horizon, `T` from a time, `A` at a number, `N` after one, `B` from its beginning,
    `F` finished. reads: shards that are ready at once. then: a story after the opening; late: what is ready after it.
    """

    story: str
    start: str
    opens: str
    reads: str
    then: str = ""
    late: str = ""
    pinned: str = ""
    shards: int = 1


GRAPHS = {
    # From the oldest record that is kept.
    "one shard": Graph("", "TRIM_HORIZON", "0:H", "0"),
    "one shard with rows": Graph("p0 p0", "TRIM_HORIZON", "0:H", "0"),
    "three shards": Graph("", "TRIM_HORIZON", "0:H 1:H 2:H", "0 1 2", shards=3),
    "split: children wait": Graph("p0 s0", "TRIM_HORIZON", "0:H 1:H 2:H", "0"),
    "split of an empty parent: children wait all the same": Graph("s0", "TRIM_HORIZON", "0:H 1:H 2:H", "0"),
    "merge: the child waits for both": Graph("m0,1", "TRIM_HORIZON", "0:H 1:H 2:H", "0 1", shards=2),
    "grandchildren wait": Graph("s0 s1", "TRIM_HORIZON", "0:H 1:H 2:H 3:H 4:H", "0"),
    "split then merge of the halves": Graph("s0 m1,2", "TRIM_HORIZON", "0:H 1:H 2:H 3:H", "0"),
    "merge of uneven epochs": Graph("s0 m2,1", "TRIM_HORIZON", "0:H 1:H 2:H 3:H", "0"),
    "merge of a child with an old neighbour": Graph("s0 m3,1", "TRIM_HORIZON", "0:H 1:H 2:H 3:H 4:H", "0 1", shards=2),
    "the parent has expired": Graph("s0 w25", "TRIM_HORIZON", "1:H 2:H", "1 2"),
    "one parent of a merge has expired with it": Graph("m0,1 w25", "TRIM_HORIZON", "2:H", "2", shards=2),
    "grandparent expired, parent kept": Graph("s0 w25 s1", "TRIM_HORIZON", "1:H 2:H 3:H 4:H", "1 2"),
    "half of the lineage expired": Graph("s0 w20 s1 w5 m3,4", "TRIM_HORIZON", "1:H 2:H 3:H 4:H 5:H", "1 2"),
    # From a moment.
    "time: open shards": Graph("w3", "AT -1", "0:T 1:T", "0 1", shards=2),
    "time before the split: all of it": Graph("w3 s0 w1", "AT -2", "0:T 1:T 2:T", "0"),
    "time after the split: the parent is done": Graph("w3 s0 w3", "AT -1", "0:F 1:T 2:T", "1 2"),
    "time between two generations": Graph("s0 w4 s1 w1", "AT -2", "0:F 1:T 2:T 3:T 4:T", "1 2"),
    "time before a merge": Graph("w3 m0,1 w1", "AT -2", "0:T 1:T 2:T", "0 1", shards=2),
    "time after a merge": Graph("w3 m0,1 w2", "AT -1", "0:F 1:F 2:T", "2", shards=2),
    "time between uneven epochs": Graph("s0 w4 m3,1 w2", "AT -3", "0:F 1:T 2:T 3:T 4:T", "1 2 3", shards=2),
    "time older than the horizon": Graph("s0 w2", "AT -48", "0:H 1:H 2:H", "0"),
    "time, and the parent expired": Graph("s0 w25 s1 w2", "AT -1", "1:F 2:T 3:T 4:T", "2 3 4"),
    # From now on.
    "latest: empty shard": Graph("", "LATEST", "0:T", "0"),
    "latest: rows long ago": Graph("p0 w1", "LATEST", "0:T", "0"),
    "latest: rows a moment ago are behind it": Graph("p0 p0", "LATEST", "0:N", "0"),
    "latest: split long ago": Graph("p0 s0 w1", "LATEST", "0:F 1:T 2:T", "1 2"),
    "latest: split this moment": Graph("p0 s0", "LATEST", "0:F 1:T 2:T", "1 2"),
    "latest: merge long ago": Graph("m0,1 w1", "LATEST", "0:F 1:F 2:T", "2", shards=2),
    "latest: three generations": Graph("s0 w1 s1 w1 s3 w1", "LATEST", "0:F 1:F 2:T 3:F 4:T 5:T 6:T", "2 4 5 6"),
    "latest: uneven epochs": Graph("s0 w1 m3,1 w1", "LATEST", "0:F 1:F 2:T 3:F 4:T", "2 4", shards=2),
    "latest: parent expired": Graph("s0 w25", "LATEST", "1:T 2:T", "1 2"),
    "latest, then a split: children from their beginning": Graph(
        "w1", "LATEST", "0:T", "0", then="s0", late="0:T 1:B 2:B; 0"
    ),
    "latest, then a split and the parent is done": Graph(
        "w1", "LATEST", "0:T", "0", then="s0 d0", late="0:F 1:B 2:B; 1 2"
    ),
    "latest, then a merge with one parent done": Graph(
        "w1", "LATEST", "0:T 1:T", "0 1", then="m0,1 d0", late="0:F 1:T 2:B; 1", shards=2
    ),
    "latest, then a merge with both done": Graph(
        "w1", "LATEST", "0:T 1:T", "0 1", then="m0,1 d0 d1", late="0:F 1:F 2:B; 2", shards=2
    ),
    "children of children found later": Graph(
        "w1", "LATEST", "0:T", "0", then="s0 s1 d0", late="0:F 1:B 2:B 3:B 4:B; 1 2"
    ),
    # For an hour after it was last listed a finished shard stays known: listings can be old.
    "a finished parent expires: the child stays": Graph(
        "p0 s0 w1", "LATEST", "0:F 1:T 2:T", "1 2", then="w24", late="0:F 1:T 2:T; 1 2"
    ),
    "a finished shard that is listed is not new": Graph(
        "s0 w1", "LATEST", "0:F 1:T 2:T", "1 2", then="w1", late="0:F 1:T 2:T; 1 2"
    ),
    "all drained, then children appear": Graph(
        "s0", "TRIM_HORIZON", "0:H 1:H 2:H", "0", then="d0 d1 d2 m1,2", late="0:F 1:F 2:F 3:B; 3"
    ),
    # From a number.
    "number: one shard": Graph("p0 p0", "NUMBER 0", "0:A", "0"),
    "number: the shard's birth": Graph("", "BIRTH 0", "0:A", "0"),
    "number of the parent: children from their beginning": Graph("p0 s0", "NUMBER 0", "0:A 1:B 2:B", "0"),
    "number of the only child: parents are done": Graph("m0,1 p2", "NUMBER 2", "0:F 1:F 2:A", "2", shards=2),
    "numbers for each": Graph("p0 p1", "EACH 0=NUMBER 1=TRIM_HORIZON", "0:A 1:H", "0 1", shards=2),
    "one shard its own start, the others the default": Graph(
        "w1", "EACH 1=TRIM_HORIZON default=LATEST", "0:T 1:H 2:T", "0 1 2", shards=3
    ),
    # Pinned shards.
    "pinned: one of three": Graph("", "TRIM_HORIZON", "1:H", "1", pinned="1", shards=3),
    "pinned child: its parent is not waited for": Graph("p0 s0", "TRIM_HORIZON", "1:H", "1", pinned="1"),
    "pinned parent and child": Graph("p0 s0", "TRIM_HORIZON", "0:H 2:H", "0", pinned="0 2"),
    "pinned, closed, latest: done": Graph("s0 w1", "LATEST", "0:F", "", pinned="0"),
    "pinned: children are not taken in": Graph("", "TRIM_HORIZON", "0:H", "0", then="s0", late="0:H; 0", pinned="0"),
    "pinned, one number among shards": Graph("p1", "EACH 1=NUMBER", "1:A", "1", pinned="1", shards=3),
}


class Bench:
    """A stream that follows a story."""

    def __init__(self, graph: Graph) -> None:
        self.clock = ManualClock()
        self.fake = FakeKinesis(self.clock, shards=graph.shards)
        self.fake.page_size = 2
        pinned = tuple(shard(int(number)) for number in graph.pinned.split())
        self.job = Job(self.fake, self.clock, make_spec(shards=pinned))
        self.numbers: dict[int, int] = {}

    def tell(self, story: str) -> None:
        for word in story.split():
            kind, numbers = word[0], [int(text) for text in word[1:].split(",")]
            match kind:
                case "s":
                    self.fake.split(shard(numbers[0]))
                case "m":
                    self.fake.merge(shard(numbers[0]), shard(numbers[1]))
                case "p":
                    self.numbers[numbers[0]] = self.fake.put(b"{}", shard=shard(numbers[0]))
                case "w":
                    self.clock.sleep(numbers[0] * HOUR)
                case "d":
                    self.finish(numbers[0])

    def finish(self, number: int) -> None:
        positions = merge_listing(self.job.positions, self.job.source.list_partitions(), NOW)
        states = dict(positions.partitions)
        states[shard(number)] = PartitionState(at="", finished=True, parents=states[shard(number)].parents)
        self.job.positions = type(positions)(incarnation=positions.incarnation, partitions=states)

    def start(self, text: str) -> str:
        if text.startswith("AT "):
            moment = self.clock.now().timestamp() + float(text[3:]) * HOUR
            return render_start(f"AT_TIMESTAMP({_iso(moment)})")
        if match := re.fullmatch(r"(NUMBER|BIRTH) (\d+)", text):
            return render_start(self.number(match[1], int(match[2])))
        if text.startswith("EACH "):
            given = dict(pair.split("=") for pair in text[5:].split())
            default = given.pop("default", "LATEST")
            return render_start(
                default, {shard(int(name)): self.number(value, int(name)) for name, value in given.items()}
            )
        return render_start(text)

    def number(self, kind: str, name: int) -> str:
        if kind == "BIRTH":
            return str(self.fake.shards[shard(name)].first_number)
        return str(self.numbers[name]) if kind == "NUMBER" else kind


def _iso(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()


def shown(states: dict[str, PartitionState]) -> str:
    words = {"": "B", "TRIM_HORIZON": "H", "TIME": "T", "AT": "A", "AFTER": "N"}
    return " ".join(
        f"{int(name[8:])}:{'F' if state.finished else words[state.at.split(' ')[0]]}"
        for name, state in sorted(states.items())
    )


def ready(bench: Bench) -> tuple[str, str]:
    job = bench.job
    merged = merge_listing(job.positions, job.source.list_partitions(), NOW)
    names = ready_partitions(job.positions, merged)
    return shown(dict(merged.partitions)), " ".join(str(int(name[8:])) for name in sorted(names))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_a_job_opens_where_it_must_and_reads_what_it_may(graph: Graph) -> None:
    bench = Bench(graph)
    bench.tell(graph.story)
    bench.job.open(bench.start(graph.start))
    assert shown(dict(bench.job.positions.partitions)) == graph.opens
    assert ready(bench) == (graph.opens, graph.reads)
    if graph.then:
        bench.tell(graph.then)
        states, _, names = graph.late.partition("; ")
        assert ready(bench) == (states, names)


@pytest.mark.parametrize("graph", [graph for graph in GRAPHS.values() if not graph.then and not graph.pinned])
def test_what_is_opened_is_stable_and_can_be_read_to_its_end(graph: Graph) -> None:
    """Nothing that was opened looks new in the next listing, and no shard waits for ever."""
    bench = Bench(graph)
    bench.tell(graph.story)
    opened = bench.job.open(bench.start(graph.start))
    assert merge_listing(opened, bench.job.source.list_partitions(), NOW) == opened
    bench.job.limits = Limits(rows=1_000, seconds=5.0)
    bench.job.drain()
    closed = {name for name, one in bench.fake.shards.items() if one.closed and name in opened.partitions}
    assert closed == {name for name, state in bench.job.positions.partitions.items() if state.finished}


REFUSED = {
    "a shard that is not there": (Graph("", "EACH 7=TRIM_HORIZON", "", ""), "shardId-000000000007"),
    "more positions than pinned shards": (
        Graph("", "EACH 0=TRIM_HORIZON 1=LATEST", "", "", pinned="0", shards=2),
        "shardId-000000000001",
    ),
    "a pinned shard that is not there": (Graph("", "LATEST", "", "", pinned="5"), "has no shard"),
    "a pinned shard that has expired": (Graph("s0 w25", "LATEST", "", "", pinned="0"), "has no shard"),
    "a moment in the future": (Graph("", "AT 1", "", ""), "in the future"),
    "a number of another shard": (
        Graph("p0", "EACH 1=4900000000000000000000000000000000000000000000001", "", "", shards=2),
        "does not take",
    ),
    "a number of no shard": (Graph("", "EACH default=17", "", "", shards=2), "belongs to no shard"),
    "a number that is silent about others": (Graph("p0", "NUMBER 0", "", "", shards=2), "says nothing about"),
    "a number of the only shard that it does not take": (Graph("", "EACH default=17", "", ""), "does not take"),
    "no start at all": (Graph("", "EACH default=YESTERDAY", "", ""), "must be TRIM_HORIZON"),
    "a time without a zone": (Graph("", "EACH default=2026-01-01T00:00:00", "", ""), "must be TRIM_HORIZON"),
}


@pytest.mark.parametrize(("graph", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_a_start_that_means_nothing_is_refused(graph: Graph, why: str) -> None:
    bench = Bench(graph)
    bench.tell(graph.story)
    with pytest.raises(ConfigError, match=why):
        bench.job.open(bench.start(graph.start))
