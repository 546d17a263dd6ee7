"""A schema registry over HTTP, as far as Confluent's clients need one to write and read records."""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_ERRORS = {40401: "Subject not found", 40402: "Version not found", 40403: "Schema not found"}

Answer = tuple[int, dict[str, Any] | str]


@dataclass(slots=True)
class _Stored:
    schema_id: int
    body: dict[str, Any]
    """What was posted: schema, schemaType, references."""

    def shown(self, *, is_serialized: bool) -> dict[str, Any]:
        shown = {"id": self.schema_id, **self.body}
        if self.body.get("schemaType") == "PROTOBUF" and not is_serialized:
            shown["schema"] = "// a text that nobody asked for"
        return shown


@dataclass(slots=True)
class TestRegistry:
    """Starts to answer when it is entered, on a port of its own. Schemas are kept in memory."""

    __test__ = False

    user_info: str = ""
    """`name:password` that every request must bring; empty: none is asked for."""
    failing: Answer | None = None
    """What every request is answered with, instead of what it asks for."""
    serializes: bool = True
    """False: it ignores `format=serialized`, as some registries do."""
    asked: list[str] = field(default_factory=list)
    """The paths of all requests so far."""
    _schemas: list[_Stored] = field(default_factory=list)
    _subjects: dict[str, list[_Stored]] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None, "the registry was not entered"
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> TestRegistry:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry._reply(self)

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Tests are silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def add(self, subject: str, schema: str, kind: str = "AVRO", references: tuple[dict[str, Any], ...] = ()) -> int:
        """Register a schema; returns its id. The same schema keeps its id, also under another subject."""
        return self._register(subject, {"schema": schema, "schemaType": kind, "references": list(references)}).schema_id

    def _register(self, subject: str, body: dict[str, Any]) -> _Stored:
        with self._lock:
            stored = next((known for known in self._schemas if known.body == body), None)
            if stored is None:
                stored = _Stored(len(self._schemas) + 1, body)
                self._schemas.append(stored)
            versions = self._subjects.setdefault(subject, [])
            if stored not in versions:
                versions.append(stored)
            return stored

    def _reply(self, request: BaseHTTPRequestHandler) -> None:
        size = int(request.headers.get("Content-Length") or 0)
        body = json.loads(request.rfile.read(size)) if size else None
        status, answer = self._answer(request.path, request.headers.get("Authorization") or "", body)
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _answer(self, target: str, authorization: str, body: dict[str, Any] | None) -> Answer:
        self.asked.append(target)
        if self.failing:
            return self.failing
        if self.user_info and authorization != f"Basic {b64encode(self.user_info.encode()).decode()}":
            return 401, {"error_code": 401, "message": "Unauthorized"}
        path = urlsplit(target)
        is_serialized = self.serializes and parse_qs(path.query).get("format") == ["serialized"]
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path.path):
            number = int(found[1])
            if not 0 < number <= len(self._schemas):
                return _missing(40403)
            return 200, self._schemas[number - 1].shown(is_serialized=is_serialized)
        if (found := re.fullmatch(r"/subjects/([^/]+)/versions", path.path)) and body is not None:
            return 200, {"id": self._register(unquote(found[1]), _kept(body)).schema_id}
        if found := re.fullmatch(r"/subjects/([^/]+)", path.path):
            return self._lookup(unquote(found[1]), _kept(body or {}))
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+|latest)", path.path):
            return self._version(unquote(found[1]), found[2], is_serialized=is_serialized)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _lookup(self, subject: str, body: dict[str, Any]) -> Answer:
        for number, stored in enumerate(self._subjects.get(subject, ()), 1):
            if stored.body == body:
                return 200, {"subject": subject, "version": number, **stored.shown(is_serialized=True)}
        return _missing(40403 if subject in self._subjects else 40401)

    def _version(self, subject: str, version: str, *, is_serialized: bool) -> Answer:
        versions = self._subjects.get(subject)
        if not versions:
            return _missing(40401)
        number = len(versions) if version == "latest" else int(version)
        if not 0 < number <= len(versions):
            return _missing(40402)
        shown = versions[number - 1].shown(is_serialized=is_serialized)
        return 200, {"subject": subject, "version": number, **shown}


def _kept(body: dict[str, Any]) -> dict[str, Any]:
    kind, references = body.get("schemaType") or "AVRO", body.get("references") or []
    return {"schema": body.get("schema"), "schemaType": kind, "references": references}


def _missing(code: int) -> Answer:
    return 404, {"error_code": code, "message": _ERRORS[code]}
