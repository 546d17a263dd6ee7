"""Three questions to a directory: is this a password, who is this, which groups are they in.

LDAP (RFC 4511) is spoken here without a library, see docs/design/0010-ldap.md: a simple bind, a search and StartTLS are
three kinds of messages. Referrals are never followed, for they would send a password to a host that nobody named. A
bind without a password, which a directory may take for nobody in particular and let in, is never sent.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lading.clock import Clock
from lading.errors import UnavailableError
from lading.service.security import ldap_ber as ber
from lading.service.security.ldap_filter import escape_in_dn, parse_filter
from lading.service.security.ldap_settings import LdapSettings

_BIND, _BOUND, _UNBIND, _SEARCH, _ENTRY, _DONE, _REFERENCE = 0x60, 0x61, 0x42, 0x63, 0x64, 0x65, 0x73
_EXTENDED, _EXTENDED_DONE = 0x77, 0x78
_START_TLS = "1.3.6.1.4.1.1466.20037"
_BASE, _SUBTREE = 0, 2
_SUCCESS, _SIZE_LIMIT_EXCEEDED, _NO_SUCH_OBJECT = 0, 4, 32
_WRONG = frozenset((19, 32, 34, 49, 50, 53))
"""Codes of a bind that mean: this user does not get in. Locked, unknown, disabled or a wrong password."""
_NO_ATTRIBUTES = "1.1"
_LARGEST = 4 * 1024 * 1024
_ANYTHING = parse_filter("(objectClass=*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that a search found."""

    dn: str
    values: Mapping[str, tuple[str, ...]]
    """By attribute, in small letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look for."""

    base: str
    asked: bytes
    attribute: str = _NO_ATTRIBUTES
    scope: int = _SUBTREE
    most: int = 0
    """0: all of them."""


class LdapClient:
    """Opens a connection for each question. All of it together takes no longer than the settings say."""

    def __init__(self, settings: LdapSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._users, self._groups = parse_filter(settings.search_filter), parse_filter(settings.group_filter)

    @contextmanager
    def bound(self, dn: str, password: str) -> Iterator[LdapConnection | None]:
        """A connection of this name; None when the directory refuses it. Raises UnavailableError."""
        if not dn or not password:
            yield None
            return
        try:
            with self._connected() as connection:
                yield connection if connection.bind(dn, password) else None
        except OSError as error:  # also what TLS says, and what is not LDAP
            raise self._broken(str(error) or type(error).__name__) from error

    def find_dn(self, connection: LdapConnection, user: str) -> str | None:
        """The name of a user; None when there is none, or more than one."""
        asked = self._users.encode({"user": user, "dn": ""})
        found = connection.search(Search(base=self._settings.search_base, asked=asked, most=2))
        return found[0].dn if len(found) == 1 else None

    def is_there(self, connection: LdapConnection, dn: str) -> bool:
        """Whether there is an entry of this name."""
        return bool(connection.search(Search(base=dn, asked=_ANYTHING.encode({}), scope=_BASE)))

    def find_groups(self, connection: LdapConnection, user: str, dn: str) -> tuple[str, ...]:
        """The names of the groups that a user is in, in small letters."""
        attribute = self._settings.group_attribute
        asked = self._groups.encode({"user": user, "dn": dn})
        found = connection.search(Search(base=self._settings.group_base, asked=asked, attribute=attribute))
        return tuple(sorted({name.lower() for entry in found for name in entry.values.get(attribute.lower(), ())}))

    def dn_of(self, user: str) -> str:
        """The name of a user by the template."""
        return self._settings.bind_dn.replace("{user}", escape_in_dn(user))

    @contextmanager
    def _connected(self) -> Iterator[LdapConnection]:
        settings, deadline_s = self._settings, self._clock.monotonic_s() + self._settings.timeout_s
        sock = socket.create_connection((settings.host, settings.port), timeout=settings.timeout_s)
        try:
            if settings.is_ldaps:
                sock = self._encrypted(sock)
            connection = LdapConnection(sock, self._clock, deadline_s, self._broken)
            if settings.start_tls:
                connection.start_tls()
                sock = self._encrypted(sock)
                connection = LdapConnection(sock, self._clock, deadline_s, self._broken)
            yield connection
            connection.unbind()
        finally:
            sock.close()

    def _encrypted(self, sock: socket.socket) -> ssl.SSLSocket:
        ca_file = self._settings.ca_file
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file is not None else None)
        return context.wrap_socket(sock, server_hostname=self._settings.host)

    def _broken(self, why: str) -> UnavailableError:
        msg = f"The directory {self._settings.url} cannot be used: {why}"
        todo = "Try again; if it stays so, check the LADING_LDAP_ settings. Users with a password here can log in."
        return UnavailableError(msg, left="Nobody was signed in.", todo=todo)


