"""Packets over a connection: framing, limits and back-pressure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lading.mysql.protocol.errors import malformed, out_of_order, too_large

PIECE = 0xFFFFFF
"""The most bytes that one frame holds; longer packets are several frames."""
FULL = 64 * 1024
"""Bytes that are gathered before they are handed to the socket."""


class ClosedError(Exception):
    """The client is gone, or reads nothing for too long."""


class Incoming(asyncio.StreamReader):
    """What a client sends. Tells somebody else than the one who reads when there will be no more."""

    is_ended = False
    on_end: Callable[[], None] | None = None

    def feed_eof(self) -> None:
        super().feed_eof()
        self._ended()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._ended()

    def _ended(self) -> None:
        self.is_ended = True
        if self.on_end is not None:
            self.on_end()


class Wire:
    """The packets of one connection. Written packets wait in a small buffer; `flush` waits for a slow reader."""

    def __init__(
        self, reader: Incoming, writer: asyncio.StreamWriter, *, sequence: int, write_timeout_s: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._sequence = sequence
        self._write_timeout_s = write_timeout_s
        self._buffer = bytearray()

    @property
    def cipher(self) -> tuple[str, str]:
        """What it is encrypted with, and the version of TLS; both empty when it is not."""
        secured = self._writer.get_extra_info("ssl_object")
        used = secured.cipher() if secured is not None else None
        return (used[0], secured.version() or "") if used else ("", "")

    def begin(self) -> None:
        """A new command: packets are counted from 0 again."""
        self._sequence = 0

    async def read(self, limit: int) -> bytes:
        """One packet. One that is too large is skipped, so that the client can be told."""
        parts: list[bytes] = []
        left = limit
        while True:
            size = await self._head()
            if size > left:
                await self._skip(size)
                raise too_large(limit)
            parts.append(await self._exactly(size))
            left -= size
            if size < PIECE:
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def put(self, payload: bytes) -> None:
        """Write a packet into the buffer."""
        for start in range(0, len(payload) + 1, PIECE):
            part = payload[start : start + PIECE]
            self._buffer += frame(self._sequence, part)
            self._sequence = (self._sequence + 1) % 256

    @property
    def is_full(self) -> bool:
        """Whether it is time to flush."""
        return len(self._buffer) >= FULL

    async def flush(self) -> None:
        """Hand the buffer to the client and wait until it has taken most of it."""
        gathered, self._buffer = self._buffer, bytearray()
        try:
            self._writer.write(gathered)
            async with asyncio.timeout(self._write_timeout_s):
                await self._writer.drain()
        except TimeoutError as error:
            self._writer.transport.abort()
            raise ClosedError from error
        except (OSError, RuntimeError) as error:
            raise ClosedError from error

    async def send(self, *payloads: bytes) -> None:
        """Write packets and flush."""
        for payload in payloads:
            self.put(payload)
        await self.flush()

    @contextmanager
    def watching(self, gone: Callable[[], None]) -> Iterator[None]:
        """Within this, `gone` is called when the client has gone; at once when it has gone already."""
        self._reader.on_end = gone
        if self._reader.is_ended:
            gone()
        try:
            yield
        finally:
            self._reader.on_end = None

    async def close(self) -> None:
        """Say nothing more."""
        self._writer.close()
        with suppress(OSError, TimeoutError, RuntimeError):
            async with asyncio.timeout(2):
                await self._writer.wait_closed()
        self._writer.transport.abort()

    async def _head(self) -> int:
        head = await self._exactly(4)
        expected, self._sequence = self._sequence, (head[3] + 1) % 256
        if head[3] != expected:
            raise out_of_order()
        return int.from_bytes(head[:3], "little")

    async def _exactly(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise ClosedError from error
        except OSError as error:
            raise ClosedError from error

    async def _skip(self, size: int) -> None:
        while True:
            left = size
            while left:
                left -= len(await self._exactly(min(left, FULL)))
            if size < PIECE:
                return
            size = await self._head()


def frame(sequence: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def parse_head(head: bytes, *, expected: int, limit: int) -> int:
    """The size of a packet before there is a Wire."""
    size = int.from_bytes(head[:3], "little")
    if head[3] != expected:
        raise out_of_order()
    if not 0 < size <= limit:
        msg = "the answer to the greeting has a wrong size"
        raise malformed(msg)
    return size
