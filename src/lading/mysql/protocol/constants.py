"""Numbers of MySQL's protocol, and how it writes lengths. Only those that Lading sends or understands."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Capabilities(IntFlag):
    """What both sides can do, agreed on at the login."""

    CLIENT_LONG_PASSWORD = 1
    CLIENT_FOUND_ROWS = 1 << 1
    CLIENT_LONG_FLAG = 1 << 2
    CLIENT_CONNECT_WITH_DB = 1 << 3
    CLIENT_ODBC = 1 << 6
    CLIENT_IGNORE_SPACE = 1 << 8
    CLIENT_PROTOCOL_41 = 1 << 9
    CLIENT_INTERACTIVE = 1 << 10
    CLIENT_SSL = 1 << 11
    CLIENT_TRANSACTIONS = 1 << 13
    CLIENT_SECURE_CONNECTION = 1 << 15
    CLIENT_MULTI_STATEMENTS = 1 << 16
    CLIENT_MULTI_RESULTS = 1 << 17
    CLIENT_PLUGIN_AUTH = 1 << 19
    CLIENT_CONNECT_ATTRS = 1 << 20
    CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21


class ServerStatus(IntFlag):
    """What the end of an answer says."""

    SERVER_STATUS_AUTOCOMMIT = 1 << 1
    SERVER_MORE_RESULTS_EXISTS = 1 << 3
    SERVER_STATUS_CURSOR_EXISTS = 1 << 6
    SERVER_STATUS_LAST_ROW_SENT = 1 << 7


class Commands(IntEnum):
    """The first byte of what a client asks."""

    COM_QUIT = 1
    COM_INIT_DB = 2
    COM_QUERY = 3
    COM_FIELD_LIST = 4
    COM_STATISTICS = 9
    COM_PROCESS_KILL = 12
    COM_DEBUG = 13
    COM_PING = 14
    COM_CHANGE_USER = 17
    COM_STMT_PREPARE = 22
    COM_STMT_EXECUTE = 23
    COM_STMT_SEND_LONG_DATA = 24
    COM_STMT_CLOSE = 25
    COM_STMT_RESET = 26
    COM_SET_OPTION = 27
    COM_STMT_FETCH = 28
    COM_RESET_CONNECTION = 31


class ColumnType(IntEnum):
    """Types of columns, and of parameters that a client binds."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


READ_ONLY_CURSOR = 1
"""In the flags of COM_STMT_EXECUTE: the client fetches the rows itself."""
BINARY_FLAG = 1 << 7
NUMBER_FLAG = 1 << 14
"""Flags of a column."""


def encode_length(number: int) -> bytes:
    """A whole number in one, three, four or nine bytes."""
    if number < 251:
        return number.to_bytes(1)
    for mark, size in ((b"\xfc", 2), (b"\xfd", 3)):
        if number < 1 << (8 * size):
            return mark + number.to_bytes(size, "little")
    return b"\xfe" + number.to_bytes(8, "little")


def encode_text(text: bytes) -> bytes:
    """A text with its length before it."""
    return encode_length(len(text)) + text
