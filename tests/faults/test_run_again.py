"""`lading run` from a timer, without a service: what a passing fault has paused is tried again by the next run."""

from __future__ import annotations

from pathlib import Path

import boto3
import polars as pl
from typer.testing import CliRunner

from lading.cli.main import app
from lading.service.facade import Lading
from lading.testing.marked import secret
from tests.support.fault_proxy import Weather, serve_faults
from tests.tables.s3_server import S3Server


def run(home: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["run", "--home", str(home)])
    return done.exit_code, " ".join(done.output.split())


def test_a_job_that_s3_has_paused_is_run_by_the_next_run_and_one_that_people_paused_is_not(
    s3: S3Server, tmp_path: Path
) -> None:
    bucket, home = s3.make_bucket(), tmp_path / "home"
    keys = {"aws_access_key_id": secret("owner"), "aws_secret_access_key": secret("owner")}
    owner = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **keys)
    owner.put_object(Bucket=bucket, Key="in/a.csv", Body=b"id,city\n1,essen\n")
    with serve_faults(s3.endpoint, "s3") as proxy:
        place = f'"s3.endpoint"="{proxy.endpoint}", "s3.region"="us-east-1", "use_path_style"="true"'
        place += f', "s3.access_key"="{secret("access")}", "s3.secret_key"="{secret("key")}"'
        with Lading(home) as lading:
            lading.sql(
                f"CREATE TABLE t (id BIGINT, city STRING) USING delta LOCATION '{tmp_path / 'lake'}';"
                'CREATE JOB j PROPERTIES("file.settle_seconds"="0") ON STREAMING DO INSERT INTO t SELECT id, city FROM '
                f'S3("uri"="s3://{bucket}/in/*.csv", "format"="csv_with_names", "column_separator"=",", {place})'
            )
        proxy.set(Weather(rate=1.0, faults=("denied",)))
        for _ in range(2):
            status, said = run(home)
            assert (status, f"j is PAUSED: Failed to fetch meta: the files under s3://{bucket}/in/" in said) == (
                3,
                True,
            ), said
        proxy.calm()
        status, said = run(home)
        assert status == 0, said
    assert pl.read_delta(str(tmp_path / "lake"))["id"].to_list() == [1]
    with Lading(home) as lading:
        lading.sql("PAUSE JOB WHERE jobName = 'j'")
    assert run(home) == (0, "There is no job to run.")
