"""How the other commands find a running service: a file in the home that says where it listens."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lading.service.security.private_files import read_private

FILE_NAME = "service.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddress:
    """Where a service of this home listens. The token opens everything: the file is readable by its owner alone."""

    pid: int
    http: str
    """The address of its HTTP face."""
    mysql_port: int
    token: str = field(repr=False)


def write_address(home: Path, address: ServiceAddress) -> None:
    """Say where the service is. Dies before: others find the home locked and are told the pid."""
    body = {"pid": address.pid, "http": address.http, "mysql_port": address.mysql_port, "token": address.token}
    draft = home / f"{FILE_NAME}.{address.pid}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(body, file)
    draft.replace(home / FILE_NAME)


def remove_address(home: Path) -> None:
    """The service is gone."""
    with suppress(FileNotFoundError):
        (home / FILE_NAME).unlink()


def find_address(home: Path) -> ServiceAddress | None:
    """The service that runs for a home, if its process is alive. A file that was left behind says nothing.

    Raises ConfigError for a file that somebody else could have put there: statements hold secrets, and go to the
    address that the file names.
    """
    text = read_private(home / FILE_NAME, owner_of=home)
    if text is None:
        return None
    try:
        body = json.loads(text)
        address = ServiceAddress(pid=body["pid"], http=body["http"], mysql_port=body["mysql_port"], token=body["token"])
        os.kill(address.pid, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address
