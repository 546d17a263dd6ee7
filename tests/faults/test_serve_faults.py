"""`lading serve` as a process, with Spark: its S3 and its store refuse, are busy, and go away."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import boto3
import polars as pl
import pytest

from lading.testing.marked import secret
from tests.faults.rig import tell_counts
from tests.store.conftest import postgres as postgres
from tests.store.postgres import PostgresServer
from tests.support.fault_proxy import HTTP_FAULTS, TCP_FAULTS, FaultProxy, Weather, serve_faults
from tests.tables.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.java]
LADING = [sys.executable, "-c", "from lading.cli.main import main; main()"]
FILE_ROWS = 20
PATIENCE_S = 120.0
OWNER = {"aws_access_key_id": secret("owner"), "aws_secret_access_key": secret("owner")}


class Served:
    """A service whose source and table are in S3 behind one proxy, and whose store is behind another."""

    def __init__(self, s3: S3Server, weather: FaultProxy, store_url: str, folder: Path) -> None:
        self.bucket, self.proxy, self.home = s3.make_bucket(), weather, folder / "home"
        self._s3 = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **OWNER)
        self.table = {"AWS_ENDPOINT_URL": s3.endpoint, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        self.table |= {name.upper(): word for name, word in OWNER.items()}
        # A setting of Spark: batches go there from the first on.
        words = ["--store", store_url, "--mysql-port", "0", "--http-port", "0"]
        words += ["--spark-conf", "spark.sql.shuffle.partitions=2"]
        self.said = folder / "service.log"
        self.sent = 0
        with self.said.open("ab") as log:
            self.process = subprocess.Popen(
                [*LADING, "serve", "--init", "--home", str(self.home), *words], stdout=log, stderr=log
            )
        self.wait_until(lambda: self.sql("SHOW DATABASES")[0], "the service answers")

    def put(self, files: int = 2) -> None:
        for _ in range(files):
            rows = "".join(f"{each},essen\n" for each in range(self.sent, self.sent + FILE_ROWS))
            key = f"in/{self.sent:06d}.csv"
            self._s3.put_object(Bucket=self.bucket, Key=key, Body=f"id,city\n{rows}".encode())
            self.sent += FILE_ROWS

    def create(self) -> None:
        place = (
            f'"s3.endpoint"="{self.proxy.endpoint}", "s3.region"="us-east-1", "use_path_style"="true", '
            f'"s3.access_key"="{secret("access")}", "s3.secret_key"="{secret("key")}"'
        )
        is_done, told = self.sql(
            f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION 's3://{self.bucket}/lake' "
            f'TBLPROPERTIES({place}); CREATE JOB j PROPERTIES("max_interval"="1") ON STREAMING DO INSERT INTO t '
            f'SELECT id, city FROM S3("uri"="s3://{self.bucket}/in/*.csv", "format"="csv_with_names", '
            f'"column_separator"=",", {place})'
        )
        assert is_done, told

    def sql(self, text: str) -> tuple[bool, str]:
        """`lading sql`, through the service that has the home."""
        words = ["sql", "--home", str(self.home), "--format", "json", "-e", text]
        done = subprocess.run([*LADING, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return done.returncode == 0, done.stdout + done.stderr

    def shown(self) -> str:
        return self.sql("SHOW JOBS")[1]

    def wait_until(self, is_met: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_met():
            assert self.process.poll() is None, self.said.read_text()[-2000:]
            assert time.monotonic() < until, f"never came: {what}: {self.shown()}"
            time.sleep(0.2)

    def ids(self) -> list[int]:
        return sorted(pl.read_delta(f"s3://{self.bucket}/lake", storage_options=self.table)["id"].to_list())

    def is_loaded(self) -> bool:
        with suppress(Exception):  # The table may have no version yet.
            return len(self.ids()) >= self.sent
        return False

    def check(self, what: str) -> None:
        """It is calm again: nobody resumes the job, and each row is there once."""
        self.proxy.calm()
        self.wait_until(self.is_loaded, f"all rows after {what}")
        assert self.ids() == [*range(self.sent)]
        self.wait_until(lambda: "PAUSED" not in self.shown(), f"the job runs after {what}")
        done = subprocess.run([*LADING, "verify", "j", "--home", str(self.home)], capture_output=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)


@pytest.fixture
def weather(s3: S3Server) -> Iterator[FaultProxy]:
    with serve_faults(s3.endpoint, "s3") as made:
        yield made


def test_a_service_goes_on_by_itself_after_each_fault_of_s3_and_of_its_store(
    s3: S3Server, weather: FaultProxy, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LADING_SECRET_KEY", base64.urlsafe_b64encode(os.urandom(32)).decode())
    with serve_faults(postgres.socket, "tcp") as store:
        options = postgres.fresh_url().partition("&options=")[2]
        url = f"postgresql://lading@127.0.0.1:{store.port}/postgres?options={options}"
        served = Served(s3, weather, url, tmp_path)
        try:
            served.create()
            served.put()
            served.check("the first load")

            for fault in ("denied", "busy"):
                weather.set(Weather(rate=1.0, faults=(fault,)))
                served.put()
                served.wait_until(lambda: "PAUSED" in served.shown(), f"a reason for {fault}")
                assert f"s3://{served.bucket}" in served.shown(), "it names what cannot be reached"
                served.check(fault)

            weather.set(Weather(rate=0.2, faults=HTTP_FAULTS, seed=5, delay_s=0.02))
            served.put(6)
            time.sleep(5.0)  # The weather is bad for as long as this.
            served.check("a storm")

            store.set(Weather(rate=0.05, faults=TCP_FAULTS, seed=7, delay_s=0.01))
            served.put(4)
            time.sleep(5.0)
            store.calm()
            served.check("a store whose connections are cut")

            store.set(Weather(is_down=True))
            served.put()
            served.wait_until(lambda: "metadata store" in served.shown(), "SHOW says that the store is away")
            store.calm()
            served.check("a store that was away")
            tell_counts("lading serve, s3", weather, served.sent)
            tell_counts("lading serve, store", store, served.sent)
        finally:
            served.process.terminate()
            served.process.wait(60)
