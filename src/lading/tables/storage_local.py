"""Objects as files on a local disk."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from lading.errors import StorageError


class LocalStorage:
    """A folder. Puts are atomic and fsynced, file and folder."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root).absolute()

    @property
    def uri(self) -> str:
        return str(self._root)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        path = self._root / key
        # A name of its own first, then a hard link: the object appears whole or not at all, and link() refuses to
        # replace. Dies before the link: a hidden temporary file is left, which nobody reads.
        draft = path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp"
        try:
            self._make_folder(path.parent)
            _write_durably(draft, content)
        except OSError as error:
            _drop(draft)
            raise _failed(path, error, unknown=False) from error
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            raise _failed(path, error, unknown=False) from error
        finally:
            _drop(draft)
        try:
            sync_file(path.parent)
        except OSError as error:
            raise _failed(path, error, unknown=True) from error
        return True

    def get(self, key: str) -> bytes | None:
        path = self._root / key
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _failed(path, error, unknown=False) from error

    def keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        folder = self._root / prefix.rpartition("/")[0]
        found = sorted(
            path.relative_to(self._root).as_posix()
            for path in folder.rglob("*")
            if path.is_file() and not path.name.endswith(".tmp")
        )
        return (key for key in found if key.startswith(prefix) and key > start_after)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            path = self._root / key
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise _failed(path, error, unknown=False) from error

    def arrow(self) -> tuple[pafs.FileSystem, str]:
        return pafs.LocalFileSystem(), str(self._root)

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_file(folder.parent)


def _drop(draft: Path) -> None:
    # A draft that cannot be removed changes nothing: nobody reads it, and the put has its answer already.
    with suppress(OSError):
        draft.unlink()


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: str | Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(path: Path, error: OSError, *, unknown: bool) -> StorageError:
    msg = f"{path} could not be read or written: {error.strerror or error}"
    return StorageError(
        msg,
        left="It may or may not be on the disk." if unknown else "Nothing was written.",
        todo="Check the disk, its free space and the permissions.",
        unknown=unknown,
    )
