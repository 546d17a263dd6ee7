"""Homes of Lading on this machine: what is in one is never read for a job.

A home holds the key that seals every secret, and the token of root. A user who may create a job could otherwise load
them into a table. A folder is a home when it has the lock file of one, which is made before anything else in it and
never removed; so every home is known, also of another service, and also in a process that opened none.
"""

from __future__ import annotations

import os

from lading.errors import ConfigError

LOCK_NAME = "lading.lock"
"""As the store names it."""


def home_of(path: str) -> str | None:
    """The home that a path leads into, after all links; None when it leads into none."""
    place = os.path.realpath(path)
    while True:
        if os.path.lexists(os.path.join(place, LOCK_NAME)):
            return place
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


class Homes:
    """Asks for many files of the same folders. Good for one listing: a home may be made at any time."""

    def __init__(self) -> None:
        self._folders: dict[str, str | None] = {}

    def home_of(self, path: str, *, is_link: bool | None = None) -> str | None:
        """The home that a file leads into. `is_link`: whether it is a link, where somebody knows."""
        if os.path.islink(path) if is_link is None else is_link:
            return home_of(path)
        folder = path.rpartition("/")[0] or "/"
        if folder not in self._folders:
            self._folders[folder] = home_of(folder)
        return self._folders[folder]


def file_of_home(path: str, home: str) -> ConfigError:
    """The file is one of Lading's own."""
    msg = f"File {path} belongs to Lading itself: it is in the home folder {home}, or leads into it"
    todo = "Keep the files of jobs outside of the home folder, and write a uri that does not match files in it."
    return ConfigError(msg, left="Nothing of it was read.", todo=todo, file=path)
