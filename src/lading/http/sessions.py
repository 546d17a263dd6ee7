"""A caller's session."""

from __future__ import annotations

from lading.http.callers import Caller
from lading.service.facade import Lading
from lading.service.session import Session


def open_session(lading: Lading, caller: Caller, database: str) -> Session:
    """Statements of a request run as its caller, who may do what the caller may."""
    if caller.rights is None:
        return lading.session(caller.user, database, is_trusted=True)
    return lading.session_of(caller.rights.identity, database)
