"""The home is for its owner alone: the folder 0700, what is in it 0600 and 0700.

What was made wider, by an earlier version or by hand, is corrected with a warning. What cannot be corrected is refused:
a folder or a file that belongs to somebody else, a link in the place of a file, and a folder above the home in which
everybody can put another home in its place.

Files inside `warehouse`, `quarantine` and `spark` have the modes that the umask gives them; the folders above them
keep others out. Tables at a LOCATION of their own are outside and keep the umask.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from lading.errors import ConfigError
from lading.service.security.key_file import KEY_FILE
from lading.store.home import home_fault

FOLDERS = ("warehouse", "quarantine", "spark", "audit")
ID_FILE = "service.id"
FILES = ("lading.db", "catalog.db", "lading.lock", "service.json", "root.password", "crash.txt", ID_FILE, KEY_FILE)
_BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite puts beside a database."""
_LEFT = "Nothing was started."
_log = logging.getLogger("lading.home")


def secure_home(home: Path) -> None:
    """Make the home, or see to it that it is private. Raises ConfigError."""
    try:
        _check_above(home)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _secure(home, home.stat(), 0o700)
        for name in FOLDERS:
            folder = home / name
            folder.mkdir(mode=0o700, exist_ok=True)
            _secure(folder, folder.stat(), 0o700)  # A link to a larger disk is followed.
        for name in FILES:
            for end in _BESIDE if name.endswith(".db") else ("",):
                _secure_file(home / f"{name}{end}")
    except OSError as error:
        raise home_fault(home, error) from error


def make_private(file: Path) -> None:
    """Make an empty file that is its owner's, unless it is there: SQLite would make one that others can read."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise home_fault(file.parent, error) from error


def _secure_file(file: Path) -> None:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        msg = f"{file} is not a plain file, and anybody who can change what it leads to could read or replace it"
        todo = "Put the file itself there. To have the home on another disk, let --home name a folder there."
        raise ConfigError(msg, left=_LEFT, todo=todo)
    if file.name == KEY_FILE:
        _check_owner(file, status)  # A key that others could read is refused where it is read, and not corrected.
        return
    _secure(file, status, 0o600)


def _secure(path: Path, status: os.stat_result, mode: int) -> None:
    _check_owner(path, status)
    found = stat.S_IMODE(status.st_mode)
    if found & 0o077:
        path.chmod(mode)
        _log.warning(
            "%s had mode %04o, so that others could use it; it is %04o now. Consider whether its content was exposed.",
            path,
            found,
            mode,
        )


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid == os.geteuid():
        return
    msg = f"{path} belongs to user {status.st_uid}, and this process runs as user {os.geteuid()}"
    todo = "Run Lading as the owner of the home, give it to this user with chown -R, or choose another home folder."
    raise ConfigError(msg, left=_LEFT, todo=todo, path=str(path))


def _check_above(home: Path) -> None:
    for folder in home.resolve().parents:
        if not folder.is_dir():
            continue
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            msg = f"Everybody can write to {folder}, and so could put another folder in the place of {home}"
            todo = f"Run chmod o-w {folder}, or choose a home folder elsewhere."
            raise ConfigError(msg, left=_LEFT, todo=todo, path=str(folder))
        if mode & stat.S_IWGRP and not mode & stat.S_ISVTX and folder.stat().st_gid != os.getegid():
            _log.warning("the group of %s can put another folder in the place of %s", folder, home)
