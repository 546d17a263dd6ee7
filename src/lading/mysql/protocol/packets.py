"""Bytes of the protocol: reading what clients send, writing what they are sent.

Every read is checked against the end of its packet: a client cannot make it loop or read beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

from lading.mysql.protocol.constants import Capabilities, ColumnType, ServerStatus, encode_length, encode_text
from lading.mysql.protocol.errors import Fault, malformed

TEXT = ColumnType.VAR_STRING
UTF8MB4 = 45
"""utf8mb4_general_ci: every client knows it."""
BINARY = 63
CAPABILITIES = (
    Capabilities.CLIENT_LONG_PASSWORD
    | Capabilities.CLIENT_LONG_FLAG
    | Capabilities.CLIENT_FOUND_ROWS
    | Capabilities.CLIENT_CONNECT_WITH_DB
    | Capabilities.CLIENT_ODBC
    | Capabilities.CLIENT_IGNORE_SPACE
    | Capabilities.CLIENT_PROTOCOL_41
    | Capabilities.CLIENT_INTERACTIVE
    | Capabilities.CLIENT_TRANSACTIONS
    | Capabilities.CLIENT_SECURE_CONNECTION
    | Capabilities.CLIENT_MULTI_STATEMENTS
    | Capabilities.CLIENT_MULTI_RESULTS
    | Capabilities.CLIENT_PLUGIN_AUTH
    | Capabilities.CLIENT_CONNECT_ATTRS
    | Capabilities.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
)
"""What is offered. Not CLIENT_DEPRECATE_EOF: with it, Connector/J takes the end of an empty result for the beginning
of a cursor, and waits for ever."""
SHA2_PASSWORD = "caching_sha2_password"  # noqa: S105 - the name of a method
NATIVE_PASSWORD = "mysql_native_password"  # noqa: S105 - the name of a method
CLEAR_PASSWORD = "mysql_clear_password"  # noqa: S105 - the name of a method
_FIELD_PACKETS = {0xFC: 2, 0xFD: 3, 0xFE: 8}


class Reader:
    """A place in a packet. Reading beyond the end is a fault of the client."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_done(self) -> bool:
        """Whether everything was read."""
        return self._at >= len(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            msg = "a packet is shorter than it says"
            raise malformed(msg)
        self._at += count
        return self._data[self._at - count : self._at]

    def uint(self, count: int) -> int:
        """A number of so many bytes."""
        return int.from_bytes(self.take(count), "little")

    def length(self) -> int:
        """A number that says itself how long it is."""
        first = self.uint(1)
        return self.uint(_FIELD_PACKETS[first]) if first in _FIELD_PACKETS else first

    def counted(self) -> bytes:
        """Bytes behind their count."""
        return self.take(self.length())

    def terminated(self) -> bytes:
        """Bytes up to a zero, or up to the end of the packet."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            return self.rest()
        found = self._data[self._at : end]
        self._at = end + 1
        return found

    def rest(self) -> bytes:
        found = self._data[self._at :]
        self._at = len(self._data)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What a client says in answer to the greeting, or when it changes its user."""

    capabilities: Capabilities
    charset: int
    user: str = ""
    response: bytes = b""
    database: str = ""
    plugin: str = ""
    wants_tls: bool = False
    """Only the head was sent; the rest comes encrypted."""


def parse_login(data: bytes, offered: Capabilities) -> Login:
    """HandshakeResponse41 or SSLRequest."""
    reader = Reader(data)
    capabilities = Capabilities(reader.uint(4)) & offered
    reader.take(4)
    charset = reader.uint(1)
    reader.take(23)
    if Capabilities.CLIENT_PROTOCOL_41 not in capabilities:
        msg = "the client speaks a protocol older than 4.1"
        raise malformed(msg)
    if reader.is_done:
        return Login(capabilities=capabilities, charset=charset, wants_tls=True)
    user = _text(reader.terminated())
    if Capabilities.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA in capabilities:
        response = reader.counted()
    else:
        response = reader.take(reader.uint(1))
    with_database = Capabilities.CLIENT_CONNECT_WITH_DB in capabilities and not reader.is_done
    database = _text(reader.terminated()) if with_database else ""
    with_plugin = Capabilities.CLIENT_PLUGIN_AUTH in capabilities and not reader.is_done
    plugin = _text(reader.terminated()) if with_plugin else ""
    return Login(
        capabilities=capabilities, charset=charset, user=user, response=response, database=database, plugin=plugin
    )


def parse_change_user(data: bytes, capabilities: Capabilities, charset: int) -> Login:
    """COM_CHANGE_USER."""
    reader = Reader(data)
    user = _text(reader.terminated())
    response = reader.take(reader.uint(1))
    database = _text(reader.terminated())
    if not reader.is_done:
        charset = reader.uint(2)
    plugin = "" if reader.is_done else _text(reader.terminated())
    return Login(
        capabilities=capabilities, charset=charset, user=user, response=response, database=database, plugin=plugin
    )


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = "a name is not UTF-8"
        raise malformed(msg) from error


def greeting(version: str, connection_id: int, nonce: bytes, offered: Capabilities) -> bytes:
    """The first packet: who we are, and what the password is to be scrambled with."""
    return b"".join(
        (
            b"\x0a",
            version.encode() + b"\0",
            connection_id.to_bytes(4, "little"),
            nonce[:8] + b"\0",
            (offered & 0xFFFF).to_bytes(2, "little"),
            bytes([UTF8MB4]),
            int(ServerStatus.SERVER_STATUS_AUTOCOMMIT).to_bytes(2, "little"),
            (offered >> 16).to_bytes(2, "little"),
            bytes([len(nonce) + 1]),
            bytes(10),
            nonce[8:] + b"\0",
            SHA2_PASSWORD.encode() + b"\0",
        )
    )


def auth_switch(plugin: str, nonce: bytes) -> bytes:
    """Ask for the password in another way."""
    return b"\xfe" + plugin.encode() + b"\0" + nonce + b"\0"


def ok(status: ServerStatus, message: str = "") -> bytes:
    told = encode_text(message.encode()[:2000]) if message else b""
    return b"\0\0\0" + int(status).to_bytes(2, "little") + b"\0\0" + told


def eof(status: ServerStatus) -> bytes:
    """The end of columns or rows."""
    return b"\xfe\0\0" + int(status).to_bytes(2, "little")


def error(fault: Fault, codec: str = "utf-8") -> bytes:
    told = fault.text.encode(codec, "replace")
    return b"\xff" + fault.code.to_bytes(2, "little") + b"#" + fault.state.encode() + told


def bare_error(fault: Fault) -> bytes:
    """What went wrong before it is known what the client understands: without the state."""
    return b"\xff" + fault.code.to_bytes(2, "little") + fault.text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnHead:
    """A column as the client is told of it."""

    name: str
    type: ColumnType
    charset: int = UTF8MB4
    table: str = ""
    flags: int = 0
    decimals: int = 0


def column(head: ColumnHead, codec: str, *, default: bool = False) -> bytes:
    """A column definition; with a default when it answers COM_FIELD_LIST."""
    name, table = (encode_text(part.encode(codec, "replace")) for part in (head.name, head.table))
    length = 0xFFFFFF if head.charset != BINARY or head.type is ColumnType.BLOB else 64
    return b"".join(
        (
            b"\x03def\0",
            table,
            table,
            name,
            name,
            b"\x0c",
            head.charset.to_bytes(2, "little"),
            length.to_bytes(4, "little"),
            bytes([head.type]),
            head.flags.to_bytes(2, "little"),
            bytes([head.decimals]),
            b"\0\0",
            b"\xfb" if default else b"",
        )
    )


def count(number: int) -> bytes:
    """How many columns follow."""
    return encode_length(number)


def prepared(statement_id: int, parameters: int) -> bytes:
    """A statement was prepared. Its columns are told when it is run."""
    return b"\0" + statement_id.to_bytes(4, "little") + b"\0\0" + parameters.to_bytes(2, "little") + b"\0\0\0"
