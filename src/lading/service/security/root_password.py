"""The first password of root.

A service that starts with a root without a password gives it one, in these steps:

1. The password is chosen: read from the file that the operator names, else from `root.password` of the home if a start
   that died left one there, else made from random letters.
2. Unless the operator gave it, it is written to `root.password` (0600, whole and durable when it has its name).
3. The store keeps its hashes. From now on it is root's password.
4. It is shown, once, if a terminal is there to show it on.

Dies before 3: root has no password, and so nobody can log in as root; the next start goes on at 1 and takes the file
that was left. Dies after 3: the password is set and the file has it; the next start says where the file is.

ALTER USER root removes the file: who set the new password knows it. Dies between the two: the file has a password that
is no longer right; the next start notices and removes it.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lading.errors import ConfigError
from lading.failpoints import failpoint
from lading.service.security.private_files import read_private, remove_private, write_private
from lading.service.security.privileges import ROOT_NAME
from lading.service.security.redaction import HIDDEN

if TYPE_CHECKING:
    from lading.service.security.users import Access

FILE_NAME = "root.password"
_LETTERS = "".join(sorted(set(string.ascii_letters + string.digits) - set("0O1lI")))
_KINDS = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
_LEFT = "Nothing was started."
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RootPassword:
    """What is to be said about root's password at a start."""

    file: Path | None = None
    """Where it can be read, if it can."""
    first: str = field(default="", repr=False)
    """The password, when it was set by this start and the operator does not know it."""
    is_ignored: bool = False
    """The operator named a file with another password than root has: the one that root has counts."""


def ensure_root_password(access: Access, home: Path, given: Path | None = None) -> RootPassword:
    """Give root a password unless it has one. Raises ConfigError. See the steps above."""
    kept = home / FILE_NAME
    if access.has_password(ROOT_NAME):
        text = _read_kept(kept)
        if text is not None and access.prove(ROOT_NAME, text) is None:
            remove_private(kept)
            text = None
        is_ignored = given is not None and given.exists() and access.prove(ROOT_NAME, _read_given(given)) is None
        return RootPassword(file=kept if text is not None else None, is_ignored=is_ignored)
    if given is not None:
        access.set_first_password(_read_given(given))
        remove_private(kept)  # A start that died may have left one, which was never root's password.
        return RootPassword()
    password = _keep_password(kept)
    failpoint("root_password.kept")
    access.set_first_password(password)
    failpoint("root_password.set")
    return RootPassword(file=kept, first=password)


def forget_root_password(home: Path) -> None:
    """Root has another password now, which its owner knows."""
    failpoint("root_password.changed")
    remove_private(home / FILE_NAME)


def _keep_password(kept: Path) -> str:
    text = _read_kept(kept)
    if text is not None:
        return text
    try:
        write_private(kept, make_password() + "\n")
    except OSError as error:
        msg = f"The file {kept} cannot be written: {error.strerror}"
        todo = "Make the home folder writable for this user, and look whether its disk has room."
        raise ConfigError(msg, left=_LEFT, todo=todo) from error
    return _read_kept(kept) or ""


def make_password() -> str:
    """Four groups of five letters and digits: 116 random bits, of every kind that rules for passwords ask for."""
    while True:
        password = "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))
        if all(any(letter in kind for letter in password) for kind in _KINDS):
            return password


def _read_kept(path: Path) -> str | None:
    text = read_private(path)
    if text is None:
        return None
    return _checked(text, path)


def _read_given(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _checked(file.read(_MOST_BYTES).decode(), path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        msg = f"The file {path} with the password of root cannot be read: {why}"
        raise ConfigError(msg, left=_LEFT, todo="Name a file that has the password in its first line.") from error


def _checked(text: str, path: Path) -> str:
    password = text.split("\n", 1)[0].rstrip("\r")
    if not password:
        msg = f"The file {path} holds no password"
        raise ConfigError(msg, left=_LEFT, todo="Write the password into its first line, or remove the file.")
    HIDDEN.learn([password])
    return password
