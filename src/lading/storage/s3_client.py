"""Clients of S3, shared: a thousand jobs with the same access have one client, one pool of connections and one role.

They go to no address that the rules forbid, and take no answer that S3 does not give. An endpoint that redirects is a
wrong endpoint: of another region, without TLS, or a login page of a proxy. botocore takes every redirect for one of AWS
and asks the same endpoint for the region of the bucket, which redirects as well, until Python's stack ends. A page that
comes with status 200 has no files in it, and looks like an empty bucket. Both are errors here.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import lru_cache
from typing import Any

from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.response import StreamingBody

from lading.errors import ConfigError
from lading.model.s3_access import S3Access
from lading.net.peers import guard_peers
from lading.storage.aws import Credentials, open_session, sts_endpoint_of

_MAX_CLIENTS = 64
"""A client costs some MiB. One that falls out lives on as long as a job holds it."""
_POOL = 32
_ATTEMPTS, _SILENCE_S = 5, 20
"""A store that says nothing for so long is asked again; after all attempts, in two minutes, the job says so."""
_making = threading.Lock()
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REGION = "x-amz-bucket-region"
"""AWS says with it where a bucket is; botocore goes there, once."""
_HAVE_ETAG = frozenset({"PutObject", "GetObject", "HeadObject"})
_MOST_SHOWN = 200


def client_of(access: S3Access, *, attempts: int = _ATTEMPTS) -> Any:
    """The client for an access. Safe for threads, as boto3's clients are; making one is not, hence the lock."""
    with _making:
        return _client(replace(access, within=""), attempts)


@lru_cache(maxsize=_MAX_CLIENTS)
def _client(access: S3Access, attempts: int) -> Any:
    try:
        return _build(access, attempts)
    except (BotoCoreError, ValueError) as error:
        msg = f"Can not build s3: {error}"
        raise ConfigError(msg, left="Nothing was read.", todo="Check s3.endpoint, s3.region and the keys.") from error


def _build(access: S3Access, attempts: int) -> Any:
    endpoint = _url(access.endpoint)
    credentials = Credentials(
        access_key=access.access_key,
        secret_key=access.secret_key,
        session_token=access.session_token,
        role_arn=access.role_arn,
        external_id=access.external_id,
        sts_endpoint=sts_endpoint_of(endpoint, _url(access.sts_endpoint)),
        addresses=access.addresses,
    )
    client = open_session(credentials, access.region).client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=access.region or None,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            s3={"addressing_style": "path" if access.path_style else "auto"},
            connect_timeout=10,
            read_timeout=_SILENCE_S,
            max_pool_connections=_POOL,
            signature_version=UNSIGNED if access.anonymous else None,
        ),
    )
    if endpoint:
        guard_peers(client, access.addresses)
    client.meta.events.register("response-received.s3", _Check(client.meta.endpoint_url))
    return client


def _url(endpoint: str) -> str:
    return f"https://{endpoint}" if endpoint and "://" not in endpoint else endpoint


class NotS3Error(BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """What answers at the endpoint is not the S3 service of this bucket."""

    fmt = "{endpoint} {why}. Check s3.endpoint, s3.region and use_path_style"


class _Check:
    """Raises NotS3Error for answers that S3 does not give."""

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
            if isinstance(response_dict["body"], StreamingBody):
                response_dict["body"].close()  # Nobody else gets it, and its connection would stay open.
            why = f"answers {operation} without an ETag, as {_kind(headers)}: it is not S3"
            raise self._fault(why)
        if operation == "ListObjectsV2" and b"ListBucketResult" not in (response_dict["body"] or b"")[:4096]:
            why = f"answers {operation} with {_kind(headers)} and without a listing: it is not S3"
            raise self._fault(why)

    def _fault(self, why: str) -> NotS3Error:
        return NotS3Error(endpoint=self._endpoint, why=why)


def _kind(headers: Any) -> str:
    return str(headers.get("content-type", "") or "something unknown")[:_MOST_SHOWN]
