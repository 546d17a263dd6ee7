"""Clients of S3, shared: a thousand jobs with the same access have one client, one pool of connections and one role."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from lading.errors import ConfigError
from lading.net.peers import guard_peers
from lading.s3_answers import refuse_strange_answers
from lading.sources.aws import Credentials, open_session, sts_endpoint_of
from lading.sources.files.spec import S3Access

_MAX_CLIENTS = 64
"""A client costs some MiB. One that falls out lives on as long as a job holds it."""
_POOL = 32
_making = threading.Lock()


def client_of(access: S3Access) -> Any:
    """The client for an access. Safe for threads, as boto3's clients are; making one is not, hence the lock."""
    with _making:
        return _client(access)


@lru_cache(maxsize=_MAX_CLIENTS)
def _client(access: S3Access) -> Any:
    try:
        return _build(access)
    except (BotoCoreError, ValueError) as error:
        msg = f"Can not build s3: {error}"
        raise ConfigError(msg, left="Nothing was read.", todo="Check s3.endpoint, s3.region and the keys.") from error


def _build(access: S3Access) -> Any:
    credentials = Credentials(
        access_key=access.access_key,
        secret_key=access.secret_key,
        session_token=access.session_token,
        role_arn=access.role_arn,
        external_id=access.external_id,
        sts_endpoint=sts_endpoint_of(access.endpoint, access.sts_endpoint),
        addresses=access.addresses,
    )
    client = open_session(credentials, access.region).client(
        "s3",
        endpoint_url=access.endpoint or None,
        region_name=access.region or None,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 5},
            s3={"addressing_style": "path" if access.path_style else "auto"},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=_POOL,
            signature_version=UNSIGNED if access.anonymous else None,
        ),
    )
    guarded = guard_peers(client, access.addresses) if access.endpoint else client
    return refuse_strange_answers(guarded)
