"""What the listeners of a job may reach, and with which secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from lading.ids import JobId
from lading.model.load import ListenerSpec
from lading.net.outgoing import Outgoing
from lading.service.security.endpoints import Endpoint, Endpoints, endpoints_of, job_subject
from lading.service.security.vault import resolve_properties
from lading.sql.properties.listeners import PREFIX


def listener_hosts(properties: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The hosts that the listeners of a statement name."""
    return endpoints_of({name: value for name, value in properties.items() if name.startswith(PREFIX) and value})


def hosts_of_specs(listeners: Iterable[ListenerSpec]) -> tuple[Endpoint, ...]:
    """The same of a load that was kept."""
    return endpoints_of({f"{PREFIX}{each.name}.url": each.url for each in listeners if each.url})


def listener_route(endpoints: Endpoints, job_id: JobId, spec: ListenerSpec) -> Outgoing:
    """By which rules the host of a listener is reached now. Raises ConfigError when it may not be."""
    rules = endpoints.rules_for(job_subject(job_id), hosts_of_specs([spec]))
    return Outgoing(rules=rules, timeout_s=spec.timeout_s, resolver=endpoints.addresses)


def listener_token(spec: ListenerSpec, *, home: Path) -> str:
    """The secret that a reference names at this moment. Raises SecretError."""
    return resolve_properties({"token": spec.token}, home=home)["token"]
