"""Spark dies, or does not let go of its cores; the service lives on, and each row is in the table once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

STORY = """
import json, sys, threading, time
from pathlib import Path
from lading.pipeline.process import _process, held_cores
from lading.service.facade import Lading
from lading.service.stopping import Stop

folder = Path(sys.argv[1])
inbox = folder / "in"
inbox.mkdir()

def put(name, first):
    lines = [f"{number},essen" for number in range(first, first + 10)]
    (inbox / name).write_text("\\n".join(["id,city", *lines]) + "\\n")

def ids():
    return sorted(lading.shelf.open_table("shop", "orders").scan()["id"].to_pylist())

def wait_for(holds, what, within_s=120):
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.1)

with Lading(folder / "home", spark={"spark.master": "local[2]"}) as lading:
    lading.engine.let_go_within_s = 3.0
    put("a.csv", 0)
    lading.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT, city STRING) USING delta; "
        "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * FROM "
        f"FILE('uri'='{inbox}/*.csv', 'format'='csv_with_names', 'column_separator'=',')"
    )
    lading.run()
    first = lading.spark()
    process = _process(first.sparkContext)

    # A query that does not look whether it was ended.
    stop, told = Stop(), []
    endless = "SELECT count(*) FROM " + ", ".join(f"shop.orders o{number}" for number in range(14))

    def ask():
        try:
            stop.run(lambda: lading.session("root", is_trusted=True).sql(endless))
        except Exception as error:
            told.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    tracker = first.sparkContext.statusTracker()
    seen = {}

    def is_counting():
        # Short jobs come before the long one, which alone runs for so long.
        for number in tracker.getActiveStageIds():
            if time.monotonic() - seen.setdefault(number, time.monotonic()) > 6:
                return True
        return False

    wait_for(is_counting, "it counts")
    stop.set()
    asking.join(60)
    wait_for(lambda: process.poll() is not None, "Spark is ended")
    put("b.csv", 10)
    lading.run()
    second = lading.spark()
    after_query = ids()

    # Spark is killed, as by a machine that has no memory left.
    killed = _process(second.sparkContext)
    killed.kill()
    killed.wait()
    put("c.csv", 20)
    lading.run()
    after_kill = ids()
    counted = lading.sql("SELECT count(*) FROM shop.orders")[-1].rows
    clean = lading.verify("j").is_clean
    third = _process(lading.spark().sparkContext)
    held = held_cores(lading.spark())
print(json.dumps({
    "told": told, "after_query": after_query, "after_kill": after_kill, "counted": list(counted[0]),
    "clean": clean, "processes": len({process.pid, killed.pid, third.pid}), "held": held,
}))
"""


def test_a_spark_that_dies_or_holds_on_is_replaced(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", STORY, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ},
    )
    assert said.returncode == 0, said.stderr[-3000:]
    told = json.loads(said.stdout.strip().splitlines()[-1])
    assert "was ended" in told.pop("told")[0]
    assert told == {
        "after_query": list(range(20)),
        "after_kill": list(range(30)),
        "counted": [30],
        "clean": True,
        "processes": 3,
        "held": 0,
    }
