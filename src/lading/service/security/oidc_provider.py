"""What is asked of the identity provider: where it is, its keys, and tokens for a code."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from lading.clock import Clock
from lading.errors import AuthError, ConfigError, UnavailableError
from lading.service.security.bind_policy import is_loopback
from lading.service.security.oidc_settings import OidcSettings, check_url
from lading.service.security.redaction import HIDDEN

_KEEP_S = 3600.0
_ASK_KEYS_AGAIN_S = 30.0
"""A key that is not known may be new. Somebody who makes key ids up must not have the provider asked each time."""
_TIMEOUT_S = 5.0
_LEFT = "Nobody was signed in."


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """What the provider says about itself."""

    authorization: str
    token: str
    keys: str
    user_info: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    by_id: Mapping[str, jwt.PyJWK]
    read_s: float


class Provider:
    """Used by many threads. What it said is kept for an hour."""

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._endpoints: tuple[Endpoints, float] | None = None
        self._keys: _Keys | None = None
        self._tried_s = float("-inf")
        self._verify = ssl.create_default_context(cafile=str(settings.ca_file) if settings.ca_file else None)
        # A proxy of the environment is for what is elsewhere.
        self._trust_env = not is_loopback(urlsplit(settings.issuer).hostname or "")

    def endpoints(self) -> Endpoints:
        """Where to go. Raises UnavailableError."""
        with self._lock:
            return self._find_endpoints()

    def find_key(self, key_id: str) -> jwt.PyJWK | None:
        """A key by its id; the only key when the id is empty. Raises UnavailableError when no key was ever read."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            if self._keys is None or now_s - self._keys.read_s > _KEEP_S:
                self._read_keys(now_s)
            if _choose(self._keys, key_id) is None:
                self._read_keys(now_s)
            if self._keys is None:
                why = "its keys cannot be read"
                raise self._broken(why)
            return _choose(self._keys, key_id)

    def redeem(self, code: str, verifier: str) -> Mapping[str, Any]:
        """Tokens for a code. Raises AuthError when the provider refuses it."""
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.redirect_uri,
            "code_verifier": verifier,
        }
        auth = None
        if settings.client_secret:
            auth = httpx.BasicAuth(_form_quoted(settings.client_id), _form_quoted(settings.client_secret))
        else:
            form["client_id"] = settings.client_id
        answer = self._send("POST", self.endpoints().token, data=form, auth=auth)
        if answer.status_code in (400, 401):
            msg = "The identity provider refused the sign-in"
            raise AuthError(msg, left=_LEFT, todo="Sign in again; if it stays so, check client id and secret.")
        tokens = self._json(answer, "its answer to the code")
        HIDDEN.learn(str(tokens[name]) for name in ("access_token", "id_token", "refresh_token") if name in tokens)
        return tokens

    def user_info(self, access_token: str) -> Mapping[str, Any]:
        """More about somebody who has just signed in; empty when the provider has no place to ask."""
        url = self.endpoints().user_info
        if not url or not access_token:
            return {}
        answer = self._send("GET", url, headers={"authorization": f"Bearer {access_token}"})
        return self._json(answer, "what it says about the user")

    def _find_endpoints(self) -> Endpoints:
        now_s = self._clock.monotonic_s()
        if self._endpoints is not None and now_s - self._endpoints[1] <= _KEEP_S:
            return self._endpoints[0]
        issuer = self._settings.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        said = self._json(self._send("GET", url), "its configuration")
        if said.get("issuer") != issuer:
            why = f"it says that it is {said.get('issuer')!r}"
            raise self._broken(why)
        found = {name: str(said.get(name) or "") for name in (*_NEEDED, "userinfo_endpoint")}
        for name, place in found.items():
            if place or name in _NEEDED:
                try:
                    check_url(place.partition("?")[0], name)
                except ConfigError as error:
                    raise self._broken(error.what) from error
        endpoints = Endpoints(
            authorization=found["authorization_endpoint"],
            token=found["token_endpoint"],
            keys=found["jwks_uri"],
            user_info=found["userinfo_endpoint"],
        )
        self._endpoints = (endpoints, now_s)
        return endpoints

    def _read_keys(self, now_s: float) -> None:
        """What cannot be read leaves the keys that are known."""
        if now_s - self._tried_s < _ASK_KEYS_AGAIN_S:
            return
        self._tried_s = now_s
        try:
            said = self._json(self._send("GET", self._find_endpoints().keys), "its keys")
            found = jwt.PyJWKSet.from_dict(dict(said)).keys
        except (UnavailableError, jwt.PyJWTError) as error:
            if self._keys is None:
                raise error if isinstance(error, UnavailableError) else self._broken(str(error)) from error
            return
        usable = [key for key in found if key.key_type in ("RSA", "EC") and key.public_key_use in (None, "sig")]
        self._keys = _Keys(by_id={key.key_id or "": key for key in usable}, read_s=now_s)

    def _send(self, method: str, url: str, **more: Any) -> httpx.Response:
        try:
            with httpx.Client(verify=self._verify, timeout=_TIMEOUT_S, trust_env=self._trust_env) as client:
                return client.request(method, url, **more)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = f"{type(error).__name__} at {url}"
            raise self._broken(why) from error

    def _json(self, answer: httpx.Response, what: str) -> Mapping[str, Any]:
        try:
            body = answer.json() if answer.status_code == httpx.codes.OK else None
        except ValueError:
            body = None
        if not isinstance(body, dict):
            why = f"{what} came with status {answer.status_code} and is not what it should be"
            raise self._broken(why)
        return body

    def _broken(self, why: str) -> UnavailableError:
        msg = f"The identity provider {self._settings.issuer} cannot be used: {why}"
        return UnavailableError(msg, left=_LEFT, todo="Try again; if it stays so, check LADING_OIDC_ISSUER.")


_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


def _choose(keys: _Keys | None, key_id: str) -> jwt.PyJWK | None:
    if keys is None:
        return None
    if not key_id and len(keys.by_id) == 1:
        return next(iter(keys.by_id.values()))
    return keys.by_id.get(key_id) if key_id else None


def _form_quoted(text: str) -> str:
    """As RFC 6749 wants client id and secret before they are put into a Basic header."""
    from urllib.parse import quote_plus

    return quote_plus(text)
