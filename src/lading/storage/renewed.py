"""A folder of objects whose keys end: every use of it is with those that are good then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lading.storage.store import ByteFile, ObjectInfo, ObjectStore

if TYPE_CHECKING:
    import pyarrow.fs as pafs


class RenewedStore:
    """Implements ObjectStore. Clients are shared by their access, so that opening it again costs nothing."""

    def __init__(self, reopen: Callable[[], ObjectStore]) -> None:
        self._reopen = reopen

    @property
    def uri(self) -> str:
        return self._reopen().uri

    def list(self, prefix: str, start_after: str = "", *, max_slashes: int | None = None) -> Iterator[ObjectInfo]:
        return self._reopen().list(prefix, start_after, max_slashes=max_slashes)

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        return self._reopen().open(key, if_match=if_match, size=size, random=random)

    def uri_of(self, key: str) -> str:
        return self._reopen().uri_of(key)

    def get(self, key: str) -> bytes | None:
        return self._reopen().get(key)

    def sizes(self, keys: Sequence[str]) -> Sequence[int | None]:
        return self._reopen().sizes(keys)

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        return self._reopen().keys(prefix, start_after=start_after)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self._reopen().put_if_absent(key, content)

    def put(self, key: str, content: bytes) -> None:
        self._reopen().put(key, content)

    def delete(self, keys: Iterable[str]) -> None:
        self._reopen().delete(keys)

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        return self._reopen().arrow()
