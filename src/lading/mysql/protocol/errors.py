"""Errors as MySQL clients know them: a number, a state and a text."""

from __future__ import annotations

import logging

from lading.errors import LadingError
from lading.service.security.authentication import ROOT_HINT
from lading.service.security.privileges import ROOT_NAME
from lading.service.security.redaction import redact

_log = logging.getLogger(__name__)
TOO_LARGE = 1153
LONGEST = 8192
"""Letters of an error's text. The texts of statements can be long, and they are shown in it."""


class Fault(Exception):
    """An error on its way to a client."""

    def __init__(self, code: int, state: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.state = state
        self.text = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def fault_of(error: Exception) -> Fault:
    """Any error, as a client may see it. What nobody expected is recorded here, and told without its insides."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, LadingError):
        return Fault(error.face.errno, error.face.sqlstate, redact(str(error)))
    _log.error("A statement failed in a way that nobody expected", exc_info=error)
    return Fault(1105, "HY000", f"Lading failed inside ({type(error).__name__}). Its log says more.")


def malformed(what: str) -> Fault:
    """The client broke the protocol."""
    return Fault(1835, "HY000", f"Malformed communication packet: {what}")


def out_of_order() -> Fault:
    """A packet has a number that does not come next."""
    return Fault(1156, "08S01", "Got packets out of order")


def too_large(limit: int) -> Fault:
    """A packet that is not read."""
    return Fault(TOO_LARGE, "08S01", f"Got a packet bigger than 'max_allowed_packet' bytes ({limit})")


def too_many_prepared(number: int) -> Fault:
    """A connection keeps as much as it may."""
    told = f"Can't create more than max_prepared_stmt_count statements (current value: {number}) on one connection"
    return Fault(1461, "42000", told)


def access_denied(user: str, host: str, *, with_password: bool) -> Fault:
    """Nobody is told whether the user is there."""
    used = "YES" if with_password else "NO"
    hint = f". {ROOT_HINT}" if user == ROOT_NAME else ""
    return Fault(1045, "28000", f"Access denied for user '{user}'@'{host}' (using password: {used}){hint}")


def plain_refused() -> Fault:
    """A client without TLS. Nothing it said was looked at."""
    told = "Connections using insecure transport are prohibited: this service asks for TLS"
    return Fault(3159, "HY000", f"{told}. The password was not looked at. Connect with TLS (--ssl-mode=REQUIRED).")


def syntax(text: str) -> Fault:
    return Fault(1064, "42000", text)


TOO_MANY_CONNECTIONS = Fault(1040, "08004", "Too many connections")
SHUTDOWN = Fault(1053, "08S01", "Server shutdown in progress")
INTERRUPTED = Fault(1317, "70100", "Query execution was interrupted")
KILLED = Fault(1927, "70100", "Connection was killed")
