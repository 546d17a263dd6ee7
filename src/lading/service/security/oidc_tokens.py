"""Whether a signed token is from the provider, for this service, and valid now."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import jwt

from lading.errors import AuthError

ALGORITHMS = ("RS256", "ES256", "PS256")
"""Signatures that only the provider can make. Not `none`, and none that is made with a secret."""
SKEW_S = 60.0
_LEFT = "Nothing was changed."

FindKey = Callable[[str], "jwt.PyJWK | None"]


def check_signed(
    text: str, find_key: FindKey, *, issuer: str, audiences: Sequence[str], now: datetime
) -> dict[str, Any]:
    """The claims of a token. Raises AuthError, which says what is wrong and never repeats the token."""
    try:
        head = jwt.get_unverified_header(text)
    except (jwt.PyJWTError, ValueError) as error:
        what = "it is not a signed token"
        raise refused(what) from error
    algorithm, key_id = head.get("alg"), head.get("kid", "")
    if algorithm not in ALGORITHMS:
        what = f"its signature is made with {str(algorithm)[:20]!r}, and only {', '.join(ALGORITHMS)} are accepted"
        raise refused(what)
    key = find_key(key_id if isinstance(key_id, str) else "")
    if key is None:
        what = "the identity provider has no such key"
        raise refused(what)
    if (key.key_type, algorithm) not in _FITTING:
        what = "its key is for another kind of signature"
        raise refused(what)
    try:
        claims: dict[str, Any] = jwt.decode(
            text,
            key.key,
            algorithms=[algorithm],
            issuer=issuer,
            audience=list(audiences),
            options={
                "require": ["exp", "iss", "aud", "sub"],
                # Times are compared with the clock of the service, below.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        what = _REASONS.get(type(error), "its signature is wrong")
        raise refused(what) from error
    _check_times(claims, now.timestamp())
    if not isinstance(claims["sub"], str) or not claims["sub"]:
        what = "it says nothing about the user"
        raise refused(what)
    return claims


_FITTING = frozenset((("RSA", "RS256"), ("RSA", "PS256"), ("EC", "ES256")))
_REASONS: Mapping[type[Exception], str] = {
    jwt.InvalidIssuerError: "it is from another provider",
    jwt.InvalidAudienceError: "it was made for somebody else",
    jwt.MissingRequiredClaimError: "it lacks exp, iss, aud or sub",
}


def _check_times(claims: Mapping[str, Any], now_s: float) -> None:
    if _seconds(claims, "exp") + SKEW_S <= now_s:
        what = "it has expired"
        raise refused(what)
    for name in ("nbf", "iat"):
        if name in claims and _seconds(claims, name) - SKEW_S > now_s:
            what = "it is not valid yet"
            raise refused(what)


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        what = f"its {name} is not a time"
        raise refused(what)
    return float(value)


def refused(why: str) -> AuthError:
    """The error for a token that is not accepted."""
    return AuthError(f"Access denied: the token is not valid: {why}", left=_LEFT, todo="Sign in again for a new one.")
