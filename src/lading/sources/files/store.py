"""Objects with keys, in a bucket or on a disk: what the files source lists and reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lading.sources.files.spec import Place, S3Access


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One file as it was listed."""

    key: str
    size: int
    etag: str
    """Another content has another etag."""
    modified: datetime


class ByteFile(Protocol):
    """An open file. Reads may return less than was asked for; nothing only at the end."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...

    def check(self) -> None:
        """Raise FileChangedError when the file changed while it was read."""
        ...


class ObjectStore(Protocol):
    """Laws: a listing is complete and in the byte order of keys, or it raises ListingError; never an empty answer
    for an error. `open` gives the content that has this etag, or raises FileGoneError or FileChangedError.
    """

    def list(self, prefix: str, start_after: str, *, max_slashes: int | None = None) -> Iterator[ObjectInfo]:
        """Files whose key starts with the prefix and sorts after `start_after`, from every page.

        Keys with more than `max_slashes` slashes may be left out.
        """
        ...

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        """Open one file; `random` where it will be read in pieces here and there rather than from front to back."""
        ...

    def uri(self, key: str) -> str:
        """How a person would write the place of a key."""
        ...


def open_store(place: Place, access: S3Access) -> ObjectStore:
    """The store of a place. boto3, which takes a quarter of a second to import, is imported for S3 only."""
    if place.scheme == "s3":
        from lading.sources.files.store_s3 import S3Store

        return S3Store(place.bucket, access)
    from lading.sources.files.store_local import LocalStore

    return LocalStore()
