"""One archive and one cluster for the whole run; a driver for each test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.cluster_driver import Driver
from tests.support.spark_cluster import SparkCluster, serve_cluster


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As somebody makes it for a cluster: by the command."""
    built = tmp_path_factory.mktemp("archive") / "lading.tar.gz"
    said = subprocess.run(
        [sys.executable, "-c", "from lading.cli.main import main; main()", "package", "--output", str(built)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"Set it: spark.lading.archive {built}" in said
    assert f"for Python {sys.version_info[0]}.{sys.version_info[1]}" in said
    yield built
    for made in built.parent.iterdir():
        made.unlink()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with serve_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


StartDriver = Callable[..., Driver]


@pytest.fixture
def start_driver(tmp_path: Path, cluster: SparkCluster, archive: Path) -> Iterator[StartDriver]:
    """Drivers of one home, which end with the test."""
    with ExitStack() as stack:

        def start(**more: str) -> Driver:
            settings = {**cluster.settings, "spark.lading.archive": str(archive), **more}
            return stack.enter_context(Driver(tmp_path / "home", settings))

        yield start
