"""The keys of a home: where they come from, and how the first one is made."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from lading.errors import ConfigError
from lading.service.security.private_files import write_private

KEY_VARIABLE = "LADING_SECRET_KEY"
KEY_FILE = "secret.key"
KEY_BYTES = 32
_MOST_BYTES = 1 << 16


def load_keys(home: Path, given: str) -> list[bytes]:
    """Keys as the environment gives them, or else from the key file of the home, which is made when it is not there."""
    if given:
        return _parse_keys(given.split(","), f"The variable {KEY_VARIABLE}")
    path = home / KEY_FILE
    text = _read_key_file(path)
    if text is None:
        _make_key_file(path)
        text = _read_key_file(path) or ""
    return _parse_keys(text.split(), f"The key file {path}")


def _parse_keys(texts: Sequence[str], where: str) -> list[bytes]:
    keys = [_parse_key(text.strip()) for text in texts]
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        msg = f"{where} does not hold a key, which is {KEY_BYTES} bytes in urlsafe base64: 44 characters"
        raise ConfigError(
            msg, left="Nothing was started, and nothing was overwritten.", todo="Put the right key there again."
        )
    return keys


def _parse_key(text: str) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _read_key_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            text = file.read(_MOST_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"The key file {path} cannot be read: {error.strerror}"
        raise ConfigError(msg, left="Nothing was started.", todo="Make it readable for this user.") from error
    if mode & 0o077:
        msg = f"The key file {path} can be used by others: its mode is {mode:04o}"
        raise ConfigError(
            msg, left="Nothing was started.", todo=f"Run chmod 600 {path} and consider whether the key was exposed."
        )
    return text


def _make_key_file(path: Path) -> None:
    """Make a key, unless another process does so first. Dies before it is there: nothing was sealed with it yet."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # When another process was first, its key counts.
        write_private(path, base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode() + "\n")
    except OSError as error:
        msg = f"The key file {path} cannot be made: {error.strerror}"
        raise ConfigError(msg, left="Nothing was started.", todo=f"Make room for it, or set {KEY_VARIABLE}.") from error
