"""Whose cloud identity a source or a table uses: keys of the statement, nobody's, or the service's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lading.model.load import SourceSpec
from lading.sources.files.properties import is_s3_uri

_PLACES = re.compile(r"offsets|_partitions$|_shards|default_pos|discovery$|on_data_loss$|group\.id$|client\.id$")
"""Properties that say where to begin, and nothing about what is reached."""
_GLOB = re.compile(r"[*?\[{\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """A table and the place where its files are."""

    database: str
    name: str
    location: str


def same_reach(one: SourceSpec, other: SourceSpec) -> bool:
    """Whether two sources are the same place, reached in the same way; positions may differ."""
    return one.kind == other.kind and _reach(one) == _reach(other)


def _reach(source: SourceSpec) -> dict[str, str]:
    return {name: value for name, value in source.properties.items() if not _PLACES.search(name)}


def tables_touched(uri: str, tables: Iterable[KnownTable]) -> list[KnownTable]:
    """Tables whose files a pattern could match, or in whose folder it is. Endpoints are not compared: one store may
    have many names.
    """
    here = _key(uri)
    if here is None:
        return []
    pattern = _GLOB.split(here, maxsplit=1)[0]
    return [table for table in tables if _touch(pattern, _key(table.location))]


def _touch(pattern: str, location: str | None) -> bool:
    if location is None:
        return False
    # What follows a question mark or a hash is no part of the place of a table.
    folder = re.split(r"[?#]", location)[0].rstrip("/") + "/"
    return pattern.startswith(folder) or folder.startswith(pattern)


def _key(uri: str) -> str | None:
    """Bucket and key of an S3 uri."""
    if not is_s3_uri(uri):
        return None
    bucket, _, key = uri.strip().partition("://")[2].partition("/")
    return f"{bucket}/{key.lstrip('/')}"
