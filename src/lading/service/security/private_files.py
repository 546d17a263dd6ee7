"""Files of the home that are for its owner alone: made so, and not trusted otherwise."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from lading.errors import ConfigError

_MOST_BYTES = 1 << 16
_LEFT = "Nothing was started."


def write_private(path: Path, text: str) -> bool:
    """Make a file that only its owner can read. Says whether it was made: a file that is there is never replaced.

    The file appears under its name when it is whole and durable. Dies before: a draft of another name, which nobody
    reads. Raises OSError.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)
    return True


def read_private(path: Path, *, owner_of: Path | None = None) -> str | None:
    """The text of a file that only its owner can read and change; None when it is not there. Raises ConfigError.

    The owner is this user. The administrator of the machine may read files of others: then of the owner of a folder.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"The file {path} cannot be read: {error.strerror}"
        todo = "Put a plain file there that this user can read, or remove it."
        raise ConfigError(msg, left=_LEFT, todo=todo) from error
    with os.fdopen(descriptor, "rb") as file:
        owner = owner_of.stat().st_uid if owner_of is not None and os.geteuid() == 0 else os.geteuid()
        check_private(path, os.fstat(file.fileno()), owner)
        return file.read(_MOST_BYTES).decode("utf-8", "replace")


def check_private(path: Path, status: os.stat_result, owner: int) -> None:
    """Raise ConfigError unless this is a plain file that nobody but this owner can use."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        msg = f"{path} is not a plain file"
        raise ConfigError(msg, left=_LEFT, todo="Remove it.")
    if status.st_uid != owner:
        msg = f"The file {path} belongs to user {status.st_uid}, and not to user {owner}, whose home it is"
        raise ConfigError(msg, left=_LEFT, todo="Run Lading as the owner of the home, or remove the file.")
    if mode & 0o077:
        msg = f"The file {path} can be used by others: its mode is {mode:04o}"
        todo = f"Run chmod 600 {path} and consider whether its content was exposed."
        raise ConfigError(msg, left=_LEFT, todo=todo)


def remove_private(path: Path) -> None:
    """Remove a file, durably, if it is there."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
