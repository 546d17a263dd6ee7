"""The service's cloud identity is lent to what has no keys of its own, and to nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import boto3
import pytest

from lading.pipeline.stage import Stage
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import CancellableStager
from lading.testing.marked import secret
from tests.console.local import LocalLading
from tests.tables.s3_server import S3Server

SERVICE = {
    "AWS_ACCESS_KEY_ID": secret("service"),
    "AWS_SECRET_ACCESS_KEY": secret("service"),
    "AWS_PROFILE": "service",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2",
    "AWS_REGION": "us-east-1",
    "https_proxy": "http://proxy.example:3128",
}
WAY = {"AWS_REGION", "https_proxy"}


class Watched(LocalLading):
    """Remembers what jobs are staged with."""

    staged: Stage | None = None

    def _stager(self, compiled: Compiled) -> CancellableStager:
        self.staged = compiled.stage
        return super()._stager(compiled)


def properties(s3: S3Server, *, keys: bool) -> dict[str, str]:
    own = {"s3.access_key": secret("access"), "s3.secret_key": secret("key")} if keys else {}
    return {"s3.endpoint": s3.endpoint, "s3.region": "us-east-1", "use_path_style": "true", **own}


def text(given: Mapping[str, str], quote: str) -> str:
    return ", ".join(f"{quote}{name}{quote}={quote}{value}{quote}" for name, value in given.items())


@pytest.mark.parametrize("source_has_keys", [True, False])
@pytest.mark.parametrize("table", ["local", "own keys", "no keys"])
def test_who_is_lent_what(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, source_has_keys: bool
) -> None:
    """Every stage was lent it, also those of jobs whose keys are their own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, SERVICE[name])
    bucket = s3.make_bucket()
    reach = text(properties(s3, keys=table == "own keys"), "'")
    place = "" if table == "local" else f"LOCATION 's3://{bucket}/t' TBLPROPERTIES({reach})"
    source = text({"uri": f"s3://{bucket}/in/*.csv", **properties(s3, keys=source_has_keys)}, '"')
    with Watched(tmp_path / "home", allow_private_endpoints="true") as lading:
        lading.sql(f"CREATE TABLE t (id BIGINT) USING delta {place}")
        keys = {"aws_access_key_id": secret("access"), "aws_secret_access_key": secret("key")}
        store = boto3.client("s3", endpoint_url=s3.endpoint, region_name="us-east-1", **keys)
        store.put_object(Bucket=bucket, Key="in/1.csv", Body=b"id\n1\n")
        store.close()
        lading.sql(
            "CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id FROM "
            f'S3({source}, "format"="csv_with_names", "column_separator"=",")'
        )
        lading.run()
        stage = lading.staged
    assert stage is not None
    reads, writes = stage.shares(replace(stage.tools, identity=SERVICE))
    assert set(reads.identity) == (WAY if source_has_keys else set(SERVICE))
    assert set(writes.identity) == (set(SERVICE) if table == "no keys" else WAY)
