"""A folder of objects whose keys end: every use of it is with those that are good then.

A key that the store refuses, because it ended before its time or while nobody looked at the clock, is exchanged for
another, once for each request.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from lading.errors import StorageError
from lading.model.s3_access import S3Access, bucket_path
from lading.storage.errors import DENIED, fault_of
from lading.storage.store import ByteFile, ObjectInfo, ObjectStore, ReadStore, Upload

if TYPE_CHECKING:
    import pyarrow.fs as pafs

T = TypeVar("T")


class KeySource(Protocol):
    """Gives keys that end. Pickles: in another process it asks for new ones itself."""

    def __call__(self) -> S3Access:
        """An access that is good for a while."""
        ...

    def renew(self, refused: S3Access) -> S3Access:
        """Another one than this, if there is one."""
        ...


class RenewedStore:
    """Implements ObjectStore. Clients are shared by their access, so that opening it again costs nothing."""

    def __init__(self, open_with: Callable[[S3Access], ObjectStore], keys: KeySource) -> None:
        self._open_with = open_with
        self._keys = keys

    def _do(self, ask: Callable[[ObjectStore], T]) -> T:
        access = self._keys()
        try:
            return ask(self._open_with(access))
        except StorageError as error:
            # DENIED is an answer: nothing was done.
            if fault_of(error) != DENIED or (other := self._keys.renew(access)) == access:
                raise
        return ask(self._open_with(other))

    @property
    def uri(self) -> str:
        return self._open_with(self._keys()).uri

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        return self._open_with(self._keys()).list(prefix, start_after, max_slashes=max_slashes, known=known)

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        return self._do(lambda store: store.open(key, if_match=if_match, size=size, random=random))

    def uri_of(self, key: str) -> str:
        return self._open_with(self._keys()).uri_of(key)

    def for_many(self) -> ReadStore:
        return self

    def get(self, key: str) -> bytes | None:
        return self._do(lambda store: store.get(key))

    def sizes(self, keys: Sequence[str]) -> Sequence[int | None]:
        return self._do(lambda store: store.sizes(keys))

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        return self._open_with(self._keys()).keys(prefix, start_after=start_after)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self._do(lambda store: store.put_if_absent(key, content))

    def put(self, key: str, content: bytes) -> None:
        self._do(lambda store: store.put(key, content))

    def delete(self, keys: Iterable[str]) -> None:
        all_keys = [*keys]
        self._do(lambda store: store.delete(all_keys))

    def uploads(self) -> Iterator[Upload]:
        return iter(self._do(lambda store: [*store.uploads()]))

    def abort(self, upload: Upload) -> None:
        self._do(lambda store: store.abort(upload))

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        store = self._open_with(self._keys())
        place = bucket_path(store.uri)
        if place is None:
            return store.arrow()
        from lading.storage.lent_files import lent_filesystem

        return lent_filesystem(self._keys), place
