"""oidc-provider, a certified OpenID provider, started for a test. Everybody can log in there, with any password."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lading.errors import ConfigError
from lading.testing.marked import secret
from lading.testing.npm import find_node, free_port, installed

VERSION = "9.13.3"
CLIENT, OTHER_CLIENT = "lading", "another"
CLIENT_SECRET = secret("oidc client")
AUDIENCE = "urn:lading:api"
_SCRIPT = """
import Provider from 'oidc-provider';
const given = JSON.parse(process.env.LADING_TEST_PROVIDER);
const provider = new Provider(given.issuer, {
  clients: given.clients,
  jwks: { keys: given.keys },
  cookies: { keys: ['only for tests'] },
  claims: { profile: ['preferred_username', 'groups'], email: ['email', 'email_verified'] },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({
      sub: id, preferred_username: id, groups: [`friends of ${id}`], email: `${id}@example.com`, email_verified: false,
    }),
  }),
  extraTokenClaims: (ctx, token) => ({
    preferred_username: token.accountId, groups: [`friends of ${token.accountId}`],
  }),
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: 'profile', audience: resource, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
provider.listen(given.port, '127.0.0.1', () => console.log('ready'));
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcServer:
    """A running provider."""

    issuer: str
    port: int


@contextmanager
def serve_oidc(keys: Sequence[dict[str, Any]], redirects: Sequence[str], port: int = 0) -> Iterator[OidcServer]:
    """Start it and stop it afterwards. `keys` are private keys as JWK; `redirects` is where it sends browsers back."""
    place = installed("oidc-provider", VERSION)
    chosen = port or free_port()
    issuer = f"http://127.0.0.1:{chosen}"
    client = {"client_secret": CLIENT_SECRET, "redirect_uris": list(redirects)}
    clients = [{"client_id": name, **client} for name in (CLIENT, OTHER_CLIENT)]
    given = json.dumps({"issuer": issuer, "port": chosen, "keys": list(keys), "clients": clients})
    with subprocess.Popen(
        [find_node(), "--input-type=module", "-e", _SCRIPT],
        cwd=place,
        env={**os.environ, "LADING_TEST_PROVIDER": given},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            for line in process.stdout or ():
                if line.strip() == "ready":
                    break
            else:
                msg = f"oidc-provider did not start (status {process.wait(10)})"
                raise ConfigError(msg, code="NoNode")
            yield OidcServer(issuer=issuer, port=chosen)
        finally:
            process.kill()
