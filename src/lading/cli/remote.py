"""A home that a running service has: commands talk to it instead of opening the home a second time."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lading import errors
from lading.errors import ConfigError, LadingError, NotSupportedError, RequestError, SqlError
from lading.service.result import Result
from lading.service.runtime.address_file import ServiceAddress, find_address

MOST_ROWS = 100_000
_CARETS = re.compile(r"( *)(\^+) ?(.*)")


class RemoteLading:
    """What commands need of a service, over HTTP on this machine."""

    def __init__(self, address: ServiceAddress) -> None:
        self._address = address
        self._database = "default"

    def sql(self, text: str) -> list[Result]:
        """Run statements; the current database is kept from one call to the next."""
        body = {"sql": text, "database": self._database, "max_rows": MOST_ROWS}
        answer = self._ask("POST", "/api/sql", body)
        self._database = answer["database"]
        return [
            Result(
                columns=tuple(result["columns"]),
                rows=tuple(tuple(row) for row in result["rows"]),
                message=result["message"],
            )
            for result in answer["results"]
        ]

    def verify(self, job: str) -> RemoteVerdict:
        """Compare a job's bills with its table."""
        body = self._ask("POST", f"/api/jobs/{quote(job, safe='')}/verify", {})
        findings = tuple(body["findings"])
        told = str(body.get("told", "clean"))
        return RemoteVerdict(
            is_clean=body["is_clean"], bills=body["bills"], rows=body["rows"], findings=findings, told=told
        )

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
        context = ssl._create_unverified_context() if self._address.http.startswith("https") else None  # noqa: S323, SLF001
        # Not through a proxy of the environment: it would be sent the token.
        direct = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with direct.open(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _told(error.read()) from error
        except OSError as error:
            msg = f"The service of this home (pid {self._address.pid}) does not answer on {self._address.http}: {error}"
            raise RequestError(
                msg, left="Nothing was changed.", todo="See its log, or end it and try again."
            ) from error


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
