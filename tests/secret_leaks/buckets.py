"""Looks for secrets in all objects of a store: tables, bills and manifests that were written there."""

from __future__ import annotations

from pathlib import Path

import boto3

from lading.testing.marked import secret
from tests.secret_leaks.files import look_inside
from tests.secret_leaks.watch import Watch


def look_at_buckets(endpoint: str, watch: Watch) -> int:
    """Show every object to the watch, as it is and unpacked. Says how many there were."""
    keys = {"aws_access_key_id": secret("owner"), "aws_secret_access_key": secret("owner")}
    store = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    count = 0
    for bucket in store.list_buckets()["Buckets"]:
        for page in store.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
            for found in page.get("Contents", ()):
                where = f"s3://{bucket['Name']}/{found['Key']}"
                raw = store.get_object(Bucket=bucket["Name"], Key=found["Key"])["Body"].read()
                count += 1
                if not watch.look(f"{where} {found}", where) and not watch.look(raw, where):
                    look_inside(raw, Path(where), watch)
    return count
