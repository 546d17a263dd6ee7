"""One shape for every error that HTTP answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lading.errors import AuthError, DeniedError, LadingError, RequestError, SqlError
from lading.http.json_values import plain
from lading.http.sessions import record_denied
from lading.service.security.redaction import redact
from lading.sql.syntax.spans import is_secret


class Problem(BaseModel):
    """What happened, what state it left, what to do."""

    code: str
    """A stable name for machines; see errors.md."""
    message: str
    left: str
    todo: str
    facts: dict[str, Any]


class ErrorBody(BaseModel):
    """Every answer that is not a success."""

    error: Problem


STATUSES = {
    400: "The request or the statement is wrong",
    401: "Authentication failed",
    403: "Not allowed",
    404: "Not there, or not to be seen by this user",
    405: "The method is not allowed on this path",
    408: "The request did not come in time",
    409: "The state of the job or table does not allow it",
    413: "The body or the statement is too large",
    415: "The body is not JSON",
    421: "The request is for a host of another name",
    422: "The body or a parameter is not what the path takes",
    500: "Internal error",
    502: "The source did not keep its promises",
    503: "The store or the storage does not answer, or there are too many connections",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": text} for status, text in STATUSES.items()
}
"""For OpenAPI: the same shape for all of them."""


def describe(error: LadingError) -> dict[str, Any]:
    """An error in the one shape. Nothing of it shows a secret."""
    facts = {name: "******" if is_secret(name) else plain(value) for name, value in error.facts.items()}
    if isinstance(error, SqlError) and error.place is not None:
        facts |= {"line": error.line, "column": error.column, "offending": error.offending, "excerpt": error.pretty()}
    return {
        "error": {
            "code": error.code,
            "message": redact(error.what),
            "left": redact(error.left),
            "todo": redact(error.todo),
            "facts": facts,
        }
    }


def respond(error: LadingError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that failed."""
    more = dict(headers or {})
    if isinstance(error, AuthError):
        more["www-authenticate"] = 'Basic realm="lading", Bearer realm="lading"'
    # Texts may hold anything that a client sent; ASCII escapes carry also what is no Unicode.
    content = json.dumps(describe(error), ensure_ascii=True)
    return Response(content, status_code=error.face.http_status, headers=more, media_type="application/json")


def add_handlers(app: FastAPI) -> None:
    """Turn everything that a path raises into the one shape."""
    app.add_exception_handler(LadingError, _lading_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _broken)


async def _lading_error(request: Request, error: Exception) -> Response:
    if isinstance(error, DeniedError) and request.method in ("GET", "HEAD"):
        await to_thread.run_sync(record_denied, request, error)  # Other methods run statements, which are recorded.
    return respond(error) if isinstance(error, LadingError) else respond(_internal())


async def _invalid(_request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    broken = next((item for item in found if item["type"] == "json_invalid"), None)
    if broken is not None:
        return respond(not_json(f"{broken['ctx']['error']} at letter {broken['loc'][-1]}"))
    fields = [{"where": ".".join(str(part) for part in item["loc"]), "what": str(item["msg"])} for item in found]
    msg = "; ".join(f"{field['where']}: {field['what']}" for field in fields[:5]) or "The request is wrong"
    return respond(
        RequestError(
            msg,
            code="InvalidRequest",
            left="Nothing was changed.",
            todo="See /api/openapi.json for what the path takes.",
            fields=fields,
        )
    )


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    match status:
        case 404:
            return respond(no_such_path(request.url.path))
        case 405:
            return respond(wrong_method(request.method, request.url.path), headers)
        case 400:
            return respond(not_json("it could not be decoded"))
    return respond(_internal(), headers)


async def _broken(_request: Request, _error: Exception) -> Response:
    return respond(_internal())


def not_json(why: str) -> RequestError:
    """The body is not JSON."""
    msg = f"The body is not JSON: {why}"
    return RequestError(msg, code="NotJson", left="Nothing was changed.", todo="Send one JSON object in UTF-8.")


def no_such_path(path: str) -> RequestError:
    msg = f"There is nothing at {path}"
    return RequestError(
        msg, code="NoSuchPath", left="Nothing was changed.", todo="See /api/openapi.json for all paths."
    )


def wrong_method(method: str, path: str) -> RequestError:
    """The method is not allowed on this path."""
    msg = f"Method {method} is not allowed on {path}"
    return RequestError(msg, code="Method", left="Nothing was changed.", todo="See /api/openapi.json for its methods.")


def _internal() -> RequestError:
    msg = "Internal error; see the service log"
    return RequestError(
        msg, code="Internal", left="Tables are changed only by whole commits.", todo="Look into the log, and report it."
    )
