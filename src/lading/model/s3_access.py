"""How a bucket is reached. Statements, sources and tables say it with the same record."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from lading.errors import ConfigError
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.suggest import did_you_mean

S3_SCHEMES = ("s3", "s3a", "s3n")
_KEYS = ("s3.access_key", "s3.secret_key")
_TABLE_PROPERTIES = (*_KEYS, "s3.endpoint", "s3.region", "s3.session_token", "use_path_style")
_REGION = re.compile(r"[A-Za-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """How to reach an S3-compatible store. Empty values leave it to the default chain. Pickles."""

    endpoint: str = ""
    region: str = ""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    role_arn: str = ""
    """Assumed with the keys above, or with those of the default chain."""
    external_id: str = field(default="", repr=False)
    sts_endpoint: str = ""
    """Who is asked for the role. Empty: the endpoint of the store, or AWS when the store is AWS's own."""
    path_style: bool = False
    anonymous: bool = False
    """Requests are not signed: the bucket is open to everybody, and no identity is used."""
    addresses: AddressRules = EVERY_PRIVATE
    """What an endpoint may lead to."""
    within: str = ""
    """Where a table is. Others can write its files, so what these name elsewhere is opened only within limits."""

    roots: tuple[str, ...] = ()
    """Folders of this machine where tables of a catalog may be, for one that may be in buckets, too."""

    def allows(self, uri: str) -> bool:
        """Whether a place that the files of a table name may be opened."""
        return is_allowed(uri, self.within, has_own_keys=bool(self.access_key), roots=self.roots)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> S3Access:
        """Read the `s3.*` properties of a table."""
        unknown = sorted(key for key in properties if key not in _TABLE_PROPERTIES)
        if unknown:
            msg = f"Unknown storage properties: {', '.join(unknown)}"
            near = "".join(did_you_mean(name, _TABLE_PROPERTIES) for name in unknown)
            raise ConfigError(
                msg, left="Nothing was changed.", todo=f"{near}Known are: {', '.join(sorted(_TABLE_PROPERTIES))}."
            )
        if not _REGION.fullmatch(properties.get("s3.region", "")):
            # It becomes part of the name of a host.
            msg = f"s3.region is not a region: {properties['s3.region']!r}"
            raise ConfigError(msg, left="Nothing was changed.", todo="Write for example eu-west-1.")
        keys = [properties.get(name, "").strip() for name in _KEYS]
        if any(name in properties and not properties[name].strip() for name in _KEYS) or bool(keys[0]) != bool(keys[1]):
            # Libraries take an empty key for none, and sign with the identity of the machine.
            msg = "s3.access_key and s3.secret_key go together, and neither is empty"
            raise ConfigError(msg, left="Nothing was changed.", todo="Write both, or neither.")
        return cls(
            endpoint=properties.get("s3.endpoint", ""),
            region=properties.get("s3.region", ""),
            access_key=properties.get("s3.access_key", ""),
            secret_key=properties.get("s3.secret_key", ""),
            session_token=properties.get("s3.session_token", ""),
            path_style=properties.get("use_path_style", "false").lower() == "true",
        )


def is_allowed(uri: str, within: str, *, has_own_keys: bool, roots: Collection[str] = ()) -> bool:
    """Whether a table at a place may name another. In a bucket: never files of this machine, but for `roots`; other
    places in buckets with keys of its own, because the service's identity can read more than the table's owner.
    """
    root = bucket_path(within)
    if root is None:
        return True
    place = bucket_path(uri)
    if place is None:
        path = machine_path(uri)
        # Some who open it read %2e as a dot, others do not.
        return ".." not in unquote(path).split("/") and any(path.startswith(f"{each.rstrip('/')}/") for each in roots)
    if ".." in place.split("/"):
        return False
    return has_own_keys or (bool(root) and f"{place}/".startswith(f"{root.rstrip('/')}/"))


def machine_path(uri: str) -> str:
    """The path of a place on this machine, as Iceberg's engines write it: /p, file:/p or file:///p. Else: the text."""
    path = uri.removeprefix("file:") if uri.startswith("file:") else uri
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


def bucket_path(uri: str) -> str | None:
    """Bucket and key of a URI of S3; None for all others."""
    scheme, _, path = uri.partition("://")
    return path if scheme in S3_SCHEMES else None
