"""Objects in an S3-compatible store."""

from __future__ import annotations

import io
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from botocore.parsers import ResponseParserError

from lading.errors import StorageError
from lading.model.s3_access import S3Access
from lading.storage.aws import role_refused
from lading.storage.errors import CHANGED, DENIED, GONE, ROLE, UNSORTED, store_failed
from lading.storage.s3_client import client_of
from lading.storage.store import ObjectInfo, Upload

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_MAX_RESUMES = 5
_MAX_RACES = 8
_MAX_DELETES = 1000
_HEADS_AT_ONCE = 16
_DIRECTORY_BUCKET = "--x-s3"
"""How names of directory buckets end (S3 Express One Zone). They do not list in the order of keys."""
_BROKEN = (BotoCoreError, ResponseParserError)
"""No answer, or one that no store gives: a proxy's page, for example."""
_FAILED = (ClientError, *_BROKEN)
_GONE = {"NoSuchKey", "404", "NotFound"}
_FAILS_IF = {"PreconditionFailed", "412"}
_RACING = {"ConditionalRequestConflict", "409"}
_PAST_END = {"InvalidRange", "416"}
_UNKNOWN_REQUEST = {"NotImplemented", "501", "MethodNotAllowed", "405"}
"""A store that looks like S3 and does not know such a request."""
_DENIED = {
    *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "403"),
    *("InvalidClientTokenId", "AuthFailure"),
}


