"""Tokens of a REST catalog: a credential is exchanged for one, and again before it ends.

PyIceberg asks for a new token when the catalog refused the old one, and sends the old one along to the token server.
Some servers refuse a request that says in two ways who asks (RFC 6749, 2.3), and a token is for the catalog alone.
"""

from __future__ import annotations

import threading
from typing import Any

from pyiceberg.catalog.rest.auth import LegacyOAuth2AuthManager
from pyiceberg.exceptions import OAuthError, RESTError
from requests import PreparedRequest, RequestException, Response, Session

from lading.clock import Clock

_SPARE_S = 60.0
"""So long before its end a token is exchanged for another."""
_MOST = 200


class ClientCredentials(LegacyOAuth2AuthManager):
    """The token of one catalog. PyIceberg calls `_refresh_token` when the catalog refused it."""

    def __init__(self, session: Session, url: str, credential: str, optional: dict[str, str], clock: Clock) -> None:
        self._clock = clock
        self._until_s = float("inf")
        self._lock = threading.Lock()
        super().__init__(session, url, credential, None, optional)

    def auth_header(self) -> str:
        with self._lock:
            now = self._clock.monotonic_s()
            if now >= self._until_s - _SPARE_S:
                self._renew_in_time(is_over=now >= self._until_s)
        return f"Bearer {self._token}"

    def _renew_in_time(self, *, is_over: bool) -> None:
        try:
            self._refresh_token()
        except (RequestException, RESTError):
            if is_over:
                raise
            # The token server is away: the old token is good for a moment, and the next request asks again.

    def _fetch_access_token(self, credential: str) -> str:
        name, secret = credential.split(":", 1) if ":" in credential else ("", credential)
        form = {"grant_type": "client_credentials", "client_secret": secret, **(self._optional_oauth_params or {})}
        if name:
            form["client_id"] = name
        response = self._session.post(
            url=str(self._auth_url),
            data=form,
            headers={"Content-Type": "application/x-www-form-urlencoded", "Connection": "close"},
            auth=_nobody,
        )
        said = _said(response)
        if not response.ok:
            # 400: RFC 6749 has nearly all refusals there; 401 and 403: the client.
            kind = OAuthError if response.status_code in (400, 401, 403) else RESTError
            words = ": ".join(str(said[key])[:_MOST] for key in ("error", "error_description") if said.get(key))
            msg = f"the token server answered {response.status_code}{f', {words}' if words else ''}"
            raise kind(msg)
        if not (token := said.get("access_token")):
            msg = "the answer of the token server has no token in it"
            raise RESTError(msg)
        lasts = said.get("expires_in")
        # A server need not say it: then a token is used until the catalog refuses it.
        self._until_s = self._clock.monotonic_s() + (float(lasts) if isinstance(lasts, int | float) else float("inf"))
        return str(token)


def _said(response: Response) -> dict[str, Any]:
    try:
        said = response.json()
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _nobody(request: PreparedRequest) -> PreparedRequest:
    """Who asks is in the form."""
    return request
