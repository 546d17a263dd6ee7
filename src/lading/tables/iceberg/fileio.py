"""PyIceberg's file access, with two laws added: a closed file is on the disk, and a table opens only what it may name.

The catalog's own database is fsynced when it commits. Metadata and manifests that were only in the page cache could
be gone after a power cut while the catalog already names them, and the table with them.

Metadata and manifests in a bucket can be written by others than Lading, and name files by their whole URI: to read, and
to delete. Files of this machine must not be among them.
"""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import Any

import pyarrow.fs as pafs
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from lading.errors import StorageError
from lading.model.s3_access import is_allowed
from lading.storage.local import sync_file
from lading.storage.store import require_allowed

WITHIN = "lading.within"
"""The place of the table, among the properties of the catalog."""
ROOTS = "lading.roots"
"""Folders of this machine where tables of the catalog may be, as a list in JSON."""
_KNOWN = ("file", "s3", "s3a", "s3n")


class DurableFileIO(PyArrowFileIO):
    """PyArrowFileIO whose local outputs are synced when they are closed, for one table."""

    def new_input(self, location: str) -> PyArrowFile:
        self._check(location)
        return super().new_input(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._check(location if isinstance(location, str) else location.location)
        super().delete(location)

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> pafs.FileSystem:
        # Scans ask for the file system alone, and then open paths in it.
        is_root = scheme == "file" and bool(self._roots)  # Each path is checked as well.
        if scheme not in _KNOWN or not (is_root or is_allowed(f"{scheme}://", self._within, has_own_keys=True)):
            msg = f"A table names a file with {scheme}://, which it must not"
            todo = "Restore the table's metadata, or make the table again; see docs/security.md."
            raise StorageError(msg, left="Nothing was read or written there.", todo=todo, unknown=False)
        return super()._initialize_fs(scheme, netloc)

    @property
    def _within(self) -> str:
        return str(self.properties.get(WITHIN, ""))

    def _check(self, location: str) -> None:
        has_own_keys = bool(self.properties.get("s3.access-key-id"))
        require_allowed(location, self._within, has_own_keys=has_own_keys, roots=self._roots)

    @property
    def _roots(self) -> list[str]:
        return [str(root) for root in json.loads(self.properties.get(ROOTS, "[]"))]

    def new_output(self, location: str) -> PyArrowFile:
        self._check(location)
        file = super().new_output(location)
        if not isinstance(file._filesystem, pafs.LocalFileSystem):  # noqa: SLF001 - there is no public way to ask
            return file
        return _SyncedFile(location, file._path, file._filesystem)  # noqa: SLF001


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:
        return _SyncedStream(super().create(overwrite=overwrite), self._path)


class _SyncedStream:
    """What PyIceberg asks of an output stream."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream = stream
        self._path = path

    def write(self, content: bytes) -> int:
        written: int = self._stream.write(content)
        return written

    def tell(self) -> int:
        at: int = self._stream.tell()
        return at

    def close(self) -> None:
        if not self._stream.closed:
            self._stream.close()
            sync_file(self._path)
            if self._path.endswith(".metadata.json"):
                # The last file before the catalog moves; its folder holds the names of the others too.
                sync_file(os.path.dirname(self._path))

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed)

    def __enter__(self) -> _SyncedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
