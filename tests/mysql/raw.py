"""A client made of bytes, for what well-behaved clients never send."""

from __future__ import annotations

import socket
import struct
from hashlib import sha1
from typing import Any

from tests.secret_leaks.watch import WATCH

CAPABILITIES = 0x0000_0200 | 0x0000_8000 | 0x0008_0000  # protocol 4.1, secure connection, plugins
MULTI = 0x0001_0000 | 0x0002_0000
DEPRECATE_EOF = 0x0100_0000


class Raw:
    """One connection. `read` gives whole packets."""

    def __init__(self, port: int, *, receive_buffer: int = 0) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        self.sequence = 0

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise EOFError
            parts += part
        WATCH.look(parts, "packet of MySQL")
        return parts

    def read(self) -> bytes:
        head = self.exactly(4)
        self.sequence = (head[3] + 1) % 256
        return self.exactly(int.from_bytes(head[:3], "little"))

    def write(self, payload: bytes, sequence: int | None = None) -> None:
        while True:
            part, payload = payload[:0xFFFFFF], payload[0xFFFFFF:]
            number, sequence = (self.sequence if sequence is None else sequence), None
            self.socket.sendall(len(part).to_bytes(3, "little") + bytes([number]) + part)
            self.sequence = (number + 1) % 256
            if len(part) < 0xFFFFFF:
                return

    def login(
        self, user: str = "root", password: str = "", extra: int = 0, plugin: str = "mysql_native_password"
    ) -> bytes:
        """The answer to a login."""
        greeting = self.read()
        end = greeting.index(b"\0", 1)
        nonce = greeting[end + 5 : end + 13] + greeting[end + 32 : end + 44]
        proof = scramble(password, nonce)
        head = struct.pack("<IIB23x", CAPABILITIES | extra, 1 << 24, 45)
        self.write(head + user.encode() + b"\0" + bytes([len(proof)]) + proof + plugin.encode() + b"\0")
        answer = self.read()
        if answer[:1] == b"\xfe":
            name, _, asked = answer[1:].partition(b"\0")
            assert name == b"mysql_native_password"
            self.write(scramble(password, asked.rstrip(b"\0")))
            answer = self.read()
        return answer

    def command(self, number: int, rest: bytes = b"") -> None:
        self.write(bytes([number]) + rest, sequence=0)

    def query(self, text: str) -> list[bytes]:
        """All packets of the answer to one statement, without EOF."""
        self.command(3, text.encode())
        return self.answer()

    def answer(self) -> list[bytes]:
        first = self.read()
        if first[:1] in (b"\0", b"\xff"):
            return [first]
        packets = [first, *self._until_eof()]
        return [*packets, *self._until_eof()]

    def _until_eof(self) -> list[bytes]:
        found = []
        while not ((packet := self.read())[:1] == b"\xfe" and len(packet) < 9):
            found.append(packet)
            if packet[:1] == b"\xff":
                raise AssertionError(packet)
        return found

    def prepare(self, text: str) -> tuple[int, int]:
        """Number of the statement and of its parameters."""
        self.command(0x16, text.encode())
        packet = self.read()
        assert packet[:1] == b"\0", packet
        statement, _, parameters = struct.unpack_from("<IHH", packet, 1)
        if parameters:
            assert len(self._until_eof()) == parameters
        return statement, parameters

    def execute(self, statement: int, *values: Any) -> list[bytes]:
        """Run a prepared statement."""
        body = struct.pack("<IBI", statement, 0, 1)
        if values:
            nulls = bytearray((len(values) + 7) // 8)
            types, data = b"", b""
            for at, value in enumerate(values):
                kind, encoded = encode(value)
                types += kind
                data += encoded
                if value is None:
                    nulls[at // 8] |= 1 << (at % 8)
            body += bytes(nulls) + b"\1" + types + data
        self.command(0x17, body)
        return self.answer()


def encode(value: Any) -> tuple[bytes, bytes]:
    match value:
        case None:
            return b"\x06\0", b""
        case int():
            return b"\x08\0", struct.pack("<q", value)
        case float():
            return b"\x05\0", struct.pack("<d", value)
        case bytes():
            return b"\xfc\0", b"\xfc" + len(value).to_bytes(2, "little") + value
    data = str(value).encode()
    return b"\xfd\0", b"\xfc" + len(data).to_bytes(2, "little") + data


def scramble(password: str, nonce: bytes) -> bytes:
    if not password:
        return b""
    once = sha1(password.encode()).digest()
    mask = sha1(nonce + sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


def code_of(packet: bytes) -> int:
    """The number of an error."""
    assert packet[:1] == b"\xff", packet
    return int.from_bytes(packet[1:3], "little")
