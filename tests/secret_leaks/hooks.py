"""Shows the watch everything that Lading says while the tests run: logs, answers, errors, output of commands."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any
from unittest.mock import patch

import httpx
from pymysql.connections import Connection
from starlette.testclient import TestClient

from lading.service.security.users import Access
from lading.service.session import Session
from lading.service.telemetry.logs import JsonLines, TextLines
from lading.sql.syntax.spans import is_hidden
from tests.secret_leaks.watch import Watch


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Until the block ends, nothing is said that the watch does not hear."""
    wrappers: list[tuple[type, str, Callable[[Watch, Callable[..., Any]], Callable[..., Any]]]] = [
        (logging.Logger, "callHandlers", _logged),
        (Session, "execute", _executed),
        (Session, "sql", _told),
        (Access, "create_user", _password),
        (Access, "set_password", _password),
        (httpx.Client, "send", _answered),
        (TestClient, "send", _answered),  # Its httpx may be another one.
        (Connection, "_read_bytes", _read),
        (subprocess.Popen, "communicate", _printed),
    ]
    with _patches([(owner, name, wrap(watch, getattr(owner, name))) for owner, name, wrap in wrappers]):
        yield


@contextmanager
def _patches(changes: list[tuple[type, str, Callable[..., Any]]]) -> Iterator[None]:
    started = [patch.object(owner, name, new) for owner, name, new in changes]
    for each in started:
        each.start()
    try:
        yield
    finally:
        for each in reversed(started):
            each.stop()


def secrets_in(statement: object) -> Iterator[tuple[str, str]]:
    """Names and values of the secrets that are written out in a statement, wherever it has properties."""
    if isinstance(statement, Mapping):
        for name, value in statement.items():
            if isinstance(value, str) and is_hidden(str(name), value):
                yield str(name), value
    elif is_dataclass(statement):
        for field in fields(statement):
            yield from secrets_in(getattr(statement, field.name))
    elif isinstance(statement, tuple):
        for part in statement:
            yield from secrets_in(part)


def _logged(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    """Lines as a service writes them."""
    lines = TextLines(), JsonLines()

    @wraps(call)
    def heard(self: logging.Logger, record: logging.LogRecord) -> None:
        for form in lines:
            watch.look(form.format(record), f"log {record.name}")
        call(self, record)

    return heard


def _executed(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def heard(self: Session, statement: object) -> object:
        for name, value in secrets_in(statement):
            watch.entered(value, f"property {name}")
        return _listened(watch, f"answer to {type(statement).__name__}", lambda: call(self, statement))

    return heard


def _told(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    """Also for texts that cannot be read, which come to no statement."""

    @wraps(call)
    def heard(self: Session, text: str) -> object:
        return _listened(watch, "answer to a text", lambda: call(self, text))

    return heard


def _listened(watch: Watch, where: str, call: Callable[[], object]) -> object:
    try:
        answer = call()
    except Exception as error:
        watch.look(f"{error!r} {error} {getattr(error, 'fields', '')}", f"error, {where}")
        raise
    watch.look(repr(answer), where)
    return answer


def _password(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def heard(self: Access, name: str, password: str | None = None, **words: Any) -> object:
        answer = call(self, name, password, **words)
        if password is not None:
            watch.entered(password, f"password of {name}")
        return answer

    return heard


def _answered(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def heard(self: Any, request: Any, **words: Any) -> Any:
        answer = call(self, request, **words)
        where = f"{request.method} {request.url.path}"
        watch.look(str(answer.headers.multi_items()), f"headers of {where}")
        if answer.is_stream_consumed or not words.get("stream"):
            watch.look(answer.content, f"answer to {where}")
        return answer

    return heard


def _read(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def heard(self: Connection[Any], count: int) -> bytes:
        said: bytes = call(self, count)
        watch.look(said, "packet of MySQL")
        return said

    return heard


def _printed(watch: Watch, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def heard(self: subprocess.Popen[Any], *words: Any, **more: Any) -> tuple[Any, Any]:
        said: tuple[Any, Any] = call(self, *words, **more)
        for name, text in zip(("output", "errors"), said, strict=True):
            if text:
                watch.look(text, f"{name} of {str(self.args)[:200]}")
        return said

    return heard
