"""From the variables LADING_OPENLINEAGE_… to where events go."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lading.errors import ConfigError, UnavailableError
from lading.net.addresses import EVERY_PRIVATE
from lading.net.outgoing import Outgoing
from lading.service.lineage.run_events import Json
from lading.service.notify.config import check_url
from lading.service.notify.receivers import check_taken
from lading.service.security.redaction import HIDDEN
from lading.settings_around import LineageVariables
from lading.settings_file import read_secret_file

_PREFIX = "LADING_OPENLINEAGE_"
_LEFT = "Nothing was started."
TIMEOUT_S = 10.0


class Sink(Protocol):
    """Where events go. Raises UnavailableError."""

    def send(self, event: Json) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSink:
    """A POST for each event."""

    url: str
    api_key: str = field(default="", repr=False)
    outgoing: Outgoing

    def send(self, event: Json) -> None:
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        check_taken(self.outgoing.post(self.url, json.dumps(event).encode(), headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSink:
    """A line for each event, added in one write."""

    path: Path

    def send(self, event: Json) -> None:
        try:
            with self.path.open("ab", buffering=0) as file:
                file.write(json.dumps(event).encode() + b"\n")
        except OSError as error:
            msg = f"{self.path} cannot be written: {error}"
            raise UnavailableError(msg, left="The event is sent again.", todo=f"Check {_PREFIX}FILE.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSettings:
    """Where events go, and what they call this installation."""

    sink: Sink
    namespace: str


def load_lineage_settings(given: LineageVariables) -> LineageSettings | None:
    """None when nobody is to be told. Raises ConfigError."""
    if given.openlineage_url and given.openlineage_file:
        msg = f"{_PREFIX}URL and {_PREFIX}FILE are both set"
        raise ConfigError(msg, left=_LEFT, todo="Set one of them.")
    if given.openlineage_file:
        return LineageSettings(sink=FileSink(path=given.openlineage_file), namespace=given.openlineage_namespace)
    if not given.openlineage_url:
        return None
    key = given.openlineage_api_key
    if given.openlineage_api_key_file is not None:
        key = read_secret_file(f"{_PREFIX}API_KEY_FILE", given.openlineage_api_key_file)
    HIDDEN.learn([key])
    url = check_url("URL", given.openlineage_url, _PREFIX)
    # The owner of the service names the host: it may be in its own network, but not where clouds keep credentials.
    sink = HttpSink(url=url, api_key=key, outgoing=Outgoing(rules=EVERY_PRIVATE, timeout_s=TIMEOUT_S))
    return LineageSettings(sink=sink, namespace=given.openlineage_namespace)
