"""The service packs Lading for the executors when it first starts on a cluster, and uses the same again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lading.pipeline.archive import archive_name
from tests.cluster.inbox import Inbox, create_table
from tests.support.other_readers import read_elsewhere
from tests.support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.java, pytest.mark.slow]


def lading(home: Path, conf: Path, *words: str) -> None:
    """A command, as it is typed."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", "from lading.cli.main import main; main()", *words, "--home", str(home)],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**variables, "LADING_SPARK_SETTINGS": str(conf)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_start_on_a_cluster_packs_the_archive_and_the_next_one_does_not(
    tmp_path: Path, cluster: SparkCluster
) -> None:
    """With nothing but what docs/cluster.md says in the file of settings; no archive is named."""
    inbox, home, conf = Inbox(tmp_path / "in", files=2, rows=1_000), tmp_path / "home", tmp_path / "spark.conf"
    conf.write_text("".join(f"{name} {value}\n" for name, value in cluster.settings.items()))
    job = f"CREATE DATABASE shop; {create_table('orders')}; {inbox.job('j', 'orders')}"
    lading(home, conf, "init")
    lading(home, conf, "sql", "-e", job)
    assert not list((home / "spark").glob("*.tar.gz"))
    stale = home / "spark" / "lading-0.0.9-0.tar.gz"
    stale.parent.mkdir(exist_ok=True)
    stale.write_text("of an older Lading")
    lading(home, conf, "run")
    (packed,) = (home / "spark").glob("*.tar.gz")
    assert packed.name == archive_name()
    made = packed.stat().st_mtime_ns
    table = home / "warehouse" / "shop" / "orders"
    assert sorted(read_elsewhere("delta", table)["id"].to_pylist()) == inbox.ids
    (inbox.folder / "last.csv").write_text("id,city\n1000000,ulm\n")
    lading(home, conf, "run")
    assert packed.stat().st_mtime_ns == made
    assert sorted(read_elsewhere("delta", table)["id"].to_pylist()) == [*inbox.ids, 1_000_000]
