"""A home that a running service has: commands talk to it instead of opening the home a second time."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from lading import errors
from lading.errors import ConfigError, LadingError, NotSupportedError, RequestError, SqlError
from lading.service.result import Result
from lading.service.runtime.address_file import ServiceAddress, find_address

if TYPE_CHECKING:
    from lading.service.views.checkup import Check

MOST_ROWS = 100_000
_LOCAL = ("127.0.0.1", "::1", "localhost")
_CARETS = re.compile(r"( *)(\^+) ?(.*)")


class RemoteLading:
    """What commands need of a service, over HTTP: on this machine, or elsewhere when `tls` checks who it is."""

    def __init__(
        self, address: ServiceAddress, *, tls: ssl.SSLContext | None = None, timeout_s: float | None = None
    ) -> None:
        self._address = address
        self._tls = tls
        self._timeout_s = timeout_s
        self._database = "default"

    def sql(self, text: str) -> list[Result]:
        """Run statements; the current database is kept from one call to the next."""
        body = {"sql": text, "database": self._database, "max_rows": MOST_ROWS}
        if self._address.pid:  # The service of a home of this machine: paths mean the same to both.
            body["folder"] = str(Path.cwd())
        answer = self._ask("POST", "/api/sql", body)
        self._database = answer["database"]
        return [_result(result) for result in answer["results"]]

    def verify(self, job: str) -> RemoteVerdict:
        """Compare a job's bills with its table."""
        body = self._ask("POST", f"/api/jobs/{quote(job, safe='')}/verify", {})
        findings = tuple(body["findings"])
        told = str(body.get("told", "clean"))
        return RemoteVerdict(
            is_clean=body["is_clean"], bills=body["bills"], rows=body["rows"], findings=findings, told=told
        )

    @property
    def pid(self) -> int:
        """The process."""
        return self._address.pid

    def check_up(self) -> list[Check]:
        """What the service says of its home."""
        from lading.service.views.checkup import Check, CheckState

        checks = self._ask("POST", "/api/checkup", {})["checks"]
        return [Check(**{**each, "state": CheckState(each["state"])}) for each in checks]

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, as the API shows them."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            page = self._ask("GET", f"/api/jobs{f'?after={quote(after)}' if after else ''}")
            found += page["jobs"]
            after = page["next_after"] or ""
            if not after:
                return found

    def job(self, name: str) -> dict[str, Any]:
        """One job, with its positions."""
        found: dict[str, Any] = self._ask("GET", f"/api/jobs/{quote(name, safe='')}")
        return found

    def batches(self, name: str, limit: int) -> list[dict[str, Any]]:
        """The newest batches of a job, newest first."""
        found: list[dict[str, Any]] = self._ask("GET", f"/api/jobs/{quote(name, safe='')}/batches?limit={limit}")[
            "batches"
        ]
        return found

    def control(self, name: str, verb: str) -> None:
        """PAUSE or RESUME a job."""
        self._ask("POST", f"/api/jobs/{quote(name, safe='')}/{verb}", {})

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the address is that of our own service
            self._address.http + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._address.token}", "Content-Type": "application/json"},
        )
        # The certificate is for those who come from elsewhere; here the token says who the service is.
        unchecked = ssl._create_unverified_context() if self._address.http.startswith("https") else None  # noqa: S323, SLF001
        context = self._tls or unchecked
        # Not through a proxy of the environment: it would be sent the token.
        direct = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with direct.open(request, timeout=self._timeout_s) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _told(error.read()) from error
        except OSError as error:
            which = f"of this home (pid {self._address.pid}) " if self._address.pid else ""
            msg = f"The service {which}does not answer on {self._address.http}: {error}"
            raise RequestError(
                msg, left="Nothing was changed.", todo="See its log, or end it and try again."
            ) from error


