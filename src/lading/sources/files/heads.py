"""The first bytes of the first file, unpacked: what shows how files are written."""

from __future__ import annotations

from lading.sources.files.sniff import sniffed
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, compression_of
from lading.sources.files.unpack import unpack
from lading.storage.store import open_store

_HEAD_BYTES = 64 * 1024


def first_head(spec: FilesSpec) -> tuple[str, bytes] | None:
    """Its key and its first bytes; None when there is no file yet."""
    place = open_store(spec.place.root, spec.s3)
    first = FilesSource(spec, store=place).first_file()
    if first is None:
        return None
    file = place.open(first.key, if_match=first.etag, size=first.size)
    try:
        return first.key, unpack(file, compression_of(first.key, spec), place.uri_of(first.key))(_HEAD_BYTES)
    finally:
        file.close()


def probable_separator(spec: FilesSpec) -> str:
    """What seems to stand between the fields of the first CSV file, if not what the job says; else empty."""
    head = first_head(spec)
    if head is None:
        return ""
    found = sniffed(*head, {"format": "csv"}).get("column_separator", "")
    return found if found != spec.csv.column_separator and found.encode() in head[1] else ""
