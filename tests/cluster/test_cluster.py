"""Jobs on a standalone cluster: exact, with executors that have nothing but Python, and no key left anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from lading.testing.marked import secret
from tests.cluster.conftest import StartDriver
from tests.cluster.inbox import Inbox, create_table
from tests.cluster.shown import UI, check_no_key
from tests.support.other_readers import read_elsewhere
from tests.support.spark_cluster import SparkCluster
from tests.tables.s3_server import S3Server

pytestmark = pytest.mark.java

SOURCE_KEY, TABLE_KEY = secret("cluster-source"), secret("cluster-table")


def test_jobs_on_a_cluster_are_exact_through_kills_and_leave_no_key(
    tmp_path: Path, cluster: SparkCluster, start_driver: StartDriver, s3: S3Server
) -> None:
    """One job from a path that all share into one, and one from a bucket into a bucket, each with keys of its own. The
    workers' Python has no library at all."""
    inbox, bucket = Inbox(tmp_path / "in", files=6, rows=30_000), s3.make_bucket()
    client = client_of(s3)
    for path in inbox.folder.iterdir():
        client.put_object(Bucket=bucket, Key=f"in/{path.name}", Body=path.read_bytes())
    driver = start_driver(**UI, **{"spark.speculation": "true"})
    driver.ask("sql", f"CREATE DATABASE shop; {create_table('here')}; {inbox.job('here', 'here', files=2)}")
    more = f"LOCATION 's3://{bucket}/far' TBLPROPERTIES({keys(s3, TABLE_KEY)})"
    source = f"S3('uri'='s3://{bucket}/in/*.csv', 'format'='csv_with_names', 'column_separator'=',', {{}})"
    far = inbox.job("far", "far", files=6, source=source.format(keys(s3, SOURCE_KEY)))
    driver.ask("sql", f"{create_table('far', 'iceberg', more)}; {far}")
    # Batches are cut for the executors that there are, and not for those that are on their way.
    cluster.wait_until(lambda: driver.ask("facts")["executors"] == len(cluster.cores), "executors")
    s3.requests()

    killed: list[int] = []
    states = driver.run(
        {
            "running:2": lambda: killed.append(cluster.kill_python_workers()),
            "running:3": lambda: killed.append(cluster.kill_executors(1)),
        }
    )
    assert {name: state for name, (state, _) in states.items()} == {"here": "RUNNING", "far": "RUNNING"}, states
    there = read_elsewhere("delta", tmp_path / "home" / "warehouse" / "shop" / "here")
    for name, rows in (("here", there), ("far", read_iceberg(s3, bucket))):
        assert sorted(rows["id"].to_pylist()) == inbox.ids
        assert driver.ask("verify", name) == [True, []]
    assert min(killed) > 0
    assert len(killed) == 2
    print(f"killed: {killed[0]} Python workers, {killed[1]} executor; 2 tables, {len(inbox.ids)} rows each, as sent")
    assert driver.ask("tasks", "here")[0] == sum(cluster.cores), "a batch is cut for the cores of the cluster"
    cluster.wait_until(lambda: driver.ask("facts")["executors"] == len(cluster.cores), "executor in its place")
    facts = driver.ask("facts")
    assert (facts["cores"], facts["executors"]) == (sum(cluster.cores), len(cluster.cores))
    bad = driver.ask("sql", "SHOW LOAD ERRORS FOR far")
    assert len(bad) == inbox.files, bad
    read = [request for request in s3.requests() if request.method == "GET"]
    signed = {(request.path.removeprefix(f"/{bucket}/").partition("/")[0], request.access_key) for request in read}
    assert {("in", SOURCE_KEY), ("far", TABLE_KEY)} <= signed
    assert ("in", TABLE_KEY) not in signed
    check_no_key(cluster, driver, facts)


def client_of(s3: S3Server) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        region_name="us-east-1",
        aws_access_key_id=secret("reader"),
        aws_secret_access_key=secret("reader"),
    )


def keys(s3: S3Server, key: str) -> str:
    given = {"s3.endpoint": s3.endpoint, "s3.region": "us-east-1", "use_path_style": "true"}
    given |= {"s3.access_key": key, "s3.secret_key": f"{key}-secret"}
    return ", ".join(f"'{name}'='{value}'" for name, value in given.items())


def read_iceberg(s3: S3Server, bucket: str) -> pa.Table:
    """As PyIceberg finds it, by the last metadata of the bucket."""
    listed = client_of(s3).list_objects_v2(Bucket=bucket, Prefix="far/metadata/")["Contents"]
    newest = max(each["Key"] for each in listed if each["Key"].endswith(".metadata.json"))
    given = {
        "s3.endpoint": s3.endpoint,
        "s3.region": "us-east-1",
        "s3.access-key-id": secret("reader"),
        "s3.secret-access-key": secret("reader"),
    }
    return StaticTable.from_metadata(f"s3://{bucket}/{newest}", given).scan().to_arrow()
