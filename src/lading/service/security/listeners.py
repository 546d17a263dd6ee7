"""What the listeners of a job may reach, and with which secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import SqlError
from lading.ids import JobId
from lading.model.load import ListenerSpec
from lading.net.addresses import plain_host
from lading.net.outgoing import Outgoing
from lading.service.security.endpoints import Endpoint, Endpoints, job_subject
from lading.service.security.vault import resolve_properties
from lading.sql.properties.listeners import PREFIX


def listener_hosts(properties: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The hosts that the listeners of a statement name."""
    urls = {name: url for name, url in properties.items() if name.startswith(PREFIX) and name.endswith(".url") and url}
    return tuple(_endpoint(name, url) for name, url in urls.items())


def hosts_of_specs(listeners: Iterable[ListenerSpec]) -> tuple[Endpoint, ...]:
    """The same of a load that was kept."""
    return tuple(_endpoint(f"{PREFIX}{each.name}.url", each.url) for each in listeners if each.url)


def _endpoint(name: str, url: str) -> Endpoint:
    """The host that `Outgoing` would connect to, and no other. Raises SqlError."""
    try:
        parts = urlsplit(url)
        host, port = plain_host(parts.hostname or ""), parts.port or ""
    except ValueError:
        host, port = "", ""
    if not host or not host.isascii():
        msg = f"{name} is not a URL of http or https"
        raise SqlError(msg, property=name, todo="Write for example https://hooks.example.com/done.")
    return Endpoint(property=name, host=host, port=f"{parts.scheme}:{port}")


def listener_route(endpoints: Endpoints, job_id: JobId, spec: ListenerSpec) -> Outgoing:
    """By which rules the host of a listener is reached now. Raises ConfigError when it may not be."""
    rules = endpoints.rules_for(job_subject(job_id), hosts_of_specs([spec]))
    return Outgoing(rules=rules, timeout_s=spec.timeout_s, resolver=endpoints.addresses)


def listener_token(spec: ListenerSpec, *, home: Path) -> str:
    """The secret that a reference names at this moment. Raises SecretError."""
    return resolve_properties({"token": spec.token}, home=home)["token"]
