"""PyIceberg's file access, with one law added: on a local disk a closed file is on the disk.

The catalog's own database is fsynced when it commits. Metadata and manifests that were only in the page cache could
be gone after a power cut while the catalog already names them, and the table with them.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import pyarrow.fs as pafs
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from lading.tables.storage_local import sync_file


class DurableFileIO(PyArrowFileIO):
    """PyArrowFileIO whose local outputs are synced when they are closed."""

    def new_output(self, location: str) -> PyArrowFile:
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
