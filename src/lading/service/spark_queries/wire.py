"""What the service and its query process say to each other: frames of a letter, a length and that many bytes.

A query has a pair of sockets of its own. The service sends one request; the query process answers with one head, any
number of batches, and one end: done, or an error. What comes from the query process is data and is never executed.
"""

from __future__ import annotations

import json
import pickle
import secrets
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from lading.errors import ConfigError
from lading.model.s3_access import S3Access

REQUEST, HEAD, BATCH, DONE, ERROR = b"Q", b"H", b"B", b"D", b"E"
READY, OUT_OF_MEMORY, SPARK_ENDED = b"R", b"M", b"J"
"""What the process itself says, on the socket that it has as long as it lives. The last two are its last words; the
one of memory names the query that took it, when that is known."""
_FRONT = struct.Struct("<cQ")
MOST_BYTES = 64 * 1024 * 1024
"""Of one frame of an answer: the service holds it in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table as a query sees it: a name that nobody can guess, and the files of one snapshot."""

    name: str
    root: str
    files: tuple[str, ...]
    schema: pa.Schema
    constants: pa.Table | None = None
    """Columns that its files leave out: one row for each file."""
    is_plain: bool = True
    """Java can read it by itself: names of folders say what the constants say, and all of them are ASCII."""
    storage: S3Access | None = field(default=None, repr=False)
    """How to reach a root that is not on this machine, keys among it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """One query, in Spark's words."""

    text: str
    views: tuple[View, ...] = ()
    identity: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of the service's own identity in a cloud, for tables without keys of their own."""

    def encoded(self) -> bytes:
        """As it is sent."""
        return pickle.dumps(self)

    @classmethod
    def decoded(cls, raw: bytes) -> QueryRequest:
        """As it was sent. The query process trusts the service, and not the other way round."""
        found: QueryRequest = pickle.loads(raw)  # noqa: S301 - from the service, through a pair of sockets
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFailure:
    """Why there is no answer, or no more of it."""

    kind: str
    """`query`: Spark refuses it; `memory`: it ran out of memory; `victim`: another one did; `perhaps`: one of
    them did; `spark`: Spark ended; `gone`: the query process ended; else the name of an error of Lading."""
    text: str = ""

    def encoded(self) -> bytes:
        """As it is sent."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decoded(cls, raw: bytes) -> QueryFailure:
        """As it was sent."""
        found = json.loads(raw)
        return cls(kind=str(found["kind"]), text=str(found["text"]))


def new_query_name() -> str:
    """A name that no other query has."""
    return f"lading-query-{secrets.token_hex(8)}"


NAME_BYTES = len(new_query_name())


class PeerGoneError(ConnectionError):
    """The other side closed the socket, or died."""


def send_frame(to: socket.socket, kind: bytes, content: bytes = b"") -> None:
    """Send one frame whole."""
    to.sendall(_FRONT.pack(kind, len(content)))
    if content:
        to.sendall(content)


def read_frame(
    peer: socket.socket, *, most: int = MOST_BYTES, wait: Callable[[], None] = lambda: None
) -> tuple[bytes, bytes]:
    """One frame. `wait` returns when there is something to read, or raises. Raises PeerGoneError."""
    kind, length = _FRONT.unpack(_read(peer, _FRONT.size, wait))
    if length > most:
        msg = f"A frame of {length} bytes is longer than {most}"
        raise ConfigError(msg, left="Nothing was changed.", todo="Ask for shorter values.")
    return kind, _read(peer, length, wait)


def _read(peer: socket.socket, length: int, wait: Callable[[], None]) -> bytes:
    found = bytearray(length)
    view, at = memoryview(found), 0
    while at < length:
        wait()
        try:
            count = peer.recv_into(view[at:])
        except ConnectionResetError as error:
            raise PeerGoneError from error
        if not count:
            raise PeerGoneError
        at += count
    return bytes(found)
