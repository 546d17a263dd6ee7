"""Storage that can lose the answer of one put, or refuse it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import pyarrow.fs as pafs

from lading.errors import StorageError
from lading.storage.store import ByteFile, ObjectInfo, ObjectStore, ReadStore, Upload


class FaultyStorage:
    """Passes everything on, but for the faults that a test arms."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner
        self.fault: str = ""
        self.under: str = ""
        """Only puts of keys with this beginning are struck."""
        self.requests = 0
        self.before_get: Callable[[str], None] = lambda _key: None
        self.before_put: Callable[[str], None] = lambda _key: None

    @property
    def uri(self) -> str:
        return self._inner.uri

    def put_if_absent(self, key: str, content: bytes) -> bool:
        self.requests += 1
        if not key.startswith(self.under) or "/_lading/" in key:
            return self._inner.put_if_absent(key, content)
        self.before_put(key)
        fault, self.fault = self.fault, ""
        if fault == "fail":
            raise StorageError("The put was made to fail", unknown=False)
        won = self._inner.put_if_absent(key, content)
        if fault == "lose":
            raise StorageError("The answer was lost", unknown=True)
        return won

    def get(self, key: str) -> bytes | None:
        self.requests += 1
        self.before_get(key)
        return self._inner.get(key)

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        self.requests += 1
        return self._inner.keys(prefix, start_after=start_after)

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        return self._inner.list(prefix, start_after, max_slashes=max_slashes, known=known)

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> ByteFile:
        return self._inner.open(key, if_match=if_match, size=size, random=random)

    def uri_of(self, key: str) -> str:
        return self._inner.uri_of(key)

    def for_many(self) -> ReadStore:
        return self

    def sizes(self, keys: Sequence[str]) -> Sequence[int | None]:
        return self._inner.sizes(keys)

    def put(self, key: str, content: bytes) -> None:
        self._inner.put(key, content)

    def delete(self, keys: Iterable[str]) -> None:
        self._inner.delete(keys)

    def uploads(self) -> Iterator[Upload]:
        return self._inner.uploads()

    def abort(self, upload: Upload) -> None:
        self._inner.abort(upload)

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        return self._inner.arrow()
