"""`lading serve` without Spark beside a real identity provider."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from lading.service.facade import Lading
from lading.service.security.users import ROOT
from lading.testing.marked import secret
from lading.testing.npm import free_port
from tests.secret_leaks.watch import WATCH
from tests.support.oidc_server import AUDIENCE, CLIENT, CLIENT_SECRET, OidcServer, serve_oidc

ROOT_PASSWORD, JACK_PASSWORD = secret("root of oidc"), secret("jack of oidc")
SERVE = [
    sys.executable,
    "-c",
    "from lading.cli.main import main; main()",
    "serve",
    "--init",
    "--mysql-port=0",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """A private key, and its JWK."""

    private: rsa.RSAPrivateKey
    jwk: dict[str, Any]

    @classmethod
    def make(cls, key_id: str) -> Signer:
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        jwk = {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private)), "kid": key_id, "use": "sig"}
        return cls(private=private, jwk={name: value for name, value in jwk.items() if name != "key_ops"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    url: str
    provider: OidcServer
    signer: Signer

    def sql(self, text: str) -> None:
        answer = httpx.post(f"{self.url}/api/sql", json={"sql": text}, auth=("root", ROOT_PASSWORD), timeout=30)
        assert answer.status_code == 200, answer.text

    def visit(self) -> httpx.Client:
        """A browser."""
        return httpx.Client(follow_redirects=False, timeout=30)

    def begin(self, browser: httpx.Client, back: str = "/", **changes: str) -> str:
        """Where the browser is sent; `changes` are made to it, as an attacker between would."""
        answer = browser.get(f"{self.url}/login/oidc", params={"next": back})
        assert answer.status_code == 303, answer.text
        place = urlsplit(answer.headers["location"])
        asked = {**dict(parse_qsl(place.query)), **changes}
        return urlunsplit(place._replace(query=urlencode(asked)))

    def log_in_there(self, browser: httpx.Client, place: str, user: str) -> str:
        """Log in at the provider and agree; says where it sends the browser back to."""
        answer = browser.get(place)
        while True:
            while answer.is_redirect:
                target = httpx.URL(place).join(answer.headers["location"])
                if target.path.endswith("/callback"):
                    return str(target)
                answer = browser.get(target)
            assert answer.status_code == 200, answer.text
            form = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)
            assert form
            assert prompt, answer.text
            action = httpx.URL(place).join(form[1])
            answer = browser.post(action, data={"prompt": prompt[1], "login": user, "password": "any"})

    def sign_in(self, browser: httpx.Client, user: str, back: str = "/") -> httpx.Response:
        """All of it; gives the answer of the last step."""
        return browser.get(self.log_in_there(browser, self.begin(browser, back), user))

    def told(self, browser: httpx.Client) -> str:
        """The login page."""
        return browser.get(f"{self.url}/login").text


@contextmanager
def run_rig(folder: Path, **more: str) -> Iterator[Rig]:
    with Lading(folder / "home") as lading:
        lading.access.set_password("root", ROOT_PASSWORD, by=ROOT)
        lading.access.create_user("jack", JACK_PASSWORD, by=ROOT)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "client.secret").write_text(f"{CLIENT_SECRET}\n")
    signer = Signer.make("one")
    with serve_oidc([signer.jwk], [f"{url}/login/oidc/callback", f"{url}/for-programs/callback"]) as provider:
        settings = {
            "ISSUER": provider.issuer,
            "CLIENT_ID": CLIENT,
            "CLIENT_SECRET_FILE": str(folder / "client.secret"),
            "BASE_URL": url,
            "NAME": "Test SSO",
            "AUDIENCES": AUDIENCE,
            "ROLES": "friends of dave=loaders, /admins=administrators",
            **more,
        }
        with subprocess.Popen(
            [*SERVE, "--home", str(folder / "home"), f"--http-port={port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **{f"LADING_OIDC_{name}": value for name, value in settings.items()}},
        ) as process:
            said = ""
            for line in process.stdout or ():
                said += line
                if line.startswith("Lading is ready"):
                    break
            (folder / "client.secret").unlink()  # It was read; what is left behind is searched for secrets.
            try:
                yield Rig(url=url, provider=provider, signer=signer)
            finally:
                process.terminate()
                said += process.stdout.read() if process.stdout else ""
                WATCH.look(said, "log of the service")
                assert process.wait(60) == 0, said