class S3Store:
    """A bucket, or a prefix in it. Puts are conditional (`If-None-Match: *`)."""

    def __init__(self, bucket: str, access: S3Access, prefix: str = "") -> None:
        self._bucket = bucket
        self._access = access
        self._prefix = prefix
        self._start = f"{prefix}/" if prefix else ""
        self._is_unsorted = bucket.endswith(_DIRECTORY_BUCKET)
        """Whether listings come in another order than that of keys."""

    @cached_property
    def _s3(self) -> Any:
        return client_of(self._access)

    @property
    def uri(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def uri_of(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._start}{key}"

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        if self._is_unsorted:
            yield from self._list_sorted(prefix, start_after)
            return
        last = ""
        after = self._start + start_after if start_after else ""
        for found in self._pages(Prefix=self._start + prefix, StartAfter=after):
            if found.key < last:
                self._is_unsorted = True
                raise self._failed(prefix, "it is not listed in the order of keys", fault=UNSORTED)
            if found.key > max(last, start_after):
                yield found
            last = found.key

    def _list_sorted(self, prefix: str, start_after: str) -> Iterator[ObjectInfo]:
        """For stores with an order of their own: all keys are fetched and sorted here.

        Directory buckets know no StartAfter, and only prefixes that end with a slash.
        """
        whole = self._start + prefix
        pages = self._pages(Prefix=whole[: whole.rfind("/") + 1])
        found = {each.key: each for each in pages if each.key > start_after and each.key.startswith(prefix)}
        yield from (found[key] for key in sorted(found))

    def _pages(self, **asked: str) -> Iterator[ObjectInfo]:
        skip = len(self._start)
        try:
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, **asked):
                for item in page.get("Contents", ()):
                    if not item["Key"].endswith("/"):
                        yield ObjectInfo(item["Key"][skip:], item["Size"], item["ETag"], item["LastModified"])
        except _FAILED as error:
            raise self._failed(asked["Prefix"][skip:], error) from error

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        return (found.key for found in self.list(prefix, start_after))

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> S3File:
        return S3File(self._s3, self._bucket, self._start + key, etag=if_match, size=size, random=random)

    def for_many(self) -> S3Store:
        return self

    def get(self, key: str) -> bytes | None:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._start + key)
            with closing(answer["Body"]) as body:
                content: bytes = body.read()
        except _FAILED as error:
            if _code(error) in _GONE:
                return None
            raise self._failed(key, error) from error
        return content

    def sizes(self, keys: Sequence[str]) -> Sequence[int | None]:
        with ThreadPoolExecutor(_HEADS_AT_ONCE) as pool:
            return list(pool.map(self._size, keys))

    def _size(self, key: str) -> int | None:
        try:
            return int(self._s3.head_object(Bucket=self._bucket, Key=self._start + key)["ContentLength"])
        except _FAILED as error:
            if _code(error) in _GONE:
                return None
            raise self._failed(key, error) from error

    def put_if_absent(self, key: str, content: bytes) -> bool:
        # This client does not retry: after a lost answer a second put would see the first one's object and take it
        # for somebody else's. The caller looks at the object instead.
        once = client_of(self._access, attempts=1)
        for _ in range(_MAX_RACES):
            try:
                once.put_object(Bucket=self._bucket, Key=self._start + key, Body=content, IfNoneMatch="*")
            except _FAILED as error:
                code = _code(error)
                if code in _FAILS_IF:
                    return False
                if code in _RACING:
                    continue
                raise self._failed(key, error, unknown=_may_have_been_done(error)) from error
            else:
                return True
        raise self._failed(key, "other writers kept racing for it")

    def put(self, key: str, content: bytes) -> None:
        try:
            self._s3.put_object(Bucket=self._bucket, Key=self._start + key, Body=content)
        except _FAILED as error:
            raise self._failed(key, error, unknown=_may_have_been_done(error)) from error

    def delete(self, keys: Iterable[str]) -> None:
        left = list(keys)
        for group in (left[at : at + _MAX_DELETES] for at in range(0, len(left), _MAX_DELETES)):
            objects = [{"Key": self._start + key} for key in group]
            try:
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
            except _FAILED as error:
                raise self._failed(group[0], error) from error
            # The request succeeds also when single objects could not be deleted.
            for refused in answer.get("Errors", ()):
                raise self._failed(group[0], f"{refused.get('Key')}: {refused.get('Code')}")

    def uploads(self) -> Iterator[Upload]:
        whole, skip = "", len(self._start)
        try:
            for page in self._s3.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._bucket, Prefix=self._start
            ):
                for item in page.get("Uploads", ()):
                    yield Upload(item["Key"][skip:], item["UploadId"], item["Initiated"])
        except _FAILED as error:
            if _code(error) not in _UNKNOWN_REQUEST:
                raise self._failed(whole, error) from error

    def abort(self, upload: Upload) -> None:
        try:
            self._s3.abort_multipart_upload(
                Bucket=self._bucket, Key=self._start + upload.key, UploadId=upload.upload_id
            )
        except _FAILED as error:
            if _code(error) != "NoSuchUpload":
                raise self._failed(upload.key, error) from error

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        from lading.storage.libraries import arrow_filesystem

        return arrow_filesystem(self._access), f"{self._bucket}/{self._prefix}".rstrip("/")

    def _failed(self, key: str, why: object, *, fault: str = "", unknown: bool = False) -> StorageError:
        role = ""
        if isinstance(why, Exception) and role_refused(why):
            fault, role = ROLE, self._access.role_arn
        elif is_denied(why):
            fault = DENIED
        return store_failed(self.uri_of(key), why, fault=fault, unknown=unknown, role=role)


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
            with closing(self._get(f"bytes={self._at}-{self._at + wanted - 1}")) as body:
                return bytes(body.read())
        if self._body is None:
            self._body = self._get(f"bytes={self._at}-")
        content = bytes(self._body.read(wanted))
        if not content:
            self._drop_body()
            ended = EOFError(f"it ended at byte {self._at} of {self._size}")
            raise store_failed(self._uri, ended) from ended
        return content

    def _get(self, span: str) -> Any:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._key, IfMatch=self._etag, Range=span)
        except ClientError as error:
            raise self._translate(error) from error
        if answer["ETag"] != self._etag:
            # A store that does not know If-Match.
            answer["Body"].close()
            raise self._changed(answer["ETag"])
        return answer["Body"]

    def _check_empty(self) -> None:
        try:
            answer = self._s3.head_object(Bucket=self._bucket, Key=self._key)
        except ClientError as error:
            raise self._translate(error) from error
        except _BROKEN as error:
            raise store_failed(self._uri, error) from error
        if answer["ETag"] != self._etag:
            raise self._changed(answer["ETag"])

    def _translate(self, error: ClientError) -> StorageError:
        code = _code(error)
        if code in _GONE:
            return store_failed(self._uri, error, fault=GONE)
        if code in _FAILS_IF or code in _PAST_END:
            return self._changed("another")
        return store_failed(self._uri, error)

    def _changed(self, now: str) -> StorageError:
        return store_failed(self._uri, "it was replaced", fault=CHANGED, was=self._etag, now=now)

    def _drop_body(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


def is_denied(error: object) -> bool:
    """Whether the store refused the keys, or there were none. HEAD has no text: a token that ended is 400 there."""
    is_bare = getattr(error, "operation_name", "") == "HeadObject" and _code(error) == "400"
    return is_bare or isinstance(error, NoCredentialsError | PartialCredentialsError) or _code(error) in _DENIED


def _code(error: object) -> str:
    """The code of an answer of the store; empty when it gave none."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _may_have_been_done(error: Exception) -> bool:
    """No answer came, or one that says that the store itself does not know."""
    if not isinstance(error, ClientError):
        return True
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500
