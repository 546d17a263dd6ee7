"""The verifier reads tables of several services: in S3, in their catalog, after moves, and after others were there."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from random import Random

import pytest

from lading.testing.kinesis.server import KinesisServer
from tests.console.local import LocalLading
from tests.soak.journal import bound
from tests.soak.maintenance import maintain_shared
from tests.soak.services import Lane
from tests.soak.services_setup import World, open_lane, soak_services
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.tables.s3_server import S3Server


@pytest.fixture
def world(tmp_path: Path, s3: S3Server, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("LADING_SECRET_KEY", base64.urlsafe_b64encode(os.urandom(32)).decode())
    return World(tmp_path, Random(3), s3, postgres.fresh_url())


def load(desk: LocalLading, lane: Lane) -> None:
    """All that is there, and read along."""
    lane.sender.put(40)
    desk.run([lane.name])
    assert lane.journal is not None
    lane.journal.read_on(desk.catalog.open_table(lane.name, "t"))
    assert lane.counts.is_clean, lane.counts


def end(lane: Lane) -> None:
    assert lane.journal is not None
    assert lane.journal.lacks(lane.sender.sent) == 0
    lane.journal.end(lane.sender.sent)


@pytest.mark.parametrize(
    ("form", "where"), [("delta", "s3"), ("iceberg", "s3"), ("iceberg", "disk"), ("delta", "disk")]
)
def test_tables_of_several_services_are_read_before_and_after_others_look_after_them(
    world: World, form: str, where: str
) -> None:
    lane = world.lane(0, "files", form, where)
    with LocalLading(world.path / "desk", store_url=world.store, user="desk") as desk:
        open_lane(desk, lane)
        load(desk, lane)
        maintain_shared(lane.lake, removes_orphans=True)
        load(desk, lane)
        end(lane)
        assert lane.counts.is_clean, lane.counts
        lane.sender.put(5)
        end_sent = dict(lane.sender.sent)
    lane.journal.end(end_sent)  # type: ignore[union-attr]
    assert set(lane.counts.found) == {"LOSS"}


def test_rows_of_a_shard_that_was_moved_back_must_come_again(world: World, kinesis: KinesisServer) -> None:
    world.kinesis = kinesis
    lane = world.lane(0, "kinesis", "delta", "disk")
    with LocalLading(world.path / "desk", store_url=world.store, user="desk") as desk:
        open_lane(desk, lane)
        load(desk, lane)
        assert lane.journal is not None
        moves = lane.journal.way_back(Random(1))
        ((shard, at),) = moves.items()
        assert bound(at) > 10**20, "a number of Kinesis"
        lane.journal.asked["soak-1"] = moves
        desk.sql(f"PAUSE JOB WHERE jobName = '{lane.name}'")
        desk.sql(f"""ALTER JOB {lane.name} PROPERTIES("offset" = '{{"{shard}": "{at}"}}') COMMENT 'soak-1'""")
        lane.journal.read_on(desk.catalog.open_table(lane.name, "t"))
        again = lane.counts.done["rows that were to come again"]
        assert again > 0
        assert lane.journal.lacks(lane.sender.sent) == again
        lane.journal.end(lane.sender.sent)
        assert lane.counts.found["LOSS"] == again, "they have not come yet"
        lane.counts.found.clear()
        desk.sql(f"RESUME JOB WHERE jobName = '{lane.name}'")
        load(desk, lane)
        end(lane)
        assert lane.counts.is_clean, lane.counts


@pytest.mark.slow
@pytest.mark.java
def test_two_services_are_killed_for_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LADING_SECRET_KEY", "LADING_LEASE_SECONDS"):
        monkeypatch.setenv(name, "")
    rows = soak_services(tmp_path / "soak", 1, 1 / 60, ("files",))
    assert all(counts.is_clean for counts in rows.values()), rows
    assert rows["killer"].done["kills"]
