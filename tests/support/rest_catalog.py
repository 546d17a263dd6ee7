"""Iceberg's own REST catalog, from its test fixtures, and a front that loses answers, lends keys, asks for tokens."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from lading.clock import SystemClock
from lading.testing.marked import secret
from tests.support.maven import find_jars

VERSION = "1.10.0"
ARTIFACTS = (
    f"org.apache.iceberg:iceberg-open-api:{VERSION}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{VERSION}",
    f"org.apache.iceberg:iceberg-core:{VERSION}:tests",
    f"org.apache.iceberg:iceberg-aws:{VERSION}",
    f"org.apache.iceberg:iceberg-aws-bundle:{VERSION}",
    "org.eclipse.jetty:jetty-servlet:11.0.26",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.postgresql:postgresql:42.7.7",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
    "org.slf4j:slf4j-simple:2.0.17",
)
_START_S = 60.0
TOKENS = "/v1/oauth/tokens"
"""Where a catalog gives tokens itself; a token server may be another front."""


class RestServer:
    """A server that can be killed and started again; its tables stay."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        """Raises JarsMissingError. `settings`: of the catalog behind it, in Iceberg's words."""
        self._jars = find_jars(f"iceberg-rest-{VERSION}", ARTIFACTS)
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        self.port = free_port()
        self._settings = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{folder / 'rest.db'}",
            "warehouse": f"file://{self.warehouse}",
            "rest.port": str(self.port),
            **(settings or {}),
        }
        self._log = folder / "rest.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        variables = {_variable(name): value for name, value in self._settings.items()}
        command = ["java", "-Xmx256m", "-cp", f"{self._jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env={**os.environ, **variables}, stdout=log, stderr=log)
        clock = SystemClock()
        until = clock.monotonic_s() + _START_S
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic_s() > until:
                msg = f"The REST catalog does not start: {self._log.read_text()[-1500:]}"
                raise RuntimeError(msg)
            clock.sleep(0.1)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.request("GET", "/v1/config")
            return connection.getresponse().status == 200
        return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def serve_rest(folder: Path, settings: dict[str, str] | None = None) -> Iterator[RestServer]:
    server = RestServer(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.kill()


class Front(ThreadingHTTPServer):
    """Passes requests on to a catalog."""

    daemon_threads = True

    def __init__(self, behind: RestServer) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.behind = behind
        self.token = ""
        """Who does not send it is refused. Empty: nobody is asked."""
        self.credential = ""
        """`id:secret`: who sends it to TOKENS gets a token for the catalog. Empty: nobody is given one."""
        self.scope = "catalog"
        self.tokens_last_s: int | None = None
        """What is said of a new token; None: nothing, as is allowed."""
        self.login_status = 0
        """What the token endpoint answers instead."""
        self.valid: set[str] = set()
        """Tokens that are good at the moment."""
        self.issued = 0
        self.logins: list[str] = []
        """What came with each request for a token as `Authorization`."""
        self.lose_commits = 0
        """So many answers to commits are lost, after the commit has landed."""
        self.config: dict[str, str] = {}
        """What is said of the storage of each table."""
        self.lends: Callable[[], dict[str, str]] = lambda: self.config
        """The same, asked for with each look at a table."""
        self.overrides: dict[str, str] = {}
        """What the server says of itself."""
        self.redirect = ""
        self.lingers_s = 0.2
        """It closes a connection so long after its last answer, and does not say so in the answer, as is allowed."""
        self.delegations: list[str] = []
        """What was asked for with each look at a table: `vended-credentials`, or nothing."""
        self.refused = 0
        """How often somebody without a good token was sent away."""
        self.end_tokens_at_commit = False
        """All tokens end once, as a commit comes."""
        self.commits = 0
        self.lost = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def lets_in(self, authorization: str) -> bool:
        """Whether somebody with this header may ask the catalog."""
        known = {self.token} if self.token else self.valid
        return not (self.token or self.credential) or authorization.removeprefix("Bearer ") in known

    def issue(self, form: dict[str, str]) -> tuple[int, dict[str, object]]:
        """Client credentials, as RFC 6749 has them: status and answer."""
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if not self.credential or f"{form.get('client_id')}:{form.get('client_secret')}" != self.credential:
            return 401, {"error": "invalid_client", "error_description": "no such client"}
        if form.get("scope") != self.scope:
            return 400, {"error": "invalid_scope", "error_description": "not for this client"}
        self.issued += 1
        token = secret(f"token{self.issued}")
        self.valid.add(token)
        lasts: dict[str, object] = {} if self.tokens_last_s is None else {"expires_in": self.tokens_last_s}
        return 200, {"access_token": token, "token_type": "bearer", **lasts}


class _Passing(BaseHTTPRequestHandler):
    server: Front
    protocol_version = "HTTP/1.1"

    def _pass(self) -> None:
        front = self.server
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if front.redirect:
            self._say(307, b"{}", {"Location": front.redirect + self.path})
            return
        if self.path.startswith(TOKENS) and self.command == "POST":
            front.logins.append(self.headers.get("authorization", ""))
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            status, said = (front.login_status, {}) if front.login_status else front.issue(form)
            self._say(status, json.dumps(said).encode())
            return
        is_commit = self.command == "POST" and "/tables/" in self.path and not self.path.endswith("/metrics")
        if is_commit and front.end_tokens_at_commit:
            front.end_tokens_at_commit = False
            front.valid.clear()
        if not front.lets_in(self.headers.get("authorization", "")):
            front.refused += 1
            error = {"message": "wrong token", "type": "NotAuthorizedException", "code": 401}
            self._say(401, json.dumps({"error": error}).encode())
            return
        connection = http.client.HTTPConnection("127.0.0.1", front.behind.port, timeout=60)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(self.command, self.path, body=body or None, headers=headers)
            answer = connection.getresponse()
            status, content = answer.status, answer.read()
        except OSError:
            self._say(502, b'{"error": {"message": "away", "type": "Gateway", "code": 502}}')
            return
        finally:
            connection.close()
        front.commits += is_commit and status == 200
        if is_commit and status == 200 and front.lose_commits:
            front.lose_commits -= 1
            front.lost += 1
            self.close_connection = True
            self.connection.close()
            return
        # Counted before the answer: who has the answer may look at once.
        if self.command == "GET" and "/tables/" in self.path:
            front.delegations.append(self.headers.get("X-Iceberg-Access-Delegation", ""))
        self._say(status, self._changed(content))
        if self.close_connection:
            SystemClock().sleep(front.lingers_s)

    def _changed(self, content: bytes) -> bytes:
        front = self.server
        if (
            self.command == "GET"
            and "/tables/" in self.path
            and b"metadata-location" in content
            and (said := front.lends())
        ):
            return json.dumps({**json.loads(content), "config": said}).encode()
        if self.path.startswith("/v1/config") and front.overrides:
            return json.dumps({**json.loads(content), "overrides": front.overrides}).encode()
        return content

    def _say(self, status: int, content: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = _pass

    def log_message(self, *_: object) -> None:
        pass


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _variable(name: str) -> str:
    """As the fixtures read their settings: _ for a dot, __ for a hyphen."""
    return "CATALOG_" + name.upper().replace("-", "__").replace(".", "_")
