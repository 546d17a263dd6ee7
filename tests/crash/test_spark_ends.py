"""Spark dies, the service lives on, and each row is in the table once; the service dies, and no Spark is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.java

STORY = """
import json, os, signal, sys
from pathlib import Path
from lading.pipeline.process import _process
from lading.service.facade import Lading

folder = Path(sys.argv[1])
inbox = folder / "in"
inbox.mkdir()

def put(name, first):
    lines = [f"{number},essen" for number in range(first, first + 10)]
    (inbox / name).write_text("\\n".join(["id,city", *lines]) + "\\n")

lading = Lading(folder / "home", spark={"spark.master": "local[2]"})
put("a.csv", 0)
lading.sql(
    "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id BIGINT, city STRING) USING delta; "
    "CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT * FROM "
    f"FILE('uri'='{inbox}/*.csv', 'format'='csv_with_names', 'column_separator'=',')"
)
lading.run()

# Spark is killed, as by a machine that has no memory left.
killed = _process(lading.spark().sparkContext)
killed.kill()
killed.wait()
put("b.csv", 10)
lading.run()
ids = sorted(lading.catalog.open_table("shop", "orders").scan()["id"].to_pylist())
counted = lading.sql("SELECT count(*) FROM shop.orders")[-1].rows
clean = lading.verify("j").is_clean
java = _process(lading.spark().sparkContext).pid
print(json.dumps({
    "ids": ids, "counted": list(counted[0]), "clean": clean, "is_new": java != killed.pid,
    "java": java, "queries": lading.queries._answerer._child.result()._process.pid,
}), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def is_group(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_spark_that_dies_is_replaced_and_none_outlives_the_service(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", STORY, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ},
    )
    assert said.returncode == -9, said.stderr[-3000:]
    told = json.loads(said.stdout.strip().splitlines()[-1])
    groups = [told.pop("java"), told.pop("queries")]
    assert told == {"ids": list(range(20)), "counted": [20], "clean": True, "is_new": True}
    until = time.monotonic() + 60
    while any(map(is_group, groups)):
        assert time.monotonic() < until, "a Spark outlived the service"
        time.sleep(0.1)
