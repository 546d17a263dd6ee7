"""Whether a file is bad, or could not be read just now.

Libraries that read from a file tell of a disk that failed in the same words as of bytes that make no sense; some lose
what the file itself said. A file that is put aside for what a disk did would be lost: so the file remembers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lading.errors import SourceError, StorageError
from lading.sources.files.errors import file_not_fetched
from lading.storage.store import ByteFile


class WatchedFile:
    """An open file that remembers the first read that failed."""

    def __init__(self, file: ByteFile) -> None:
        self._file = file
        self.seek, self.tell, self.close, self.check = file.seek, file.tell, file.close, file.check
        self.fault: Exception | None = None

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._file.read(size)
        except Exception as error:
            self.fault = self.fault or error
            raise


@contextmanager
def judging(file: WatchedFile, uri: str) -> Iterator[None]:
    """What looks like bad content is that only when every byte could be had, and the file is still the one it was."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except (SourceError, pa.ArrowException, OSError, EOFError) as error:
        if isinstance(file.fault, StorageError):
            raise file.fault from error
        if file.fault is not None:
            raise file_not_fetched(uri, file.fault) from error
        file.check()
        raise
