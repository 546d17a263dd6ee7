"""Where files are: a uri, taken apart."""

from __future__ import annotations

import os
from urllib.parse import unquote

from lading.errors import ConfigError
from lading.sources.files.glob import compile_glob
from lading.sources.files.spec import Place

_S3_SCHEMES = ("s3", "s3a", "s3n")


def parse_uri(uri: str) -> Place:
    """Take a uri apart: `s3://`, `s3a://`, `s3n://`, `file://` or a path, which is made absolute here."""
    scheme, sep, rest = uri.partition("://")
    if not sep:
        scheme, rest = "file", uri
    elif scheme == "file":
        rest = unquote(rest.removeprefix("localhost"))
    if not rest.strip("/"):
        raise _wrong(uri, "Name a place with files, such as s3://bucket/folder/*.csv.")
    if scheme == "file":
        place = Place(scheme="file", bucket="", pattern=_absolute(rest))
    elif scheme in _S3_SCHEMES and rest.partition("/")[0] and rest.partition("/")[2]:
        place = Place(scheme="s3", bucket=rest.partition("/")[0], pattern=rest.partition("/")[2])
    else:
        raise _wrong(uri, "Use s3://bucket/key, file:///path or a path.")
    compile_glob(place.pattern)
    return place


def _absolute(pattern: str) -> str:
    # A trailing slash names a folder: everything in it.
    whole = pattern if pattern.startswith("/") else os.getcwd() + "/" + pattern.removeprefix("./")
    folders = [part for part in whole.split("/") if part not in ("", ".")]
    if ".." in folders:
        raise _wrong(pattern, "Write the path without `..`.")
    return "/" + "/".join(folders) + ("/*" if pattern.endswith("/") else "")


def _wrong(uri: str, todo: str) -> ConfigError:
    msg = f"Invalid uri: {uri!r}"
    return ConfigError(msg, left="Nothing was changed.", todo=todo)
