"""Who reads a folder's files, and how often: told by the kernel (inotify), and not by those who read. Linux."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from pathlib import Path

_OPEN, _CLOSE_NOWRITE, _OVERFLOW, _FOLDER = 0x20, 0x10, 0x4000, 0x40000000
_HEAD = struct.Struct("iIII")


class FileReads:
    """Counts how often each file was opened, by anybody. Take them now and then: the kernel keeps 16,384 events."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        # Ends of reads as well: two events that are the same and stand behind each other become one.
        if self._watch < 0 or libc.inotify_add_watch(self._watch, bytes(folder), _OPEN | _CLOSE_NOWRITE) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def take(self) -> Counter[str]:
        """Since the last time, by name."""
        found: Counter[str] = Counter()
        while events := self._read():
            at = 0
            while at < len(events):
                _, mask, _, size = _HEAD.unpack_from(events, at)
                name = events[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0").decode()
                assert not mask & _OVERFLOW, "more events than the kernel keeps"
                found[name] += bool(mask & _OPEN and not mask & _FOLDER)
                at += _HEAD.size + size
        return +found

    def close(self) -> None:
        os.close(self._watch)

    def _read(self) -> bytes:
        try:
            return os.read(self._watch, 1 << 20)
        except BlockingIOError:
            return b""
