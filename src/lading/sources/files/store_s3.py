"""Objects in an S3-compatible bucket."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from botocore.parsers import ResponseParserError

from lading.errors import ListingError
from lading.sources.aws import role_refused
from lading.sources.files.errors import file_changed, file_gone, listing_failed, listing_unsorted, store_failed
from lading.sources.files.s3_clients import client_of
from lading.sources.files.spec import S3Access
from lading.sources.files.store import ObjectInfo

_MAX_RESUMES = 5
_DIRECTORY_BUCKET = "--x-s3"
"""How names of directory buckets end (S3 Express One Zone). They do not list in the order of keys."""
_BROKEN = (BotoCoreError, ResponseParserError)
"""No answer, or one that no store gives: a proxy's page, for example."""
_GONE = {"NoSuchKey", "404", "NotFound"}
_CHANGED = {"PreconditionFailed", "412"}
_PAST_END = {"InvalidRange", "416"}
_DENIED = {
    *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "403"),
    *("InvalidClientTokenId", "AuthFailure"),
}


class S3Store:
    """One bucket."""

    def __init__(self, bucket: str, access: S3Access) -> None:
        self._bucket = bucket
        self._role = access.role_arn
        self._s3 = client_of(access)
        self._is_unsorted = bucket.endswith(_DIRECTORY_BUCKET)
        """Whether listings come in another order than that of keys."""

    def list(self, prefix: str, start_after: str, *, max_slashes: int | None = None) -> Iterator[ObjectInfo]:
        if self._is_unsorted:
            yield from self._list_sorted(prefix, start_after)
            return
        last = ""
        for found in self._pages(Prefix=prefix, StartAfter=start_after):
            if found.key < last:
                self._is_unsorted = True
                raise listing_unsorted(self.uri(prefix))
            if found.key > max(last, start_after):
                yield found
            last = found.key

    def _list_sorted(self, prefix: str, start_after: str) -> Iterator[ObjectInfo]:
        """For stores with an order of their own: all keys are fetched and sorted here.

        Directory buckets know no StartAfter, and only prefixes that end with a slash.
        """
        pages = self._pages(Prefix=prefix[: prefix.rfind("/") + 1])
        found = {each.key: each for each in pages if each.key > start_after and each.key.startswith(prefix)}
        yield from (found[key] for key in sorted(found))

    def _pages(self, **asked: str) -> Iterator[ObjectInfo]:
        try:
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, **asked):
                for item in page.get("Contents", ()):
                    if not item["Key"].endswith("/"):
                        yield ObjectInfo(item["Key"], item["Size"], item["ETag"], item["LastModified"])
        except (ClientError, *_BROKEN) as error:
            raise self._listing_failed(asked["Prefix"], error) from error

    def _listing_failed(self, prefix: str, error: Exception) -> ListingError:
        if role_refused(error):
            todo = "Check s3.role_arn and s3.external_id, the role's trust policy, and that the keys may assume it."
            why = f"Can not build s3: the role {self._role} cannot be assumed: {error}"
            return listing_failed(self.uri(prefix), why, todo)
        if isinstance(error, NoCredentialsError | PartialCredentialsError) or code_of(error) in _DENIED:
            todo = "Check s3.access_key, s3.secret_key and s3.region, and that they may list the bucket."
            return listing_failed(self.uri(prefix), f"Can not build s3: {error}", todo)
        return listing_failed(self.uri(prefix), error)

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> S3File:
        return S3File(self._s3, self._bucket, key, etag=if_match, size=size, random=random)

    def uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"


class S3File(io.RawIOBase):
    """One object. Every request asks for the etag that was listed, so no read can mix two contents.

    A broken connection is resumed where it broke.
    """

    def __init__(self, s3: Any, bucket: str, key: str, *, etag: str, size: int, random: bool) -> None:
        super().__init__()
        self._s3, self._bucket, self._key = s3, bucket, key
        self._etag, self._size, self._random = etag, size, random
        self._uri = f"s3://{bucket}/{key}"
        self._at = 0
        self._body: Any = None
        if size == 0:
            self._check_empty()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0, /) -> int:
        base = {0: 0, 1: self._at, 2: self._size}[whence]
        if base + offset != self._at:
            self._drop_body()
            self._at = base + offset
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self._size - self._at if size is None or size < 0 else min(size, self._size - self._at)
        if wanted <= 0:
            return b""
        for attempt in range(_MAX_RESUMES):
            try:
                content = self._read_some(wanted)
            except _BROKEN as error:
                self._drop_body()
                if attempt == _MAX_RESUMES - 1:
                    raise store_failed(self._uri, error) from error
            else:
                self._at += len(content)
                return content
        raise AssertionError

    def close(self) -> None:
        self._drop_body()
        super().close()

    def check(self) -> None:
        """Nothing to do: the store itself compared the etag at every request."""

    def _read_some(self, wanted: int) -> bytes:
        if self._random:
            body = self._get(f"bytes={self._at}-{self._at + wanted - 1}")
            return bytes(body.read())
        if self._body is None:
            self._body = self._get(f"bytes={self._at}-")
        content = bytes(self._body.read(wanted))
        if not content:
            self._drop_body()
            raise store_failed(self._uri, f"it ended at byte {self._at} of {self._size}")
        return content

    def _get(self, span: str) -> Any:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._key, IfMatch=self._etag, Range=span)
        except ClientError as error:
            raise self._translate(error) from error
        if answer["ETag"] != self._etag:
            # A store that does not know If-Match.
            answer["Body"].close()
            raise file_changed(self._uri, self._etag, answer["ETag"])
        return answer["Body"]

    def _check_empty(self) -> None:
        try:
            answer = self._s3.head_object(Bucket=self._bucket, Key=self._key)
        except ClientError as error:
            raise self._translate(error) from error
        except _BROKEN as error:
            raise store_failed(self._uri, error) from error
        if answer["ETag"] != self._etag:
            raise file_changed(self._uri, self._etag, answer["ETag"])

    def _translate(self, error: ClientError) -> Exception:
        code = code_of(error)
        if code in _GONE:
            return file_gone(self._uri)
        if code in _CHANGED or code in _PAST_END:
            return file_changed(self._uri, self._etag, "another")
        return store_failed(self._uri, error)

    def _drop_body(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


def code_of(error: Exception) -> str:
    """The code of an answer of the store; empty when it gave none."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
