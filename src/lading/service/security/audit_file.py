"""The files of the audit log: lines are appended, and files are rotated by size and number."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

NAME = "audit.log"
_BLOCK = 64 * 1024


class AuditFile:
    """`audit.log` is written; `audit.log.1` is the newest of those that are full. Used by many threads.

    A line is handed to the operating system before `append` returns: it outlives this process, not the machine.
    """

    def __init__(self, folder: Path, *, most_bytes: int, files: int) -> None:
        self._path = folder / NAME
        self._most_bytes = most_bytes
        self._files = max(1, files)
        self._lock = threading.Lock()
        self._descriptor = -1
        self._is_torn = False

    def append(self, line: bytes) -> None:
        """Write one line. Raises OSError when it was not written, or not whole; the next one begins on a new line."""
        with self._lock:
            self._open()
            if os.fstat(self._descriptor).st_size + len(line) > self._most_bytes:
                self._rotate()
            content = memoryview(b"\n" + line if self._is_torn else line)
            self._is_torn = True
            while content:
                content = content[os.write(self._descriptor, content) :]
            self._is_torn = False

    def newest_first(self) -> Iterator[bytes]:
        """Lines, newest first, as they were when it was called. A rotation meanwhile neither hides nor doubles one."""
        with ExitStack() as stack:
            with self._lock:
                opened = [stack.enter_context(path.open("rb")) for path in self._paths() if path.exists()]
                sizes = [os.fstat(file.fileno()).st_size for file in opened]
            for file, size in zip(opened, sizes, strict=True):
                yield from _backwards(file, size)

    def close(self) -> None:
        """Let go of the file. The next line opens it again."""
        with self._lock:
            self._close()

    def _paths(self) -> list[Path]:
        older = [self._path.with_name(f"{NAME}.{number}") for number in range(1, self._files)]
        return [self._path, *older]

    def _open(self) -> None:
        if self._descriptor >= 0 and self._is_ours():
            return
        self._close()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        os.fchmod(self._descriptor, 0o600)  # Also one that somebody else made.

    def _is_ours(self) -> bool:
        """Whether the path still leads to the open file: a program that rotates logs may have moved it."""
        try:
            there = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def _rotate(self) -> None:
        """Dies in the middle: a number is missing, and the next rotation closes the gap."""
        paths = self._paths()
        if len(paths) == 1:
            os.ftruncate(self._descriptor, 0)
            return
        for older, newer in zip(reversed(paths), list(reversed(paths))[1:], strict=False):
            with suppress(OSError):  # It is missing, or cannot be moved: then the file that is open grows.
                newer.replace(older)
        self._open()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


def _backwards(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Lines of the first `size` bytes of a file, last first, without their ends."""
    rest = b""
    while size > 0:
        start = max(0, size - _BLOCK)
        file.seek(start)
        rest, *lines = (file.read(size - start) + rest).split(b"\n")
        yield from (line for line in reversed(lines) if line)
        size = start
    if rest:
        yield rest
