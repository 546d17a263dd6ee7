"""Which compression a file has, by property or by suffix."""

from __future__ import annotations

from lading.sources.files.spec import Compression, FilesSpec

_SUFFIXES = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
    ".bz2": Compression.BZ2,
    ".lz4": Compression.LZ4,
    ".snappy": Compression.SNAPPY,
    ".deflate": Compression.DEFLATE,
}


def compression_of(key: str, spec: FilesSpec) -> Compression:
    """The compression of a whole file. Parquet and ORC compress inside and have none."""
    if not spec.format.is_text:
        return Compression.PLAIN
    if spec.compression is not Compression.AUTO:
        return spec.compression
    name = key.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), Compression.PLAIN)
