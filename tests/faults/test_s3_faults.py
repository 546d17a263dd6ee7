"""S3 that delays, cuts, refuses and loses answers, under the source and under tables of every format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from lading.tables.registry import NAMES, kind_of
from lading.testing.marked import secret
from tests.faults.rig import Service, tell_counts
from tests.support.fault_proxy import HTTP_FAULTS, FaultProxy, Weather, serve_faults
from tests.tables.optional import skip_without
from tests.tables.s3_server import S3Server

FILES, ROWS = 5, 4
SEEDS = int(os.environ.get("LADING_TEST_FAULT_SEEDS", "12"))


@pytest.fixture(scope="session")
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with serve_faults(s3.endpoint, "s3") as made:
        yield made


@pytest.fixture(autouse=True)
def calm_again(proxy: FaultProxy) -> Iterator[None]:
    yield
    proxy.calm()


class Lake:
    """A bucket with files, and a service whose source and table are in it, behind the proxy."""

    def __init__(self, s3: S3Server, proxy: FaultProxy, home: Path, form: str) -> None:
        skip_without(kind_of(form))
        self.bucket, self.proxy = s3.make_bucket(), proxy
        self._s3 = boto3.client(
            "s3",
            endpoint_url=s3.endpoint,
            region_name="us-east-1",
            aws_access_key_id=secret("owner"),
            aws_secret_access_key=secret("owner"),
        )
        self.service = Service(home)
        keys = f'"s3.access_key"="{secret("access")}", "s3.secret_key"="{secret("key")}"'
        place = f'"s3.endpoint"="{proxy.endpoint}", "s3.region"="us-east-1", "use_path_style"="true", {keys}'
        self.put(0)
        self.service.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING {form} LOCATION 's3://{self.bucket}/lake' "
            f"TBLPROPERTIES({place});"
            'CREATE JOB j PROPERTIES("max_interval"="1", "s3.max_batch_files"="2") ON STREAMING DO '
            f'INSERT INTO t SELECT id, city FROM S3("uri"="s3://{self.bucket}/in/*.csv", "format"="csv_with_names", '
            f'"column_separator"=",", {place})'
        )

    def put(self, number: int) -> None:
        rows = "".join(f"{id},essen\n" for id in range(number * ROWS, (number + 1) * ROWS))
        self._s3.put_object(Bucket=self.bucket, Key=f"in/{number:03d}.csv", Body=f"id,city\n{rows}".encode())

    def check(self, files: int) -> None:
        """Once it is calm the job goes on by itself, and each row is there once."""
        self.proxy.calm()
        self.service.run_until(self.service.is_loaded(files * ROWS))
        self.service.turn()
        assert self.service.ids() == list(range(files * ROWS))
        assert self.service.lading.verify("j").is_clean


def storm(lake: Lake, seed: int, rate: float, files: int) -> None:
    """Files arrive while every request may go wrong."""
    lake.proxy.set(Weather(rate=rate, faults=HTTP_FAULTS, seed=seed, delay_s=0.02))
    for number in range(1, files):
        lake.put(number)
        lake.service.turn()
    lake.check(files)
    tell_counts("s3", lake.proxy, files * ROWS)
    assert sum(count for fault, count in lake.proxy.counts().items() if fault in HTTP_FAULTS) > 0


@pytest.mark.parametrize(
    "form", ["delta", *(pytest.param(form, marks=pytest.mark.slow) for form in ("iceberg", "paimon"))]
)
def test_a_storm_makes_no_wrong_row(s3: S3Server, proxy: FaultProxy, tmp_path: Path, form: str) -> None:
    lake = Lake(s3, proxy, tmp_path / "home", form)
    storm(lake, 1, 0.2, 3)
    lake.service.close()


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("seed", range(2, 2 + SEEDS))
def test_many_storms_make_no_wrong_row(s3: S3Server, proxy: FaultProxy, tmp_path: Path, form: str, seed: int) -> None:
    lake = Lake(s3, proxy, tmp_path / "home", form)
    storm(lake, seed, (0.05, 0.2, 0.4)[seed % 3], FILES)
    lake.service.close()


@pytest.mark.parametrize(
    ("form", "commit"),
    [
        ("delta", r"^PUT \S*/_delta_log/0*2\.json"),
        pytest.param("paimon", r"^PUT \S*/snapshot/snapshot-2", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("fault", ["lose", pytest.param("late-error", marks=pytest.mark.slow)])
def test_a_commit_whose_answer_is_lost_is_found_and_not_made_twice(
    s3: S3Server, proxy: FaultProxy, tmp_path: Path, form: str, commit: str, fault: str
) -> None:
    lake = Lake(s3, proxy, tmp_path / "home", form)
    before = proxy.counts()[fault]
    proxy.set(Weather(only=commit, script=[fault]))
    lake.service.turn()
    assert proxy.counts()[fault] == before + 1, "the commit went another way"
    lake.check(1)
    lake.service.close()


def test_cleaning_goes_on_where_unfinished_uploads_may_not_be_listed(
    s3: S3Server, proxy: FaultProxy, tmp_path: Path
) -> None:
    lake = Lake(s3, proxy, tmp_path / "home", "delta")
    lake.service.turn()
    before = proxy.counts()["denied"]
    proxy.set(Weather(rate=1.0, faults=["denied"], only=r"^GET \S*[?&]uploads"))
    assert lake.service.sql("ADMIN CLEAN ORPHANS FROM t") == []
    assert proxy.counts()["denied"] > before, "nobody asked"
    lake.check(1)
    lake.service.close()


@pytest.mark.slow
def test_an_outage_is_a_reason_in_show_and_the_job_goes_on_by_itself(
    s3: S3Server, proxy: FaultProxy, tmp_path: Path
) -> None:
    lake = Lake(s3, proxy, tmp_path / "home", "delta")
    lake.service.run_until(lake.service.is_loaded(ROWS))
    proxy.set(Weather(is_down=True))
    lake.put(1)
    for _ in range(3):
        lake.service.turn()
    told = lake.service.reasons[-1]
    assert "PAUSED" in told
    assert f"s3://{lake.bucket}" in told, "it names what cannot be reached"
    lake.check(2)
    assert "PAUSED" not in lake.service.shown()
    lake.service.close()


def test_a_scheduler_goes_on_by_itself_after_an_outage(s3: S3Server, proxy: FaultProxy, tmp_path: Path) -> None:
    lake = Lake(s3, proxy, tmp_path / "home", "delta")
    with lake.service.scheduled():
        lake.service.wait_until(lake.service.is_loaded(ROWS))
        proxy.set(Weather(is_down=True))
        lake.put(1)
        lake.service.wait_until(lambda: any("PAUSED" in told for told in lake.service.reasons))
        assert f"s3://{lake.bucket}" in lake.service.reasons[-1], "it names what cannot be reached"
        proxy.calm()
        lake.service.wait_until(lake.service.is_loaded(2 * ROWS))
        lake.service.wait_until(lambda: "PAUSED" not in lake.service.shown())
    assert lake.service.ids() == list(range(2 * ROWS))
    assert lake.service.lading.verify("j").is_clean
    assert lake.service.errors == []
    lake.service.close()
