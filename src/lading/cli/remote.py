"""A home that a running service has: commands talk to it instead of opening the home a second time."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lading.errors import LadingError, RequestError
from lading.service.result import Result
from lading.service.runtime.address_file import ServiceAddress, find_address

MOST_ROWS = 100_000


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

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the address is that of our own service
            self._address.http + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._address.token}", "Content-Type": "application/json"},
        )
        # The certificate is for those who come from elsewhere; here the token says who the service is.
        context = ssl._create_unverified_context() if self._address.http.startswith("https") else None  # noqa: S323, SLF001
        try:
            with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310
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
    """The error that the service answered with."""
    try:
        error = json.loads(body)["error"]
        return RequestError(
            error["message"], code=str(error["code"]), left=error.get("left", ""), todo=error.get("todo", "")
        )
    except (ValueError, KeyError, TypeError):
        msg = f"The service answered something that is not an error of Lading: {body[:200]!r}"
        return RequestError(msg, left="Whether anything was done is not known.", todo="Check what listens on its port.")


def find_remote(home: Path) -> RemoteLading | None:
    """The service that runs for a home, if there is one."""
    address = find_address(home)
    return RemoteLading(address) if address else None
