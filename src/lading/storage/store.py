"""A folder of objects, on a local disk or in an S3-compatible store: what sources read, and tables stand on.

Data files of tables are written and scanned by pyarrow, delta-rs, PyIceberg and pypaimon, each with a client of its
own; `libraries` tells them how to reach the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from lading.errors import ConfigError, StorageError
from lading.model.s3_access import S3Access, bucket_path, is_allowed

if TYPE_CHECKING:
    import pyarrow.fs as pafs


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object as it was listed."""

    key: str
    size: int
    etag: str
    """Another content has another etag."""
    modified: datetime
    is_link: bool = False
    """On a disk: what has this name stands elsewhere."""


@dataclass(frozen=True, slots=True)
class Upload:
    """An object that is sent in parts, and the last part is not there. Nobody sees it, and its parts take space."""

    key: str
    upload_id: str
    begun: datetime


class ByteFile(Protocol):
    """An open object. Reads may return less than was asked for; nothing only at the end."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...

    def check(self) -> None:
        """Raise StorageError, fault CHANGED, when the object changed while it was read."""
        ...


class ReadStore(Protocol):
    """What reading takes. Objects are under one root and named by keys with `/`.

    Laws: a listing is complete and in the byte order of keys, or it raises StorageError; never an empty answer for an
    error. `open` gives the content that has this etag, or raises StorageError with the fault GONE or CHANGED.
    """

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        """Objects whose key starts with the prefix and sorts after `start_after`, from every page.

        Keys with more than `max_slashes` slashes may be left out. Of the `known` ones nothing but their keys is asked:
        nobody needs to look at them. On a disk, a folder that is not there is the fault MISSING: it may be a mount that
        is gone.
        """
        ...

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        """Open one object; `random` where it will be read in pieces here and there rather than from front to back."""
        ...

    def uri_of(self, key: str) -> str:
        """How a person would write the place of a key."""
        ...

    def for_many(self) -> ReadStore:
        """The same place for many objects that are opened one right after the other: what was found out of the folder
        of one holds for all of it."""
        ...


class ObjectStore(ReadStore, Protocol):
    """Reading and writing.

    Laws: when `put_if_absent` returns, the object is durable and whole. True: it was written by this call. False:
    somebody's object is there. StorageError: not known (facts["unknown"] is true) or certainly not written.
    """

    @property
    def uri(self) -> str:
        """The root, without a slash at the end."""
        ...

    def get(self, key: str) -> bytes | None:
        """Read an object; None when there is none."""
        ...

    def sizes(self, keys: Sequence[str]) -> Sequence[int | None]:
        """The size of each object; None for what is not there."""
        ...

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        """Keys under a prefix, in order, from every page. A folder that is not there has none."""
        ...

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write an object unless one is there."""
        ...

    def put(self, key: str, content: bytes) -> None:
        """Write an object over what is there: for hints. It is seen whole; nobody waits until it is durable."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are gone already are fine."""
        ...

    def uploads(self) -> Iterator[Upload]:
        """Those that were begun and not ended, from every page; none where there is no such thing."""
        ...

    def abort(self, upload: Upload) -> None:
        """Throw away what was sent of an object; one that has ended already is fine. Who still sends it fails."""
        ...

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        """The same place for pyarrow: a file system of this process, and the root's path in it."""
        ...


def require_allowed(uri: str, within: str, *, has_own_keys: bool, roots: Collection[str] = ()) -> None:
    """Raises StorageError."""
    if not is_allowed(uri, within, has_own_keys=has_own_keys, roots=roots):
        whose = f"The table at {within}" if bucket_path(within) else "A table of the catalog"
        msg = f"{whose} names {uri}, which is not a place that it may name"
        todo = "Restore the table's metadata, or make the table again; see docs/security.md."
        raise StorageError(msg, left="Nothing was read or written there.", todo=todo, unknown=False)


def open_store(uri: str, access: S3Access | None = None) -> ObjectStore:
    """Open a root by its URI: a path, `file://…`, or `s3://bucket/…`. `file://` alone: keys are absolute paths."""
    if access is not None:
        require_allowed(uri, access.within, has_own_keys=bool(access.access_key), roots=access.roots)
    # Imported here so that local use does not pay for boto3, which takes a quarter of a second to import.
    if (path := bucket_path(uri)) is not None:
        from lading.storage.s3 import S3Store

        bucket, _, prefix = path.partition("/")
        return S3Store(bucket, access or S3Access(), prefix.strip("/"))
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        from lading.storage.local import LocalStore

        return LocalStore(unquote(parts.path) if parts.scheme else uri)
    msg = f"Cannot store anything at {uri!r}: the scheme {parts.scheme!r} is not known"
    raise ConfigError(msg, left="Nothing was changed.", todo="Use a local path, file:// or s3://.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlace:
    """A root and how to reach it, for another process: what is open there cannot be sent."""

    uri: str
    access: S3Access | None = field(default=None, repr=False)

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        """As of an ObjectStore."""
        return open_store(self.uri, self.access).arrow()