def _result(answered: dict[str, Any]) -> Result:
    """An answer, with the values that it would have without a service. Half an answer is none."""
    if answered["is_cut"]:
        msg = f"The answer has more than {MOST_ROWS:,} rows, or more than 32 MB: a service does not send that much"
        todo = "Ask for less, with LIMIT; or read the table with an engine: docs/read.md."
        raise ConfigError(msg, code="QueryLimit", left="The statements were run.", todo=todo)
    columns = tuple(answered["columns"])
    read = [_READ.get(name) for name in answered.get("types") or [""] * len(columns)]
    rows = (
        tuple(value if how is None or value is None else how(value) for how, value in zip(read, row, strict=True))
        for row in answered["rows"]
    )
    return Result(columns=columns, rows=tuple(rows), message=answered["message"])


_READ: dict[str, Callable[[Any], Any]] = {
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "bytes": b64decode,
    "integer": int,
    "double": float,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteVerdict:
    """What verifying found."""

    is_clean: bool
    bills: int
    rows: int
    findings: tuple[str, ...]
    told: str


def _told(body: bytes) -> LadingError:
    """The error that the service answered with: of the same class, code, exit status and place as without a service."""
    try:
        error = json.loads(body)["error"]
        code, facts = str(error["code"]), error.get("facts") or {}
        said = {"code": code, "left": error.get("left", ""), "todo": error.get("todo", "")}
        kind = _class_of(code)
        if issubclass(kind, SqlError):
            place, hint = _place(facts)
            return kind(error["message"], place=place, hint=hint, **said)
        return kind(error["message"], **said)
    except (ValueError, KeyError, TypeError, AttributeError):
        msg = f"The service answered something that is not an error of Lading: {body[:200]!r}"
        return RequestError(msg, left="Whether anything was done is not known.", todo="Check what listens on its port.")


_FINER: dict[str, type[LadingError]] = {
    "Alter": SqlError,
    "RefusedPlan": NotSupportedError,
    "QueryLimit": ConfigError,
    "QueryTimeout": ConfigError,
    "QueryMemory": ConfigError,
    "NoHome": ConfigError,
    "NoNode": ConfigError,
}
"""Codes that are not the name of a class, where the class has an exit status of its own."""


def _class_of(code: str) -> type[LadingError]:
    found = _FINER.get(code) or getattr(errors, f"{code}Error", None)
    return found if isinstance(found, type) and issubclass(found, LadingError) else RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class _AnsweredPlace:
    """Where a statement is wrong, as the service said."""

    line: int
    column: int
    slice: str
    excerpt: tuple[str, str, str]


def _place(facts: dict[str, Any]) -> tuple[_AnsweredPlace | None, str]:
    """The place and what stands behind the carets."""
    lines = str(facts.get("excerpt") or "").split("\n")
    carets = _CARETS.fullmatch(lines[-1])
    if len(lines) != 2 or carets is None:
        return None, ""
    shown, start = lines[0][4:], len(carets[1]) - 4
    wrong = shown[start : start + len(carets[2])]
    excerpt = (shown[:start], wrong, shown[start + len(wrong) :])
    place = _AnsweredPlace(
        line=int(facts["line"]), column=int(facts["column"]), slice=str(facts["offending"]), excerpt=excerpt
    )
    return place, carets[3]


def find_remote(home: Path) -> RemoteLading | None:
    """The service that runs for a home, if there is one."""
    address = find_address(home)
    return RemoteLading(address) if address else None


def remote_at(url: str, token: str, *, ca_file: str = "", timeout_s: float | None = None) -> RemoteLading:
    """A service at a URL, for the holder of a token, which goes over TLS or to this machine."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        msg = f"{url!r} is not the URL of a service"
        raise ConfigError(msg, left="Nobody was asked.", todo="Write https://host:8030.")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        msg = f"The token would go to {parts.hostname} in the clear"
        raise ConfigError(msg, left="Nobody was asked.", todo="Use https://; lading serve has --tls-cert.")
    try:
        tls = ssl.create_default_context(cafile=ca_file or None) if parts.scheme == "https" else None
    except OSError as error:
        msg = f"The certificate {ca_file} cannot be read: {error}"
        raise ConfigError(msg, left="Nobody was asked.", todo="Name a file with certificates, in PEM.") from error
    address = ServiceAddress(pid=0, http=url.rstrip("/"), mysql_port=0, token=token)
    return RemoteLading(address, tls=tls, timeout_s=timeout_s)