class LdapConnection:
    """Asks one thing after the other. OSError is for those who opened it."""

    def __init__(
        self, sock: socket.socket, clock: Clock, deadline_s: float, broken: Callable[[str], UnavailableError]
    ) -> None:
        self._sock = sock
        self._clock = clock
        self._deadline_s = deadline_s
        self._broken = broken
        self._last_id = 0

    def bind(self, dn: str, password: str) -> bool:
        """Prove to be somebody. Raises UnavailableError when the directory neither agrees nor refuses."""
        simple = ber.pack_text(password, 0x80)
        self._send(ber.pack(_BIND, ber.pack_number(3), ber.pack_text(dn), simple))
        code, why = _result(self._receive(_BOUND))
        if code not in _WRONG and code != _SUCCESS:
            raise self._broken(f"it answered the bind with code {code} {why}".strip())
        return code == _SUCCESS

    def start_tls(self) -> None:
        """Agree to encrypt what follows. Raises UnavailableError."""
        self._send(ber.pack(_EXTENDED, ber.pack_text(_START_TLS, 0x80)))
        code, why = _result(self._receive(_EXTENDED_DONE))
        if code != _SUCCESS:
            raise self._broken(f"it does not speak TLS: code {code} {why}".strip())

    def search(self, search: Search) -> list[Entry]:
        """What the directory finds. References to other directories are left out. Raises UnavailableError."""
        limits = (ber.pack_number(search.most), ber.pack_number(max(1, int(self._left_s()))))
        what = (ber.pack(ber.BOOLEAN, b"\0"), search.asked, ber.pack(ber.SEQUENCE, ber.pack_text(search.attribute)))
        where = (ber.pack_text(search.base), ber.pack_number(search.scope, ber.ENUMERATED))
        never_dereference = ber.pack_number(0, ber.ENUMERATED)
        self._send(ber.pack(_SEARCH, *where, never_dereference, *limits, *what))
        found: list[Entry] = []
        while True:
            tag, content = self._receive(_ENTRY, _REFERENCE, _DONE)
            if tag == _ENTRY:
                found.append(_entry(content))
            elif tag == _DONE:
                break
        code, why = _result((tag, content))
        is_cut = code == _SIZE_LIMIT_EXCEEDED and search.most > 0
        if code == _NO_SUCH_OBJECT and search.scope == _BASE:
            return []
        if code != _SUCCESS and not is_cut:
            raise self._broken(f"it answered the search in {search.base} with code {code} {why}".strip())
        return found

    def unbind(self) -> None:
        self._send(bytes((_UNBIND, 0)))

    def _send(self, operation: bytes) -> None:
        self._last_id += 1
        self._sock.settimeout(self._left_s())
        self._sock.sendall(ber.pack(ber.SEQUENCE, ber.pack_number(self._last_id), operation))

    def _receive(self, *wanted: int) -> tuple[int, bytes]:
        head = self._read(2)
        if head[1] & 0x80:
            head += self._read(head[1] & 0x7F)
        tag, _, size = ber.unpack_head(head)
        if tag != ber.SEQUENCE or size > _LARGEST:
            what = "what it sent is no message of LDAP"
            raise ConnectionError(what)
        parts = list(ber.unpack(self._read(size)))
        if len(parts) < 2 or ber.number(parts[0][1]) != self._last_id or parts[1][0] not in wanted:
            what = "it answered something that it was not asked"
            raise ConnectionError(what)
        return parts[1]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._sock.settimeout(self._left_s())
            part = self._sock.recv(size - len(data))
            if not part:
                what = "it hung up"
                raise ConnectionError(what)
            data += part
        return data

    def _left_s(self) -> float:
        left_s = self._deadline_s - self._clock.monotonic_s()
        if left_s <= 0:
            what = "it did not answer in time"
            raise TimeoutError(what)
        return left_s


def _result(answer: tuple[int, bytes]) -> tuple[int, str]:
    parts = list(ber.unpack(answer[1]))
    if len(parts) < 3 or parts[0][0] != ber.ENUMERATED:
        what = "it answered without a result"
        raise ConnectionError(what)
    return ber.number(parts[0][1]), parts[2][1].decode("utf-8", "replace")[:200]


def _entry(content: bytes) -> Entry:
    parts: Sequence[tuple[int, bytes]] = list(ber.unpack(content))
    if len(parts) != 2:
        what = "it found something that is no entry"
        raise ConnectionError(what)
    values: dict[str, tuple[str, ...]] = {}
    for _, attribute in ber.unpack(parts[1][1]):
        pair = list(ber.unpack(attribute))
        if len(pair) != 2:
            what = "it found something that is no entry"
            raise ConnectionError(what)
        name = pair[0][1].decode("utf-8", "replace").lower()
        values[name] = tuple(value.decode("utf-8", "replace") for _, value in ber.unpack(pair[1][1]))
    return Entry(dn=parts[0][1].decode("utf-8", "replace"), values=values)
