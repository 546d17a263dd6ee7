"""A caller's session."""

from __future__ import annotations

from contextlib import suppress

from starlette.requests import Request

from lading.errors import DeniedError
from lading.http.callers import Caller
from lading.service.facade import Lading
from lading.service.recording import Request as Asked
from lading.service.recording import recorded
from lading.service.security.origin import Face, Origin
from lading.service.session import Session


def record_denied(request: Request, error: DeniedError) -> None:
    """A request that runs no statement was refused."""
    lading: Lading = request.app.state.lading_desk.lading
    caller: Caller = request.state.caller
    words = f"{request.method} {request.url.path}"
    with suppress(DeniedError), recorded(open_session(lading, caller, "default"), Asked(words=words)):
        raise error


def open_session(lading: Lading, caller: Caller, database: str) -> Session:
    """Statements of a request run as its caller, who may do what the caller may."""
    if caller.rights is None:
        return lading.session(caller.user, database, is_trusted=True, origin=Origin(face=Face.HTTP, peer=caller.peer))
    return lading.session_of(caller.rights.identity, database)
