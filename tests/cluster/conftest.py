"""One archive and one cluster for the whole run; a driver for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lading.pipeline.archive import build_archive
from tests.support.cluster_driver import Driver
from tests.support.spark_cluster import SparkCluster, serve_cluster


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    built = build_archive(tmp_path_factory.mktemp("archive") / "lading.tar.gz").path
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
