"""Which hosts a statement may make the service connect to: one place for every source, table and face.

Link-local addresses and those where clouds keep credentials are refused for everybody. Private ones are for ADMIN on
everything, or for all where the installation says so. Names are resolved and each of their addresses is checked: when
a statement names them, and again whenever a job or table is opened. What was allowed to somebody with ADMIN stays
allowed to the job or table that they made: its hosts are kept in the store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lading.clock import Clock
from lading.errors import ConfigError, DeniedError, SqlError
from lading.net.addresses import AddressKind, AddressRules, literal_address_or_none, parse_networks, plain_host
from lading.net.resolve import Names, Resolver

SETTING = "LADING_ALLOW_PRIVATE_ENDPOINTS"
_ADDRESS = re.compile(r"(^|[._])(endpoint|url|uri|urls|servers|proxy)$|broker_list$|broker\.list$")
"""Names of properties that say whom to connect to. `uri` alone names files."""
_FORM = re.compile(
    r"""(?:(?P<scheme>[A-Za-z][A-Za-z0-9_+.\-]*)://)?
        (?:[^\s/@\\?\#]+@)?
        (?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/@\\?\#:\[\]]+)
        (?::(?P<port>\d{1,5}))?
        (?:/[^\s\\@]*)?""",
    re.VERBOSE,
)
_NETWORK = "an address in the private network of the service"
_CLOUD = "a link-local address, or one where clouds keep credentials; these are always refused"


class Settings(Protocol):
    """Where allowed hosts are kept."""

    def read_setting(self, key: str) -> str | None: ...
    def write_setting(self, key: str, value: str) -> None: ...
    def drop_setting(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A host that a property names."""

    property: str
    host: str
    port: str = ""
    """With the scheme, as it was written: who may name one port of a host has not named the others."""


def endpoints_of(properties: Mapping[str, str], *, bucket: str = "") -> tuple[Endpoint, ...]:
    """The hosts that properties name. Raises SqlError for a value that is no host, and no URL of one."""
    named = [(name, value) for name, value in properties.items() if name != "uri" and _ADDRESS.search(name.lower())]
    found = [endpoint_of(name, part) for name, value in named for part in value.split(",")]
    inside = [replace(each, host=f"{bucket}.{each.host}") for each in found if bucket]
    return (*found, *(each for each in inside if literal_address_or_none(each.host.removeprefix(f"{bucket}.")) is None))


def endpoint_of(name: str, value: str) -> Endpoint:
    """The host that a property names. Raises SqlError."""
    form = _FORM.fullmatch(value.strip())
    host = plain_host(form["host"]) if form else ""
    if not host or not host.isascii():
        msg = f"{name} is not a host, and not a URL of one"
        raise SqlError(msg, property=name, todo="Write for example https://store.example:9000 or broker:9092.")
    port = f"{(form['scheme'] or '').lower()}:{form['port'] or ''}" if form else ""
    return Endpoint(property=name, host=host, port=port)


def installation_rules(text: str) -> AddressRules:
    """What the setting says. Raises ConfigError."""
    try:
        return parse_networks(text)
    except ValueError as error:
        msg = f"{SETTING} is neither true or false nor a list of networks: {text!r}"
        raise ConfigError(msg, left="Nothing was started.", todo="Write for example 10.0.0.0/8,127.0.0.1.") from error


class Endpoints:
    """Checks hosts, and keeps those that were allowed to a job or table."""

    def __init__(self, store: Settings, clock: Clock, rules: AddressRules, resolver: Resolver | None = None) -> None:
        self._store = store
        self._rules = rules
        self._names = Names(clock, resolver)

    def addresses(self, host: str) -> Sequence[str]:
        """All addresses of a host, as they are checked."""
        return self._names.addresses(host)

    def check_named(self, endpoints: Iterable[Endpoint], *, user: str, is_admin: bool) -> None:
        """Refuse hosts that a statement of this user names. Raises SqlError or DeniedError."""
        rules = replace(self._rules, allow_private=self._rules.allow_private or is_admin)
        for each in endpoints:
            refusal = self._refusal(rules, each)
            if refusal is AddressKind.CLOSED:
                raise _closed(each)
            if refusal is not None:
                msg = f"ADMIN command denied to user '{user}' for '*.*': {each.property} = {each.host} is {_NETWORK}"
                todo = f"Somebody with ADMIN on everything can run this, or the owner of the service can set {SETTING}."
                raise DeniedError(msg, left="Nothing was changed.", todo=todo, user=user, privilege="ADMIN")

    def allow(self, subject: str, endpoints: Iterable[Endpoint]) -> None:
        """Keep that a job or table may reach these hosts wherever they are. Others that it had stay."""
        hosts = sorted({*self._allowed(subject), *(each.host for each in endpoints)})
        self._store.write_setting(_key(subject), json.dumps(hosts))

    def forget(self, subject: str) -> None:
        """A job or table of this name is made again: what another one was allowed does not count."""
        if self._allowed(subject):
            self._store.drop_setting(_key(subject))

    def rules_for(self, subject: str, endpoints: Iterable[Endpoint], trusted: Iterable[Endpoint] = ()) -> AddressRules:
        """The rules of a job or table that is opened now, by which its hosts were checked. Raises ConfigError.

        `trusted` are hosts that somebody with ADMIN names at this moment, without having the statement run yet.
        """
        hosts = (*self._allowed(subject), *(each.host for each in trusted))
        rules = replace(self._rules, hosts=hosts)
        for each in endpoints:
            refusal = self._refusal(rules, each)
            if refusal is AddressKind.CLOSED:
                raise _closed(each)
            if refusal is not None:
                msg = f"{each.property} = {each.host} is {_NETWORK}, and nobody with ADMIN on everything named it"
                todo = (
                    f"Somebody with ADMIN can name it again with ALTER, or the owner of the service can set {SETTING}."
                )
                raise ConfigError(msg, left="Nothing was read.", todo=todo)
        return rules

    def _refusal(self, rules: AddressRules, endpoint: Endpoint) -> AddressKind | None:
        return rules.refusal(endpoint.host, self._names.addresses(endpoint.host))

    def _allowed(self, subject: str) -> list[str]:
        kept = self._store.read_setting(_key(subject))
        return [str(host) for host in json.loads(kept)] if kept else []


def _closed(endpoint: Endpoint) -> SqlError:
    msg = f"{endpoint.property} = {endpoint.host} is {_CLOUD}"
    return SqlError(msg, property=endpoint.property, todo="Name another host.")


def job_subject(job_id: str) -> str:
    """What the hosts of a job are kept under."""
    return f"job/{job_id}"


def table_subject(database: str, name: str) -> str:
    """What the hosts of a table are kept under."""
    return f"table/{database}.{name}"


def catalog_subject(name: str) -> str:
    """What the hosts of a catalog are kept under."""
    return f"catalog/{name}"


def _key(subject: str) -> str:
    return f"endpoints/{subject}"
