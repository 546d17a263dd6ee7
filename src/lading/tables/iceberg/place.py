"""A table's location as an ObjectStore."""

from __future__ import annotations

from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore, open_store

_LOCAL = ("file://", "file:")


def open_place(location: str, options: S3Access) -> ObjectStore:
    """Open a location as PyIceberg understands it: a local path is taken letter by letter, nothing is unquoted."""
    return open_store(local_path(location), options)


def local_path(location: str) -> str:
    """The path of a local location; any other location as it is."""
    for prefix in _LOCAL:
        if location.startswith(prefix):
            return location.removeprefix(prefix)
    return location


def relative_path(location: str, path: str) -> str:
    """A file's path relative to the table; the whole of it when it lies elsewhere."""
    root, full = local_path(location).rstrip("/"), local_path(path)
    return full.removeprefix(f"{root}/")
