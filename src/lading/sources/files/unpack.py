"""Bytes of text files, unpacked as they stream. A file that ends too early raises, it never looks shorter."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import pyarrow as pa

from lading.sources.files.errors import file_unreadable
from lading.sources.files.spec import Compression
from lading.storage.store import ByteFile

Read = Callable[[int], bytes]
"""Up to so many bytes; none only at the end."""

_ARROW = {
    Compression.GZIP: "gzip",
    Compression.ZSTD: "zstd",
    Compression.BZ2: "bz2",
    Compression.LZ4: "lz4",
}
_FRAMED = b"\xff\x06\x00\x00sNaPpY"
_CHUNK = 1 << 20
_MAX_BLOCK = 256 * 1024 * 1024
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
    _FRAMED: "snappy",
    b"PAR1": "parquet",
    b"ORC": "orc",
}


def unpack(file: ByteFile, compression: Compression, uri: str) -> Read:
    """A function that reads unpacked bytes from the file's place on, as many as it is asked for until the end."""
    return _filling(_open(file, compression, uri))


def _open(file: ByteFile, compression: Compression, uri: str) -> Read:
    if compression is Compression.PLAIN:
        return file.read
    if compression in _ARROW:
        stream = pa.CompressedInputStream(lend(file), _ARROW[compression])
        return _refusing_empty(stream.read, uri)
    if compression is Compression.DEFLATE:
        return _joined(_deflate(file, uri))
    codec = "lz4_raw" if compression is Compression.LZ4_BLOCK else "snappy"
    return _joined(_blocks(_Exact(file, uri), pa.Codec(codec), uri))


class _Lent:
    """A file that its borrower cannot close: Arrow closes what it reads from whenever it is done with it."""

    closed = False

    def __init__(self, file: ByteFile) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def close(self) -> None:
        """The owner closes."""


def lend(file: ByteFile) -> pa.PythonFile:
    """A file for Arrow to read from."""
    return pa.PythonFile(_Lent(file), mode="r")


def check_is_text(head: bytes, uri: str) -> None:
    """Refuse a file whose first bytes say that it is not plain text."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic) and (len(magic) > 3 or not head[:64].isascii()):
            raise file_unreadable(uri, f"it should be plain text and starts like {kind}")


def packed_as(head: bytes) -> str:
    """The `compress_type` of a file whose first bytes say that it is packed; empty for any other."""
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic) and not head[:64].isascii()), "")
    return {"gzip": "gz"}.get(kind, kind) if kind in _ARROW.values() else ""


def _filling(read: Read) -> Read:
    """Makes reads whole, so that blocks are the same however the bytes trickle in."""

    def filled(size: int) -> bytes:
        content = read(size)
        if len(content) == size or not content:
            return content
        pieces, missing = [content], size - len(content)
        while missing and (more := read(missing)):
            pieces.append(more)
            missing -= len(more)
        return b"".join(pieces)

    return filled


def _refusing_empty(read: Read, uri: str) -> Read:
    """A packed file is never empty, not even when there is nothing in it."""
    seen = False

    def guarded(size: int) -> bytes:
        nonlocal seen
        content = read(size)
        if not content and not seen:
            raise file_unreadable(uri, "it is empty, which a packed file cannot be")
        seen = True
        return content

    return guarded


def _joined(pieces: Iterator[bytes]) -> Read:
    rest = b""

    def read(size: int) -> bytes:
        nonlocal rest
        while not rest:
            piece = next(pieces, None)
            if piece is None:
                return b""
            rest = piece
        content, rest = rest[:size], rest[size:]
        return content

    return read


def _deflate(file: ByteFile, uri: str) -> Iterator[bytes]:
    unzip = zlib.decompressobj()
    while not unzip.eof:
        packed = file.read(_CHUNK)
        if not packed:
            raise file_unreadable(uri, "it is cut off")
        try:
            yield unzip.decompress(packed)
        except zlib.error as error:
            raise file_unreadable(uri, f"{error}") from error
    if unzip.unused_data or file.read(1):
        raise file_unreadable(uri, "something follows its end")


class _Exact:
    """Reads as much as was asked for, or says that the file is cut off."""

    def __init__(self, file: ByteFile, uri: str) -> None:
        self._file = file
        self._uri = uri

    def take(self, size: int) -> bytes:
        content = self.take_or_end(size)
        if not content and size:
            raise file_unreadable(self._uri, "it is cut off")
        return content

    def take_or_end(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            more = self._file.read(size - len(content))
            if not more:
                break
            content += more
        if content and len(content) < size:
            raise file_unreadable(self._uri, "it is cut off")
        return content


def _blocks(file: _Exact, codec: pa.Codec, uri: str) -> Iterator[bytes]:
    """Hadoop's blocks: the unpacked length, then packed pieces with their own lengths. Or snappy's frames."""
    head = file.take(4)
    if codec.name == "snappy" and head == _FRAMED[:4]:
        yield from _frames(file, codec, uri)
        return
    while head:
        unpacked = _length(head, uri)
        while unpacked > 0:
            packed = file.take(_length(file.take(4), uri))
            # A piece of LZ4 does not say how long it is unpacked; one piece per block is what Hadoop writes.
            piece = _unpack(codec, packed, _snappy_length(packed) if codec.name == "snappy" else unpacked, uri)
            unpacked -= len(piece)
            yield piece
        head = file.take_or_end(4)


def _frames(file: _Exact, codec: pa.Codec, uri: str) -> Iterator[bytes]:
    """The framing format of snappy. Its checksums are not looked at; lengths are."""
    if file.take(6) != _FRAMED[4:]:
        raise file_unreadable(uri, "it starts like snappy frames and goes on differently")
    while head := file.take_or_end(4):
        kind, body = head[0], file.take(int.from_bytes(head[1:], "little"))
        if kind == 0:
            yield _unpack(codec, body[4:], _snappy_length(body[4:]), uri)
        elif kind == 1:
            yield body[4:]
        elif kind < 0x80:
            raise file_unreadable(uri, f"it has a frame of the unknown kind {kind}")


def _unpack(codec: pa.Codec, packed: bytes, size: int, uri: str) -> bytes:
    if size > _MAX_BLOCK:
        raise file_unreadable(uri, "a block in it says that it is larger than any block is")
    return bytes(codec.decompress(packed, decompressed_size=size, asbytes=True))


def _length(head: bytes, uri: str) -> int:
    size = int.from_bytes(head, "big")
    if size > _MAX_BLOCK:
        raise file_unreadable(uri, "it is not made of blocks as Hadoop writes them")
    return size


def _snappy_length(packed: bytes) -> int:
    size = 0
    for shift, byte in enumerate(packed[:5]):
        size |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            break
    return size
