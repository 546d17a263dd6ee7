"""An S3-compatible store that looks at keys, policies and roles, with the token service beside it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3

from tests.tables.s3_server import S3Server, serve_s3

_OWNER = {"aws_access_key_id": "owner", "aws_secret_access_key": "owner"}


class GuardedStore:
    """One bucket. A user who may do nothing but ask for roles; a role that may read, for those who know its external
    id; a role that trusts somebody else.
    """

    external_id = "a word between us"

    def __init__(self, server: S3Server) -> None:
        self.endpoint = server.endpoint
        self.bucket = server.make_bucket()
        iam = self.client("iam")
        made = iam.create_user(UserName="loader")["User"]["Arn"]
        self.key: dict[str, str] = iam.create_access_key(UserName="loader")["AccessKey"]
        iam.put_user_policy(UserName="loader", PolicyName="p", PolicyDocument=_policy("sts:AssumeRole", Resource="*"))
        asked = {"StringEquals": {"sts:ExternalId": self.external_id}}
        trust = _policy("sts:AssumeRole", Principal={"AWS": made}, Condition=asked)
        self.role = str(iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trust)["Role"]["Arn"])
        iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=_policy("s3:*", Resource="*"))
        nobody = _policy("sts:AssumeRole", Principal={"AWS": made.replace("loader", "somebody")})
        self.closed_role = str(iam.create_role(RoleName="closed", AssumeRolePolicyDocument=nobody)["Role"]["Arn"])
        owner = iam.create_user(UserName="owner")["User"]["UserName"]
        self.owner: dict[str, str] = iam.create_access_key(UserName=owner)["AccessKey"]
        iam.put_user_policy(UserName=owner, PolicyName="p", PolicyDocument=_policy("*", Resource="*"))
        self._guard()

    def client(self, service: str, **keys: str) -> Any:
        return boto3.client(service, endpoint_url=self.endpoint, region_name="us-east-1", **(keys or _OWNER))

    def put(self, key: str, content: str) -> None:
        owner = {
            "aws_access_key_id": self.owner["AccessKeyId"],
            "aws_secret_access_key": self.owner["SecretAccessKey"],
        }
        self.client("s3", **owner).put_object(Bucket=self.bucket, Key=key, Body=content.encode())

    def properties(self, **more: str) -> dict[str, str]:
        """Properties of S3(…) for the user who may do nothing."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access_key": self.key["AccessKeyId"],
            "s3.secret_key": self.key["SecretAccessKey"],
            "use_path_style": "true",
            **more,
        }

    def _guard(self) -> None:
        """From now on every call is checked."""
        request = urllib.request.Request(  # a server of this test
            f"{self.endpoint}/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"}
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200


def _policy(action: str, **more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, **more}]})


@contextmanager
def serve_guarded_s3() -> Iterator[GuardedStore]:
    """Run such a store on a free port until the block ends."""
    with serve_s3() as server:
        yield GuardedStore(server)
