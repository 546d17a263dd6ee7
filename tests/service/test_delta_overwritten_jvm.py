"""Spark on the JVM with its own log store for S3, held up between its look and its put: what Lading does about it."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from tests.service.test_delta_overwritten import Scene, _in_a_bucket
from tests.support.fault_proxy import FaultProxy, Weather, serve_faults
from tests.support.jvm_engine import JvmEngine
from tests.support.lakes import s3a
from tests.tables.s3_server import S3Server, serve_s3

pytestmark = [pytest.mark.slow, pytest.mark.java]

HELD_S = 6.0
ENTRIES = r"PUT \S*_delta_log/\d+\.json"


def insert_slowly(jvm: JvmEngine, scene: Scene, proxy: FaultProxy, number: int) -> Thread:
    """Spark has looked which version is next, and its put is on the way; it comes when the thread ends."""
    place = scene.place.replace("s3://", "s3a://")
    before = proxy.counts()["delay"]
    proxy.set(Weather(script=("delay",), only=ENTRIES, delay_s=HELD_S))
    text = f"INSERT INTO delta.`{place}` VALUES ({number}, 'spark')"
    thread = Thread(target=jvm.sql, args=(text, "held"), daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while proxy.counts()["delay"] == before:
        assert time.monotonic() < deadline, "Spark never put its entry"
        time.sleep(0.05)
    return thread


def test_an_entry_that_spark_replaced_comes_back_once(tmp_path: Path, lakes_jvm: JvmEngine) -> None:
    with serve_s3() as store, serve_faults(store.endpoint, "s3") as proxy:
        scene = _in_a_bucket(tmp_path, store)
        lakes_jvm.open("held", {"type": "hadoop", "warehouse": str(tmp_path), **through(proxy, store)})
        for number in range(3):
            thread = insert_slowly(lakes_jvm, scene, proxy, 100 + number)
            scene.load(10 * number + 1, 10 * number + 2)
            thread.join(120)
            assert not thread.is_alive()
        whole = [0, 1, 2, 11, 12, 21, 22, 100, 101, 102]
        # Lading commits the first batch again before it loads the next one, into the very version that Spark is about
        # to put: it is away once more until Lading looks again. Then it is back, for Spark as for others.
        assert scene.ids() == sorted(set(whole) - {1, 2})
        scene.lading.run()
        assert scene.ids() == whole
        place = scene.place.replace("s3://", "s3a://")
        rows = lakes_jvm.sql(f"SELECT id FROM delta.`{place}` ORDER BY id", "held")
        assert [row["id"] for row in rows] == whole
        assert len(scene.audit()) == 3
        assert scene.lading.verify("j").is_clean
        scene.lading.close()


def through(proxy: FaultProxy, store: S3Server) -> dict[str, str]:
    return {**s3a(store), "fs.s3a.endpoint": proxy.endpoint}
