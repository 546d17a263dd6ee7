"""A folder of objects, on a local disk or in an S3-compatible store: what bills, logs and data files stand on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from lading.errors import ConfigError, StorageError
from lading.net.addresses import EVERY_PRIVATE, AddressRules

_S3 = ("s3", "s3a", "s3n")
_KEYS = ("s3.access_key", "s3.secret_key")
_REGION = re.compile(r"[A-Za-z0-9-]{0,63}")


class Storage(Protocol):
    """Objects under one root, named by keys with `/`.

    Laws: when `put_if_absent` returns, the object is durable and whole. True: it was written by this call. False:
    somebody's object is there. StorageError: not known (facts["unknown"] is true) or certainly not written.
    """

    @property
    def uri(self) -> str:
        """The root, without a slash at the end."""
        ...

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write an object unless one is there."""
        ...

    def get(self, key: str) -> bytes | None:
        """Read an object; None when there is none."""
        ...

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Keys under a prefix, in order, from every page."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are gone already are fine."""
        ...

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        """The same place for pyarrow: a file system, and the root's path in it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """How to reach an S3-compatible store. Empty values leave it to the default chain."""

    endpoint: str = ""
    region: str = ""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    path_style: bool = False
    addresses: AddressRules = EVERY_PRIVATE
    """What the endpoint may lead to."""
    within: str = ""
    """Where the table is. Others can write its files, so what these name elsewhere is opened only within limits."""

    def allows(self, uri: str) -> bool:
        """Whether a place that the files of a table name may be opened."""
        return is_allowed(uri, self.within, has_own_keys=bool(self.access_key))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> StorageOptions:
        """Read `s3.*` properties as they stand in SQL."""
        known = ("s3.access_key", "s3.endpoint", "s3.region", "s3.secret_key", "s3.session_token", "use_path_style")
        unknown = sorted(key for key in properties if key not in known)
        if unknown:
            msg = f"Unknown storage properties: {', '.join(unknown)}"
            raise ConfigError(msg, todo=f"Known are: {', '.join(known)}.")
        if not _REGION.fullmatch(properties.get("s3.region", "")):
            # It becomes part of the name of a host.
            msg = f"s3.region is not a region: {properties['s3.region']!r}"
            raise ConfigError(msg, left="Nothing was changed.", todo="Write for example eu-west-1.")
        keys = [properties.get(name, "").strip() for name in ("s3.access_key", "s3.secret_key")]
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


def is_allowed(uri: str, within: str, *, has_own_keys: bool) -> bool:
    """Whether a table at a place may name another. In a bucket: never files of this machine; other places in buckets
    with keys of its own, because the service's identity can read more than the table's owner.
    """
    root = _bucket_path(within)
    if root is None:
        return True
    place = _bucket_path(uri)
    if place is None or ".." in place.split("/"):
        return False
    return has_own_keys or f"{place}/".startswith(f"{root.rstrip('/')}/")


def _bucket_path(uri: str) -> str | None:
    scheme, _, path = uri.partition("://")
    return path if scheme in _S3 else None


def require_allowed(uri: str, within: str, *, has_own_keys: bool) -> None:
    """Raises StorageError."""
    if not is_allowed(uri, within, has_own_keys=has_own_keys):
        msg = f"The table at {within} names {uri}, which is not a place that it may name"
        todo = "Restore the table's metadata, or make the table again; see docs/security.md."
        raise StorageError(msg, left="Nothing was read or written there.", todo=todo, unknown=False)


def open_storage(uri: str, options: StorageOptions | None = None) -> Storage:
    """Open a root by its URI: a path, `file://…`, or `s3://bucket/…`."""
    if options is not None:
        require_allowed(uri, options.within, has_own_keys=bool(options.access_key))
    # Imported here so that local use does not pay for boto3, which takes a quarter of a second to import.
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        from lading.tables.storage_local import LocalStorage

        return LocalStorage(unquote(parts.path) if parts.scheme else uri)
    if parts.scheme in _S3:
        from lading.tables.storage_s3 import S3Storage

        return S3Storage(parts.netloc, parts.path.strip("/"), options or StorageOptions())
    msg = f"Cannot store anything at {uri!r}: the scheme {parts.scheme!r} is not known"
    raise ConfigError(msg, todo="Use a local path, file:// or s3://.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlace:
    """A root and how to reach it, for another process: what is open there cannot be sent."""

    uri: str
    options: StorageOptions | None = field(default=None, repr=False)

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        """As of a Storage."""
        return open_storage(self.uri, self.options).arrow()
