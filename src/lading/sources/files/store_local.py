"""Files on a disk. Keys are absolute paths."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from io import FileIO

from lading.sources.files.errors import (
    file_changed,
    file_gone,
    file_of_home,
    listing_failed,
    place_missing,
    store_failed,
)
from lading.sources.files.store import ObjectInfo
from lading.sources.homes import home_of


class LocalStore:
    """The disk of this machine, listed in the order S3 would list it."""

    def list(self, prefix: str, start_after: str, *, max_slashes: int | None = None) -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0] + "/"
        try:
            os.stat(folder)
        except FileNotFoundError as error:
            raise place_missing(folder) from error
        except OSError as error:
            raise listing_failed(folder, error.strerror or error) from error
        return _Walk(prefix, start_after, max_slashes).files(folder, ())

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> LocalFile:
        if (home := home_of(key)) is not None:
            raise file_of_home(key, home)
        try:
            file = LocalFile(key, if_match)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise file_gone(key) from error
        except OSError as error:
            raise store_failed(key, error.strerror) from error
        try:
            file.check()
        except BaseException:
            file.close()
            raise
        return file

    def uri(self, key: str) -> str:
        return f"file://{key}"


class LocalFile(FileIO):
    """An open file that knows what it was when it was listed."""

    def __init__(self, path: str, etag: str) -> None:
        super().__init__(path, "rb")
        self._path = path
        self._etag = etag

    def check(self) -> None:
        now = _etag(os.fstat(self.fileno()))
        if now != self._etag:
            raise file_changed(self._path, self._etag, now)


class _Walk:
    """One listing. Each name is looked at once, and only files that are wanted are asked for their facts."""

    def __init__(self, prefix: str, start_after: str, max_slashes: int | None) -> None:
        self._prefix = prefix
        self._after = start_after
        self._max_slashes = max_slashes

    def files(self, folder: str, above: tuple[tuple[int, int], ...]) -> Iterator[ObjectInfo]:
        """Everything below one folder, in order. `above` tells a loop of links."""
        for key in self._wanted(folder):
            if key.endswith("/"):
                yield from self.files(key, self._descend(key, above))
            elif (found := _look(key)) is not None:
                yield found

    def _wanted(self, folder: str) -> list[str]:
        # A folder's keys all start with its name and a slash, so a folder sorts as that text does.
        found: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    key = folder + entry.name + ("/" if entry.is_dir() else "")
                    if self._is_wanted(key):
                        found.append(key)
        except OSError as error:
            raise listing_failed(folder, error.strerror or error) from error
        found.sort()
        return found

    def _is_wanted(self, key: str) -> bool:
        prefix, after = self._prefix, self._after
        if not key.endswith("/"):
            return key > after and key.startswith(prefix)
        if self._max_slashes is not None and key.count("/") > self._max_slashes:
            return False
        holds_later = key > after or after.startswith(key)
        return holds_later and (key.startswith(prefix) or prefix.startswith(key))

    def _descend(self, folder: str, above: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        try:
            facts = os.stat(folder)
        except OSError as error:
            raise listing_failed(folder, error.strerror or error) from error
        here = (facts.st_dev, facts.st_ino)
        if here in above:
            raise listing_failed(folder, "links form a loop")
        return (*above, here)


def _look(key: str) -> ObjectInfo | None:
    try:
        facts = os.stat(key)
    except FileNotFoundError:
        return None  # Deleted since its folder was read: as if the listing were a moment younger.
    except OSError as error:
        raise listing_failed(key, error.strerror or error) from error
    if not stat.S_ISREG(facts.st_mode):
        return None
    modified = datetime.fromtimestamp(facts.st_mtime, UTC)
    return ObjectInfo(key, facts.st_size, _etag(facts), modified)


def _etag(facts: os.stat_result) -> str:
    return f"{facts.st_size}-{facts.st_mtime_ns:x}-{facts.st_ino:x}"
