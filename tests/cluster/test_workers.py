"""Workers come and go: between two commits, in the middle of a batch, and while a driver recovers. Loads are exact.

`pytest -m slow -s tests/cluster/test_workers.py` prints what was counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from lading.service.facade import Lading
from lading.testing.kinesis.server import KinesisServer
from tests.cluster.inbox import Inbox, create_table
from tests.cluster.shown import UI, application, get
from tests.cluster.test_kills import STRAINED, check_exact
from tests.crash.load_stories import FilesSender, Found, KafkaSender, KinesisSender, Story
from tests.support.cluster_driver import RUNNING, Driver
from tests.support.kafka_broker import KafkaBroker
from tests.support.spark_cluster import SparkCluster, serve_cluster

pytestmark = [pytest.mark.java, pytest.mark.slow]

CORES = (2, 2, 2)
"""Of each worker. Batches are cut into two parts at least, so workers of one core would not be told apart."""
SIZES = (3, 1, 2)


class Workers:
    """A cluster of which so many workers are there."""

    def __init__(self, cluster: SparkCluster) -> None:
        self._cluster, self.there, self.changes = cluster, len(cluster.cores), 0

    def reach(self, count: int, driver: Driver | None = None) -> None:
        """Workers are started, or killed with their executors. A driver with Spark has taken notice then."""
        self.changes += abs(count - self.there)
        for number in range(self.there, count):
            self._cluster.start_worker(number)
        for number in range(count, self.there):
            if driver is None:
                self._cluster.kill(f"worker-{number}")
            else:
                self._cluster.kill_worker(number)
        self.there = count
        if driver is not None:
            self.wait_for(driver)

    def wait_for(self, driver: Driver) -> None:
        """Until the driver has exactly the executors of these workers. It may stand at a step, so Spark is asked."""
        self._cluster.wait_until(lambda: self._executors(driver) == self.there, f"{self.there} executors")

    def _executors(self, driver: Driver) -> int:
        told = json.loads(get(f"{application(driver.ui)}/executors"))
        return sum(each["id"] != "driver" and each["isActive"] for each in told)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[SparkCluster]:
    with serve_cluster(tmp_path / "cluster", cores=CORES) as made:
        yield made


@pytest.fixture
def settings(three: SparkCluster, archive: Path) -> dict[str, str]:
    return {**three.settings, **STRAINED, **UI, "spark.lading.archive": str(archive)}


def test_batches_are_cut_for_the_workers_that_are_there(
    tmp_path: Path, three: SparkCluster, settings: dict[str, str]
) -> None:
    """Each batch has as many tasks as the cluster has cores when it is planned, also when a new driver plans it."""
    inbox, workers = Inbox(tmp_path / "in", files=12, rows=50_000), Workers(three)
    with Driver(tmp_path / "home", settings) as driver:
        driver.ask("sql", f"CREATE DATABASE shop; {create_table('orders')}; {inbox.job('j', 'orders', files=2)}")
        workers.wait_for(driver)
        # The first to follow is the start: the job was made before.
        first: dict[str, Callable[[], None]] = {
            "follow.before:2": lambda: workers.reach(1, driver),
            f"{RUNNING}:3": lambda: workers.reach(2),
            "follow.before:4": lambda: workers.wait_for(driver),
            f"{RUNNING}:4": lambda: workers.reach(1, driver),
            "follow.before:5": lambda: workers.reach(2, driver),
        }
        driver.tell("run", [*first, f"{RUNNING}:5"])
        for stop, change in first.items():
            assert driver.hear() == stop
            change()
            driver.tell("go")
        assert driver.hear() == f"{RUNNING}:5"
    workers.reach(3)
    with Driver(tmp_path / "home", settings) as driver:
        workers.wait_for(driver)
        then = {"start.before:1": lambda: workers.reach(1, driver)}
        states = driver.run({**then, "follow.before:2": lambda: workers.reach(3, driver)})
        assert states["j"][0] == "RUNNING", states
        assert driver.ask("tasks", "j") == [6, 2, 2, 4, 2, 6]
        check_exact(driver, inbox, f"{workers.changes} workers came or went")


def test_loads_are_exact_while_workers_come_and_go_and_drivers_are_killed(
    tmp_path: Path, three: SparkCluster, settings: dict[str, str], broker: KafkaBroker, kinesis: KinesisServer
) -> None:
    """Three phases, of three workers, one and two. In each the number changes while the driver takes the jobs over,
    streams get as many partitions and shards, and the driver is killed in a batch."""
    rng, workers, home = Random(5), Workers(three), tmp_path / "home"
    senders = [KafkaSender(broker, 1), KinesisSender(kinesis, 3, rng), FilesSender(tmp_path / "in", 3, rng)]
    forms = ("delta", "iceberg", "delta")
    stories = [Story(f"s{n}", form, sender) for n, (form, sender) in enumerate(zip(forms, senders, strict=True))]
    found = Found()
    for size in (*SIZES, 0):
        with Driver(home, settings) as driver:
            if not found.kills:
                for story in stories:
                    driver.ask("sql", story.statements)
            workers.wait_for(driver)
            for sender in senders:
                found += Found(rescales=sender.resize(2 * size or 3))
                sender.put()
            stops = ["start.before:1", f"{RUNNING}:{rng.randint(2, 6)}"] if size else ["start.before:1"]
            driver.tell("run", stops)
            assert driver.hear() == "start.before:1"
            workers.reach(size or 3, driver)
            driver.tell("go")
            if not size:
                states = driver.hear(600)
                assert {state for state, _ in states.values()} == {"RUNNING"}, states
                driver.ask("close")
                continue
            assert driver.hear(300) == stops[1]
            found += Found(kills=1)
    with Lading(home) as lading:
        for story in stories:
            found += story.find(lading, home)
    found = replace(found, rescales=found.rescales + workers.changes)
    print(f"{workers.changes} workers came or went; {found}")
    assert found.is_clean, found
    assert (found.kills, found.stories) == (len(SIZES), len(stories))
    assert workers.changes == 4
