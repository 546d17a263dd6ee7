"""Sign-in with OpenID Connect: the authorization code flow with PKCE for browsers, access tokens for programs.

The provider says who somebody is; what they may do is decided here, by the grants of the user of that name. Root never
comes from the provider, and neither does a user who has a password: a name that somebody chose at the provider must
not open the account of another person.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from lading.clock import Clock
from lading.errors import AuthError, SqlError
from lading.service.security.oidc_provider import Provider
from lading.service.security.oidc_settings import OidcSettings
from lading.service.security.oidc_tokens import check_signed, refused
from lading.service.security.origin import Face, Origin
from lading.service.security.privileges import ROOT, ROOT_NAME, Identity
from lading.service.security.redaction import HIDDEN
from lading.service.security.users import Access
from lading.sql.syntax.names import check_user_name

PENDING_S = 600.0
MOST_PENDING = 10_000
_LEFT = "Nobody was signed in."
_BY = "identity provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A browser that was sent to the provider."""

    browser: str
    back: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    ends_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A browser that came back, and is somebody."""

    identity: Identity
    back: str


class OpenIdConnect:
    """Used by many threads. Browsers under way are kept in memory: after a restart they begin again."""

    def __init__(self, settings: OidcSettings, access: Access, clock: Clock) -> None:
        HIDDEN.learn([settings.client_secret])
        self.settings = settings
        self._access = access
        self._clock = clock
        self._provider = Provider(settings, clock)
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}

    def begin(self, browser: str, back: str) -> str:
        """Where to send a browser, which is known by the id in its cookie. Raises UnavailableError."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        place = self._provider.endpoints().authorization
        ends_s = self._clock.monotonic_s() + PENDING_S
        with self._lock:
            self._sweep()
            self._pending[state] = _Pending(browser=browser, back=back, nonce=nonce, verifier=verifier, ends_s=ends_s)
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.settings.redirect_uri,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"

    def finish(self, browser: str, answer: Mapping[str, str], *, peer: str = "") -> SignedIn:
        """Who came back from the provider. Raises AuthError or UnavailableError.

        A state counts once, and only in the browser that was sent away with it.
        """
        with self._lock:
            pending = self._pending.pop(answer.get("state", ""), None)
        origin = Origin(face=Face.CONSOLE, peer=peer)
        identity = self._access.record_proof(origin, _BY, lambda: self._proven(browser, answer, pending))
        return SignedIn(identity=identity, back=pending.back if pending is not None else "/")

    def _proven(self, browser: str, answer: Mapping[str, str], pending: _Pending | None) -> Identity:
        if pending is None or pending.ends_s < self._clock.monotonic_s() or not _same(pending.browser, browser):
            msg = "This sign-in did not begin in this browser, was finished already, or took too long"
            raise AuthError(msg, left=_LEFT, todo="Begin again.")
        if answer.get("iss", self.settings.issuer) != self.settings.issuer or not answer.get("code"):
            msg = "The identity provider did not sign you in"
            raise AuthError(msg, left=_LEFT, todo="Sign in again, or ask those who run the provider.")
        tokens = self._provider.redeem(answer["code"], pending.verifier)
        claims = self._checked(str(tokens.get("id_token", "")), (self.settings.client_id,))
        if not _same(str(claims.get("nonce", "")), pending.nonce):
            what = "it was made for another sign-in"
            raise refused(what)
        if claims.get("azp", self.settings.client_id) != self.settings.client_id:
            what = "it was made for another client"
            raise refused(what)
        claims = self._completed(claims, str(tokens.get("access_token", "")))
        return self._identity(claims, may_create=self.settings.create_users)

    def check_bearer(self, text: str, *, peer: str = "") -> Identity:
        """Whose access token this is. Raises AuthError or UnavailableError."""
        return self._access.record_proof(Origin(face=Face.HTTP, peer=peer), _BY, lambda: self._by_token(text))

    def _by_token(self, text: str) -> Identity:
        if not self.settings.audiences:
            what = "this service accepts no tokens of the identity provider (LADING_OIDC_AUDIENCES is not set)"
            raise refused(what)
        return self._identity(self._checked(text, self.settings.audiences), may_create=False)

    def _checked(self, text: str, audiences: tuple[str, ...]) -> dict[str, Any]:
        now = self._clock.now()
        return check_signed(text, self._provider.find_key, issuer=self.settings.issuer, audiences=audiences, now=now)

    def _completed(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """Some providers keep the name of a user out of the token, and tell it only when they are asked."""
        wanted = {self.settings.user_claim} | ({self.settings.groups_claim} if self.settings.roles else set())
        if wanted <= claims.keys():
            return claims
        more = self._provider.user_info(access_token)
        return {**more, **claims} if more.get("sub") == claims["sub"] else claims

    def _identity(self, claims: Mapping[str, Any], *, may_create: bool) -> Identity:
        name = self._user_name(claims)
        identity = self._access.bind(Identity(user=name))
        if identity.created_at is None and may_create:
            self._access.create_user(name, by=ROOT, if_not_exists=True)
            identity = self._access.bind(Identity(user=name))
        if identity.created_at is None:
            msg = f"'{name}' of the identity provider is not a user of this service"
            raise AuthError(msg, left=_LEFT, todo=f"Somebody with ADMIN on everything can run: CREATE USER '{name}'.")
        if self._access.has_password(name):
            msg = f"User '{name}' has a password here, and cannot sign in through the identity provider"
            raise AuthError(msg, left=_LEFT, todo="Log in with the password.")
        return replace(identity, roles=roles_of(claims, self.settings))

    def _user_name(self, claims: Mapping[str, Any]) -> str:
        claim = self.settings.user_claim
        value = claims.get(claim)
        if not isinstance(value, str) or not value:
            what = f"it lacks the claim {claim}, which names the user"
            raise refused(what)
        if claim == "email" and claims.get("email_verified") is not True:
            what = "the e-mail address was not verified by the provider"
            raise refused(what)
        name = self.settings.user_prefix + value
        try:
            check_user_name(name)
        except SqlError as error:
            what = f"its {claim} cannot be the name of a user"
            raise refused(what) from error
        if name.lower() == ROOT_NAME:
            msg = f"User '{ROOT_NAME}' never signs in through the identity provider"
            raise AuthError(msg, left=_LEFT, todo="Log in with the password.")
        return name

    def _sweep(self) -> None:
        now_s = self._clock.monotonic_s()
        for state in [state for state, kept in self._pending.items() if kept.ends_s < now_s]:
            del self._pending[state]
        while len(self._pending) >= MOST_PENDING:
            del self._pending[next(iter(self._pending))]


def roles_of(claims: Mapping[str, Any], settings: OidcSettings) -> tuple[str, ...]:
    """The roles that the groups of somebody give them. Roles that do not exist here give nothing."""
    said = claims.get(settings.groups_claim)
    listed = said if isinstance(said, list) else [said]
    groups = {each for each in listed if isinstance(each, str)}
    return tuple(dict.fromkeys(role for group, role in settings.roles if group in groups))


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
