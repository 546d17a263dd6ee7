"""Who asks AWS, or a service that speaks like it: keys, the usual chain, and roles whose credentials renew themselves.

boto3 takes a quarter of a second to import, so it is imported by the first call.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.net.peers import guard_peers

SESSION_NAME = "lading"
"""How Lading is called in the logs of the account whose role it assumed."""
_AWS_HOST = re.compile(r"(https?://)?[^/]*\.amazonaws\.com(\.cn)?(:\d+)?/?", re.IGNORECASE)
_METHOD = "assume-role"
_reading = threading.Lock()
_LEFT = "Nothing was read."


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who asks. Empty values leave it to the default chain."""

    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    provider: str = ""
    """`env`, `instance_profile` or `simple`; empty: the default chain, unless keys are given."""
    role_arn: str = ""
    external_id: str = field(default="", repr=False)
    sts_endpoint: str = ""
    """Who gives credentials for the role. Empty: AWS, in the region."""
    addresses: AddressRules = EVERY_PRIVATE
    """What `sts_endpoint` may lead to."""


def sts_endpoint_of(service_endpoint: str, given: str = "") -> str:
    """Who is asked for a role. A store that is not AWS answers for itself; AWS must not see its keys."""
    if given or not service_endpoint or _AWS_HOST.fullmatch(service_endpoint):
        return given
    return service_endpoint


def open_session(credentials: Credentials, region: str, *, now: Callable[[], datetime] | None = None) -> Any:
    """A boto3 session for these credentials. A role is assumed by the first call that needs it."""
    import boto3
    from botocore.session import get_session

    session = get_session()
    own = _own(credentials)
    if credentials.role_arn:
        own = _assumed(credentials, own or session.get_credentials(), region, now)
    if own is not None:
        session._credentials = own  # noqa: SLF001  # the only way to hand over credentials that renew themselves
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
    with _reading:
        loader = _loader(session.get_config_variable("data_path"))
        session.register_component("data_loader", loader)
        made = boto3.Session(botocore_session=session)
        loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # Each session of boto3 adds its folder.
    return made


@lru_cache(maxsize=4)
def _loader(data_path: str | None) -> Any:
    """What AWS says of its services, read once: more work than all else of a client, and each session would do it."""
    from botocore.loaders import create_loader

    return create_loader(data_path)


def _moment(value: Any) -> datetime:
    """A time in an answer. botocore's own way takes longer than all the rest of a record of Kinesis."""
    if isinstance(value, float | int):
        return datetime.fromtimestamp(value, UTC)
    from botocore.utils import parse_timestamp

    moment: datetime = parse_timestamp(value)
    return moment


def _own(credentials: Credentials) -> Any:
    """None: the usual chain of botocore, when a client is made."""
    from botocore.credentials import Credentials as Keys
    from botocore.credentials import EnvProvider, InstanceMetadataFetcher, InstanceMetadataProvider

    if credentials.access_key:
        return Keys(credentials.access_key, credentials.secret_key, credentials.session_token or None)
    match credentials.provider:
        case "":
            return None
        case "env":
            found = EnvProvider().load()
        case "instance_profile":
            found = InstanceMetadataProvider(iam_role_fetcher=InstanceMetadataFetcher()).load()
        case _:
            found = None
    if found is None:
        msg = f"No credentials were found by the provider {credentials.provider}"
        raise ConfigError(msg, left=_LEFT, todo="Give an access key and a secret key, or another provider.")
    return found


def _assumed(credentials: Credentials, source: Any, region: str, now: Callable[[], datetime] | None) -> Any:
    """Credentials of a role. botocore renews them a quarter of an hour before they expire, while the old ones still
    work; when that fails it is tried at every call, and from ten minutes before the end on the call fails.
    """
    from botocore.credentials import DeferredRefreshableCredentials

    if source is None:
        msg = f"No credentials were found to assume the role {credentials.role_arn} with"
        raise ConfigError(msg, left=_LEFT, todo="Give an access key and a secret key, or set up the machine.")

    time = now or SystemClock().now

    def assume() -> dict[str, Any]:
        return _assume(credentials, source, region, time)

    return DeferredRefreshableCredentials(method=_METHOD, refresh_using=assume, time_fetcher=time)


def _assume(credentials: Credentials, source: Any, region: str, now: Callable[[], datetime]) -> dict[str, Any]:
    import boto3
    from botocore.config import Config
    from botocore.session import get_session

    session = get_session()
    session._credentials = source  # noqa: SLF001  # as above
    client = boto3.Session(botocore_session=session).client(
        "sts",
        region_name=region or None,
        endpoint_url=credentials.sts_endpoint or None,
        config=Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=10, read_timeout=20),
    )
    if credentials.sts_endpoint:
        guard_peers(client, credentials.addresses)
    asked = {"RoleArn": credentials.role_arn, "RoleSessionName": SESSION_NAME}
    if credentials.external_id:
        asked["ExternalId"] = credentials.external_id
    try:
        found = client.assume_role(**asked)["Credentials"]
    finally:
        client.close()
    if found["Expiration"] <= now():
        msg = f"The credentials of the role {credentials.role_arn} had expired when they came: {found['Expiration']}"
        raise ConfigError(msg, left=_LEFT, todo="Look at the clock of this machine.")
    return {
        "access_key": found["AccessKeyId"],
        "secret_key": found["SecretAccessKey"],
        "token": found["SessionToken"],
        "expiry_time": found["Expiration"].isoformat(),
    }


def role_refused(error: Exception) -> bool:
    """Whether it was the role that could not be had, and not what was asked for with it."""
    return getattr(error, "operation_name", "") == "AssumeRole"


def has_keys(properties: Mapping[str, str], prefix: str) -> bool:
    """Whether properties have keys of their own: both, and not empty. Libraries take an empty key for none and sign
    with the identity of the machine."""
    return all(properties.get(f"{prefix}.{name}", "").strip() for name in ("access_key", "secret_key"))
