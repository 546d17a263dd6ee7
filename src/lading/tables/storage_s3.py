"""Objects in an S3-compatible store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow.fs as pafs
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lading.errors import StorageError
from lading.net.peers import guard_peers
from lading.s3_answers import refuse_strange_answers
from lading.tables.s3_filesystem import s3_filesystem

if TYPE_CHECKING:
    from lading.tables.storage import StorageOptions

_ABSENT = {"NoSuchKey", "404", "NotFound"}
_PRESENT = {"PreconditionFailed", "412"}
_RACING = {"ConditionalRequestConflict", "409"}
_MAX_RACES = 8
_MAX_DELETES = 1000


class S3Storage:
    """A prefix in a bucket. Puts are conditional (`If-None-Match: *`)."""

    def __init__(self, bucket: str, prefix: str, options: StorageOptions) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._options = options
        self._s3 = _client(options)

    @property
    def uri(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def put_if_absent(self, key: str, content: bytes) -> bool:
        # The client does not retry: after a lost answer a second put would see the first one's object and take it
        # for somebody else's. The caller looks at the object instead.
        for _ in range(_MAX_RACES):
            try:
                self._s3.put_object(Bucket=self._bucket, Key=self._full(key), Body=content, IfNoneMatch="*")
            except ClientError as error:
                code = _code(error)
                if code in _PRESENT:
                    return False
                if code in _RACING:
                    continue
                raise self._failed(key, error, unknown=_status(error) >= 500) from error
            except BotoCoreError as error:
                raise self._failed(key, error, unknown=True) from error
            else:
                return True
        raise self._failed(key, "other writers kept racing for it", unknown=False)

    def get(self, key: str) -> bytes | None:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._full(key))
            content: bytes = answer["Body"].read()
        except ClientError as error:
            if _code(error) in _ABSENT:
                return None
            raise self._failed(key, error, unknown=False) from error
        except BotoCoreError as error:
            raise self._failed(key, error, unknown=False) from error
        return content

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._full(prefix), StartAfter=self._full(start_after) if start_after else ""
        )
        skip = len(self._full(""))
        try:
            for page in pages:
                for item in page.get("Contents", ()):
                    yield item["Key"][skip:]
        except (ClientError, BotoCoreError) as error:
            raise self._failed(prefix, error, unknown=False) from error

    def delete(self, keys: Iterable[str]) -> None:
        left = list(keys)
        for group in (left[at : at + _MAX_DELETES] for at in range(0, len(left), _MAX_DELETES)):
            objects = [{"Key": self._full(key)} for key in group]
            try:
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
            except (ClientError, BotoCoreError) as error:
                raise self._failed(group[0], error, unknown=False) from error
            # The request succeeds also when single objects could not be deleted.
            for refused in answer.get("Errors", ()):
                raise self._failed(group[0], f"{refused.get('Key')}: {refused.get('Code')}", unknown=False)

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        return s3_filesystem(self._options), f"{self._bucket}/{self._prefix}".rstrip("/")

    def _full(self, key: str) -> str:
        return f"{self._prefix}/{key}" if self._prefix else key

    def _failed(self, key: str, error: object, *, unknown: bool) -> StorageError:
        msg = f"{self.uri}/{key} could not be read or written: {error}"
        return StorageError(
            msg,
            left="It may or may not have been written." if unknown else "Nothing was written.",
            todo="Check the endpoint, the credentials and the bucket.",
            unknown=unknown,
        )


def _client(options: StorageOptions) -> Any:
    client = boto3.client(
        "s3",
        endpoint_url=options.endpoint or None,
        region_name=options.region or None,
        aws_access_key_id=options.access_key or None,
        aws_secret_access_key=options.secret_key or None,
        aws_session_token=options.session_token or None,
        config=Config(
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path" if options.path_style else "auto"},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=32,
        ),
    )
    guarded = guard_peers(client, options.addresses) if options.endpoint else client
    return refuse_strange_answers(guarded)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
