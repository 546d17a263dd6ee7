"""Answers of S3 that are not of S3: a redirect to another place, a page for browsers.

An endpoint that redirects is a wrong endpoint: of another region, without TLS, or a login page of a proxy. botocore
takes every redirect for one of AWS and asks the same endpoint for the region of the bucket, which redirects as well,
until Python's stack ends. A page that comes with status 200 has no files in it, and looks like an empty bucket. Both
are errors here.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REGION = "x-amz-bucket-region"
"""AWS says with it where a bucket is; botocore goes there, once."""
_HAVE_ETAG = frozenset({"PutObject", "GetObject", "HeadObject"})
_MOST_SHOWN = 200


class NotS3Error(BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """What answers at the endpoint is not the S3 service of this bucket."""

    fmt = "{endpoint} {why}. Check s3.endpoint, s3.region and use_path_style"


def refuse_strange_answers(client: Any) -> Any:
    """Have a client of boto3 raise NotS3Error, a BotoCoreError, for answers that S3 does not give."""
    client.meta.events.register("response-received.s3", _Check(client.meta.endpoint_url))
    return client


class _Check:
    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def __call__(self, event_name: str = "", response_dict: Any = None, **_: Any) -> None:
        if response_dict is None:
            return  # No answer came; the error that botocore has for it says why.
        operation = event_name.rpartition(".")[2]
        status, headers = int(response_dict["status_code"]), response_dict["headers"]
        if status in _REDIRECTS and _REGION not in headers:
            place = str(headers.get("location", ""))[:_MOST_SHOWN]
            why = f"redirects{f' to {place}' if place else ''} (status {status}), which S3 does not do"
            raise self._fault(why)
        if status >= 300:
            return
        if operation in _HAVE_ETAG and "etag" not in headers:
            why = f"answers {operation} without an ETag, as {_kind(headers)}: it is not S3"
            raise self._fault(why)
        if operation == "ListObjectsV2" and b"ListBucketResult" not in (response_dict["body"] or b"")[:4096]:
            why = f"answers {operation} with {_kind(headers)} and without a listing: it is not S3"
            raise self._fault(why)

    def _fault(self, why: str) -> NotS3Error:
        return NotS3Error(endpoint=self._endpoint, why=why)


def _kind(headers: Any) -> str:
    return str(headers.get("content-type", "") or "something unknown")[:_MOST_SHOWN]
