"""One service per home folder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from lading.clock import Clock
from lading.errors import ConflictError, RecordError, StoreError
from lading.model.codec import decode, encode

LOCK_NAME = "lading.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that has, or had, the home folder."""

    pid: int
    host: str
    started_at: datetime


class HomeLock:
    """Holds a home folder until it is closed or the process dies.

    The lock is the kernel's: it ends with the process, however that ends. What the file says is for people. A file
    that names a process and is not locked was left by one that died; it is taken over. The file is never removed:
    two processes could then hold locks on two files of the same name.
    """

    def __init__(self, descriptor: int, holder: Holder, predecessor: Holder | None) -> None:
        self._descriptor: int | None = descriptor
        self.holder = holder
        self.predecessor = predecessor
        """The process that held the folder before and did not give it back: it died."""
        # A child that is forked, and not replaced by another program, would hold the lock beyond the parent's death.
        os.register_at_fork(after_in_child=self._drop)

    @classmethod
    def acquire(cls, home: Path, clock: Clock) -> Self:
        """Take the folder. Raises ConflictError, with the pid of the process that has it."""
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise home_fault(home, error) from error
        try:
            _lock(descriptor, home)
            predecessor = _read_holder(descriptor)
            holder = Holder(pid=os.getpid(), host=socket.gethostname(), started_at=clock.now())
            _write(descriptor, json.dumps(encode(holder)))
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, holder, predecessor)

    def close(self) -> None:
        """Give the folder back."""
        if self._descriptor is not None:
            # Emptied while the lock is held: afterwards the file may already be another's. A disk that cannot be
            # written keeps the name of one that is gone, as after a kill: the lock itself tells.
            with suppress(OSError):
                _write(self._descriptor, "")
            self._drop()

    def _drop(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def read_home_holder(home: Path) -> Holder | None:
    """Who says that it holds a folder; it may have died. None when nobody does."""
    try:
        descriptor = os.open(home / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)


def home_fault(home: Path, error: OSError) -> StoreError:
    """The error for a home folder that the system does not let Lading use."""
    why = {
        errno.EROFS: "its file system is read-only",
        errno.EACCES: "this user may not write to it",
        errno.EPERM: "this user may not change it",
        errno.ENOSPC: "its disk is full",
        errno.EDQUOT: "the quota of this user is used up",
        errno.ENOTDIR: "a part of the path is not a folder",
        errno.EEXIST: "a file of that name is in its place",
        errno.ELOOP: "a link is in the place of one of its files",
    }.get(error.errno or 0, error.strerror or str(error))
    where = f" ({error.filename})" if error.filename and str(error.filename) != str(home) else ""
    msg = f"The home folder {home} cannot be used: {why}{where}"
    todo = "Make it writable for this user, or choose another home folder with --home."
    return StoreError(msg, left="Nothing was started.", todo=todo)


def _lock(descriptor: int, home: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = _read_holder(descriptor)
        who = (
            f"process {holder.pid} on {holder.host}, since {holder.started_at:%Y-%m-%d %H:%M:%S} UTC" if holder else ""
        )
        msg = f"The home folder {home} is in use by {who or 'another process'}"
        pid = holder.pid if holder else None
        todo = "Use that service, stop it, or choose another home folder."
        raise ConflictError(msg, code="HomeLocked", left="Nothing was started.", todo=todo, pid=pid) from error
    except OSError as error:
        msg = f"The home folder {home} cannot be locked: {error.strerror}"
        raise StoreError(msg, left="Nothing was started.", todo="Put it on a file system that has locks.") from error


def _read_holder(descriptor: int) -> Holder | None:
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
        holder: Holder = decode(Holder, content, where=LOCK_NAME)
    except (ValueError, RecordError):
        return None  # Empty, or being written at this moment: nobody to name.
    return holder


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
