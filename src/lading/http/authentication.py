"""Authentication, beside the loop that answers.

Wrong passwords are answered late. A caller waits for that in the loop and holds no thread, so that nobody else
waits with them; tokens, which are never late, do not even stand in line with passwords.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread
from starlette.requests import HTTPConnection

from lading.http.callers import Caller, Password, parse_proof
from lading.service.limits.fair_semaphore import FairTurns
from lading.service.security.authentication import Refusal
from lading.service.security.origin import Face
from lading.service.security.privileges import Identity
from lading.service.security.users import Access

if TYPE_CHECKING:  # Its libraries are an extra.
    from lading.service.security.oidc import OpenIdConnect

MOST_PASSWORDS = 16
MOST_OF_ONE_PEER = 4
"""Passwords that one address has looked at at once: to look at one is work."""
MOST_TOKENS = 16

Sleep = Callable[[float], Awaitable[None]]


class Proofs:
    """For one app."""

    def __init__(self, access: Access, sleep: Sleep, oidc: OpenIdConnect | None = None) -> None:
        self._access = access
        self._sleep = sleep
        self._oidc = oidc
        self._signed: CapacityLimiter | None = None
        self._lines: tuple[CapacityLimiter, CapacityLimiter] | None = None
        self._turns = FairTurns(MOST_PASSWORDS, MOST_OF_ONE_PEER)

    async def identify(self, connection: HTTPConnection) -> Caller:
        """Authenticate the caller, by `Authorization: Basic` or `Bearer`. Raises AuthError."""
        peer = connection.client.host if connection.client else ""
        proof = parse_proof(connection.headers.get("authorization", ""))
        if self._lines is None:
            self._lines = CapacityLimiter(MOST_PASSWORDS), CapacityLimiter(MOST_TOKENS)
        slow, quick = self._lines
        if isinstance(proof, Password):
            identity = await self._check(proof, peer, slow, quick)
        else:
            identity = await self._check_bearer(proof.text, peer, quick)
        rights = await to_thread.run_sync(self._access.rights, identity, limiter=quick)
        return Caller(user=identity.user, peer=peer, rights=rights)

    async def _check_bearer(self, text: str, peer: str, quick: CapacityLimiter) -> Identity:
        """A token of this service, or one that the identity provider signed: those are three parts with dots."""
        if self._oidc is None or text.count(".") != 2:
            return await to_thread.run_sync(
                partial(self._access.check_token, text, peer=peer, face=Face.HTTP), limiter=quick
            )
        # In a line of their own: the provider may be slow to say its keys.
        if self._signed is None:
            self._signed = CapacityLimiter(MOST_TOKENS)
        return await to_thread.run_sync(partial(self._oidc.check_bearer, text, peer=peer), limiter=self._signed)

    async def _check(self, proof: Password, peer: str, limiter: CapacityLimiter, quick: CapacityLimiter) -> Identity:
        reserve = partial(self._access.reserve, proof.user, peer, face=Face.HTTP)
        await self._wait(await to_thread.run_sync(reserve, limiter=quick))
        look = partial(self._access.prove, proof.user, proof.password, peer=peer)
        async with self._turns.turn(peer):
            proven = await to_thread.run_sync(look, limiter=limiter)
        used = bool(proof.password)
        settle = partial(self._access.settle, proof.user, peer, proven, used_password=used, face=Face.HTTP)
        settled = await to_thread.run_sync(settle, limiter=quick)
        if isinstance(settled, Refusal):
            await self._wait(settled.delay_s)
            raise settled.error
        return settled

    async def _wait(self, delay_s: float) -> None:
        if delay_s:
            await self._sleep(delay_s)
