"""Objects as files on a local disk."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from lading.errors import StorageError
from lading.storage.errors import CHANGED, GONE, MISSING, fault_of, store_failed
from lading.storage.homes import Homes, file_of_home, home_of
from lading.storage.store import ObjectInfo, Upload

if TYPE_CHECKING:
    import pyarrow.fs as pafs

_DRAFT = ".tmp"
_LONG_AGO = datetime.fromtimestamp(0, UTC)
"""Of a file that nobody looked at."""


class LocalStore:
    """A folder, listed in the order S3 would list it. Puts are atomic; conditional ones are fsynced, file and folder.

    Without a root, keys are absolute paths.
    """

    def __init__(self, root: str | Path = "", *, home_of: Callable[[str], str | None] = home_of) -> None:
        self._root = str(Path(root).absolute()) if str(root) else ""
        self._start = f"{self._root.rstrip('/')}/" if self._root else ""
        self._home_of = home_of

    @property
    def uri(self) -> str:
        return self._root

    def uri_of(self, key: str) -> str:
        return f"file://{self._start}{key}"

    def list(
        self, prefix: str, start_after: str = "", *, max_slashes: int | None = None, known: Container[str] = ()
    ) -> Iterator[ObjectInfo]:
        folder = (self._start + prefix).rpartition("/")[0] + "/"
        try:
            os.stat(folder)
        except FileNotFoundError as error:
            raise _failed(folder, error, fault=MISSING) from error
        except OSError as error:
            raise _failed(folder, error) from error
        return _Walk(self._start, prefix, start_after, max_slashes, known).files(folder, ())

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        try:
            found = self.list(prefix, start_after)
        except StorageError as error:
            if fault_of(error) != MISSING and not isinstance(error.__cause__, NotADirectoryError):
                raise
            return iter(())
        return (each.key for each in found if not each.key.endswith(_DRAFT))

    def open(self, key: str, *, if_match: str, size: int, random: bool = False) -> LocalFile:
        path = self._start + key
        if (home := self._home_of(path)) is not None:
            raise file_of_home(path, home)
        try:
            file = LocalFile(path, if_match)
        except FileNotFoundError as error:
            raise _failed(path, error, fault=GONE) from error
        except OSError as error:
            raise _failed(path, error) from error
        try:
            file.check()
        except BaseException:
            file.close()
            raise
        return file

    def for_many(self) -> LocalStore:
        return LocalStore(self._root, home_of=Homes().home_of)

    def get(self, key: str) -> bytes | None:
        path = self._start + key
        try:
            return Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _failed(path, error) from error

    def sizes(self, keys: Sequence[str]) -> Sequence[int | None]:
        found = [_look(self._start + key) for key in keys]
        return [None if each is None else each.size for each in found]

    def put_if_absent(self, key: str, content: bytes) -> bool:
        path = Path(self._start + key)
        # A name of its own first, then a hard link: the object appears whole or not at all, and link() refuses to
        # replace. Dies before the link: a hidden temporary file is left, which nobody reads.
        draft = _draft_of(path)
        try:
            make_folder(path.parent)
            _write(draft, content, durably=True)
        except OSError as error:
            _drop(draft)
            raise _failed(path, error) from error
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            raise _failed(path, error) from error
        finally:
            _drop(draft)
        try:
            sync_file(path.parent)
        except OSError as error:
            raise _failed(path, error, unknown=True) from error
        return True

    def put(self, key: str, content: bytes) -> None:
        path = Path(self._start + key)
        draft = _draft_of(path)
        try:
            make_folder(path.parent)
            _write(draft, content, durably=False)
            draft.replace(path)
        except OSError as error:
            _drop(draft)
            raise _failed(path, error) from error

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            path = Path(self._start + key)
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise _failed(path, error) from error

    def uploads(self) -> Iterator[Upload]:
        return iter(())

    def abort(self, upload: Upload) -> None:
        """A disk has none."""

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        import pyarrow.fs as pafs

        return pafs.LocalFileSystem(), self._root


class LocalFile(FileIO):
    """An open file that knows what it was when it was listed."""

    def __init__(self, path: str, etag: str) -> None:
        super().__init__(path, "rb")
        self._path = path
        self._etag = etag

    def check(self) -> None:
        now = _etag(os.fstat(self.fileno()))
        if now != self._etag:
            raise store_failed(self._path, "it was replaced", fault=CHANGED, was=self._etag, now=now)


class _Walk:
    """One listing. Each name is looked at once, and only files that are wanted are asked for their facts."""

    def __init__(
        self, start: str, prefix: str, start_after: str, max_slashes: int | None, known: Container[str]
    ) -> None:
        self._skip = len(start)
        self._prefix = start + prefix
        self._after = start + start_after if start_after else ""
        self._max_slashes = None if max_slashes is None else max_slashes + start.count("/")
        self._known = known
        self._links = set[str]()

    def files(self, folder: str, above: tuple[tuple[int, int], ...]) -> Iterator[ObjectInfo]:
        """Everything below one folder, in order. `above` tells a loop of links."""
        skip, known = self._skip, self._known
        for path in self._wanted(folder):
            if path.endswith("/"):
                yield from self.files(path, self._descend(path, above))
            elif path[skip:] in known:
                yield ObjectInfo(path[skip:], 0, "", _LONG_AGO)
            elif (found := _look(path, skip, is_link=path in self._links)) is not None:
                yield found

    def _wanted(self, folder: str) -> list[str]:
        # A folder's keys all start with its name and a slash, so a folder sorts as that text does.
        found: list[str] = []
        prefix, after = self._prefix, self._after
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    path = folder + entry.name
                    if path < after and not after.startswith(path):
                        continue  # Most of what there is, in a folder of old files: nothing is asked about it.
                    if entry.is_dir():
                        if self._is_wanted_folder(path + "/"):
                            found.append(path + "/")
                    elif path > after and path.startswith(prefix):
                        found.append(path)
                        if entry.is_symlink():
                            self._links.add(path)
        except OSError as error:
            raise _failed(folder, error) from error
        found.sort()
        return found

    def _is_wanted_folder(self, path: str) -> bool:
        if self._max_slashes is not None and path.count("/") > self._max_slashes:
            return False
        holds_later = path > self._after or self._after.startswith(path)
        return holds_later and (path.startswith(self._prefix) or self._prefix.startswith(path))

    def _descend(self, folder: str, above: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        try:
            facts = os.stat(folder)
            here = (facts.st_dev, facts.st_ino)
            if here in above:
                raise OSError(errno.ELOOP, "links form a loop")
        except OSError as error:
            raise _failed(folder, error) from error
        return (*above, here)


def _look(path: str, skip: int = 0, *, is_link: bool = False) -> ObjectInfo | None:
    try:
        facts = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # Deleted since its folder was read: as if the listing were a moment younger.
    except OSError as error:
        raise _failed(path, error) from error
    if not stat.S_ISREG(facts.st_mode):
        return None
    modified = datetime.fromtimestamp(facts.st_mtime, UTC)
    return ObjectInfo(path[skip:], facts.st_size, _etag(facts), modified, is_link)


def _etag(facts: os.stat_result) -> str:
    return f"{facts.st_size}-{facts.st_mtime_ns:x}-{facts.st_ino:x}"


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_file(folder.parent)


def _draft_of(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(8)}{_DRAFT}"


def _drop(draft: Path) -> None:
    # A draft that cannot be removed changes nothing: nobody reads it, and the put has its answer already.
    with suppress(OSError):
        draft.unlink()


def _write(path: Path, content: bytes, *, durably: bool) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        if durably:
            os.fsync(file.fileno())


def sync_file(path: str | Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(path: str | Path, error: OSError, *, fault: str = "", unknown: bool = False) -> StorageError:
    return store_failed(str(path), error.strerror or error, fault=fault, unknown=unknown)
