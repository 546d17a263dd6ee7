"""What the form with services needs around it: PostgreSQL, S3, streams, a cluster, two homes and a desk."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lading.clock import SystemClock
from lading.model.s3_access import S3Access
from lading.pipeline.archive import build_archive
from lading.service.facade import Lading
from lading.tables.registry import kind_of
from lading.testing.kinesis.server import KinesisServer, serve_kinesis
from tests.crash.load_stories import FilesSender, KafkaSender, KinesisSender, Sender
from tests.soak.counts import Counts
from tests.soak.journal import Journal
from tests.soak.killer import Killer
from tests.soak.lakes import SharedLake
from tests.soak.service import Service
from tests.soak.services import LEASE_S, STATE, Lane, ServicesSoak, SharedCounts
from tests.store.postgres import serve_postgres
from tests.support.kafka_broker import KafkaBroker, serve_kafka
from tests.support.spark_cluster import SparkCluster, serve_cluster
from tests.tables.s3_server import S3Server, serve_s3

LANES = (
    ("files", "delta", "s3"),
    ("kafka", "iceberg", "s3"),
    ("kinesis", "delta", "disk"),
    ("kafka", "delta", "disk"),
    ("kinesis", "iceberg", "disk"),
    ("files", "paimon", "disk"),
)
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java that lives for seconds is not worth being compiled well."""


@dataclass(slots=True)
class World:
    """What the services have around them."""

    path: Path
    rng: Random
    s3: S3Server
    store: str
    kinesis: KinesisServer | None = None
    broker: KafkaBroker | None = None
    bucket: str = ""

    def __post_init__(self) -> None:
        self.bucket = self.s3.make_bucket()

    def lane(self, number: int, source: str, form: str, where: str) -> Lane:
        name = f"s{number}"
        place = f"s3://{self.bucket}/{name}" if where == "s3" else str(self.path / "lake" / name)
        lake = SharedLake(form, place, self.s3.options, self.store, f"{name}.t")
        return Lane(name, source, self._sender(source, name), lake, Counts())

    def _sender(self, source: str, name: str) -> Sender:
        if source == "kafka" and self.broker is not None:
            return KafkaSender(self.broker, 2)
        if source == "kinesis" and self.kinesis is not None:
            return KinesisSender(self.kinesis, 2, self.rng)
        return FilesSender(self.path / f"{name}.in", 2, self.rng)


def open_lane(desk: Lading, lane: Lane) -> None:
    """Make its table and its job."""
    desk.sql(lane.statements)
    job_id = desk.any_job(lane.name).job_id
    lane.journal = Journal(job_id, lane.lake, lane.counts, by_place=lane.source != "files")


def soak_services(path: Path, seed: int, hours: float, sources: Collection[str]) -> dict[str, Counts]:
    """By job, what it came to."""
    path.mkdir(parents=True)
    rng, clock = Random(seed), SystemClock()
    os.environ["LADING_SECRET_KEY"] = base64.urlsafe_b64encode(os.urandom(32)).decode()
    os.environ |= {"LADING_LEASE_SECONDS": f"{LEASE_S:g}", "LADING_FILE_SETTLE_SECONDS": "0"}
    with ExitStack() as stack:
        s3, store = stack.enter_context(serve_s3()), stack.enter_context(serve_postgres()).fresh_url()
        kinesis = stack.enter_context(serve_kinesis()) if "kinesis" in sources else None
        broker = stack.enter_context(serve_kafka()) if "kafka" in sources else None
        world = World(path, rng, s3, store, kinesis, broker)
        cluster = stack.enter_context(serve_cluster(path / "cluster", cores=(2,)))
        desk = stack.enter_context(Lading(path / "desk", store_url=world.store, user="desk"))
        chosen = [lane for lane in LANES if lane[0] in sources and not kind_of(lane[1]).missing()]
        lanes = [world.lane(number, *lane) for number, lane in enumerate(chosen)]
        for lane in lanes:
            open_lane(desk, lane)
        state = SharedCounts(path, rng)
        desk.sql(state.statements)
        killer = Killer(
            _services(path, world.store, cluster),
            Random(f"{seed} killer"),
            lambda: _holders(desk),
            lease_s=LEASE_S,
            cluster=cluster,
            broker=world.broker,
        )
        soak = ServicesSoak(desk, lanes, state, killer, rng)
        for name in state.expected:
            lake = SharedLake("delta", state.place(name), S3Access(), world.store, f"{STATE}.{name}")
            soak.add_state(f"{STATE}_{name}", lake)
        try:
            soak.run(clock.monotonic_s() + hours * 3600)
            found = state.find(desk)
        finally:
            for service in killer.services:
                service.end(5.0)
    counts = Counts()
    counts.done.update(commits=found.commits, rows=found.rows, results=found.results)
    for kind in ("LOSS", "DUP", "REORDER", "CORRUPT"):
        counts.blame(kind, "results are not what DuckDB computes", getattr(found, kind.lower()))
    by_job = {f"{lane.source} to {lane.lake.form} ({_where(lane)})": lane.counts for lane in lanes}
    return {**by_job, STATE: counts, "doors": soak.done, "killer": killer.counts}


def _where(lane: Lane) -> str:
    return "S3" if lane.lake.place.startswith("s3") else "disk"


def _services(path: Path, store: str, cluster: SparkCluster) -> list[Service]:
    password = path / "root-password"
    password.write_text(secrets.token_hex(16))
    password.chmod(0o600)
    archive = build_archive(path / "lading.tar.gz").path
    near = {"spark.master": "local[2]", "spark.driver.defaultJavaOptions": QUICK}
    far = {**cluster.settings, "spark.lading.archive": str(archive), "spark.driver.defaultJavaOptions": QUICK}
    return [Service(path / "one", store, password, near), Service(path / "two", store, password, far)]


def _holders(desk: Lading) -> Mapping[str, str]:
    return {str(job_id): holder for job_id, holder in desk.store.list_leases().items()}
