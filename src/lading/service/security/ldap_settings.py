"""Settings of sign-in with LDAP: variables that begin with LADING_LDAP_."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import ConfigError, SqlError
from lading.service.security.bind_policy import is_loopback
from lading.service.security.ldap_filter import FilterError, parse_filter
from lading.sql.syntax.names import check_role_name

_PREFIX = "LADING_LDAP_"
_LEFT = "Nothing was started."
_MOST_BYTES = 65_536
_MOST_SECONDS = 60
_MOST_MINUTES = 60 * 24 * 31
_KNOWN = frozenset(
    (
        "URL",
        "START_TLS",
        "CA_FILE",
        "BIND_DN",
        "SEARCH_BASE",
        "SEARCH_FILTER",
        "SERVICE_DN",
        "SERVICE_PASSWORD",
        "SERVICE_PASSWORD_FILE",
        "GROUP_BASE",
        "GROUP_FILTER",
        "GROUP_ATTRIBUTE",
        "ROLES",
        "TIMEOUT_S",
        "SESSION_MINUTES",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapSettings:
    """Which directory is asked, and how."""

    host: str
    port: int
    is_ldaps: bool
    start_tls: bool
    """False only with ldaps, or on this machine."""
    ca_file: Path | None = None
    bind_dn: str = ""
    """The name of a user with `{user}` in it. Empty: users are searched for."""
    search_base: str = ""
    search_filter: str = "(uid={user})"
    service_dn: str = ""
    service_password: str = field(default="", repr=False)
    group_base: str = ""
    """Empty: groups are not looked at."""
    group_filter: str = "(member={dn})"
    group_attribute: str = "cn"
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the name of a group, in small letters: the roles that its members have."""
    timeout_s: int = 5
    session_minutes: int = 60
    """How long a login counts when the directory cannot be asked about it again: there is no service account."""

    @property
    def url(self) -> str:
        """Where it is, to be shown."""
        return f"{'ldaps' if self.is_ldaps else 'ldap'}://{self.host}:{self.port}"


def load_ldap_settings(variables: Mapping[str, str]) -> LdapSettings | None:
    """None when no directory is named. Raises ConfigError."""
    given = {name.removeprefix(_PREFIX): value.strip() for name, value in variables.items() if name.startswith(_PREFIX)}
    given = {name: value for name, value in given.items() if value}
    if unknown := sorted(given.keys() - _KNOWN):
        msg = f"There is no setting {_PREFIX}{unknown[0]}"
        raise ConfigError(msg, left=_LEFT, todo="docs/sign-in.md lists the settings.")
    if not given:
        return None
    host, port, is_ldaps = _place(given.get("URL", ""))
    start_tls = not is_ldaps and given.get("START_TLS", "yes").lower() not in ("no", "0", "false", "off")
    if not (is_ldaps or start_tls or is_loopback(host)):
        msg = f"{_PREFIX}START_TLS=no would send passwords to {host} in the clear"
        raise ConfigError(msg, left=_LEFT, todo="Leave it out, or use ldaps://.")
    _check_names(given)
    return LdapSettings(
        host=host,
        port=port,
        is_ldaps=is_ldaps,
        start_tls=start_tls,
        ca_file=_readable(given.get("CA_FILE")),
        bind_dn=given.get("BIND_DN", ""),
        search_base=given.get("SEARCH_BASE", ""),
        search_filter=given.get("SEARCH_FILTER", "(uid={user})"),
        service_dn=given.get("SERVICE_DN", ""),
        service_password=_password(given),
        group_base=given.get("GROUP_BASE", ""),
        group_filter=given.get("GROUP_FILTER", "(member={dn})"),
        group_attribute=given.get("GROUP_ATTRIBUTE", "cn"),
        roles=_roles(given.get("ROLES", "")),
        timeout_s=_number(given, "TIMEOUT_S", 5, _MOST_SECONDS),
        session_minutes=_number(given, "SESSION_MINUTES", 60, _MOST_MINUTES),
    )


def _place(url: str) -> tuple[str, int, bool]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("ldap", "ldaps") or not parts.hostname or not is_plain:
        msg = f"{_PREFIX}URL is not the address of a directory"
        raise ConfigError(msg, left=_LEFT, todo="Write ldaps://ldap.example.com or ldap://ldap.example.com:389.")
    is_ldaps = parts.scheme == "ldaps"
    return parts.hostname, port or (636 if is_ldaps else 389), is_ldaps


def _check_names(given: Mapping[str, str]) -> None:
    has_template, has_search = "BIND_DN" in given, "SEARCH_BASE" in given
    if has_template == has_search:
        msg = f"Sign-in with LDAP needs either {_PREFIX}BIND_DN or {_PREFIX}SEARCH_BASE"
        raise ConfigError(msg, left=_LEFT, todo="Set one of them. See docs/sign-in.md.")
    if has_search and "SERVICE_DN" not in given:
        msg = f"{_PREFIX}SEARCH_BASE needs {_PREFIX}SERVICE_DN, the account that searches"
        raise ConfigError(msg, left=_LEFT, todo="Set it and its password, or use a template in BIND_DN.")
    for name, default in (("BIND_DN", "{user}"), ("SEARCH_FILTER", "{user}")):
        if "{user}" not in given.get(name, default):
            msg = f"{_PREFIX}{name} does not say where the name of the user goes"
            raise ConfigError(msg, left=_LEFT, todo="Write {user} there.")
    if "GROUP_FILTER" in given and not {"{dn}", "{user}"} & _placeholders(given["GROUP_FILTER"]):
        msg = f"{_PREFIX}GROUP_FILTER does not say whose groups are searched for"
        raise ConfigError(msg, left=_LEFT, todo="Write {dn} or {user} there.")
    for name in ("SEARCH_FILTER", "GROUP_FILTER"):
        try:
            parse_filter(given.get(name, "(a=*)"))
        except FilterError as error:
            msg = f"{_PREFIX}{name} is not a filter: {error}"
            raise ConfigError(msg, left=_LEFT, todo="Write it as (attribute=value), (&(…)(…)) or (|(…)(…)).") from error
    if ("GROUP_BASE" in given) != ("ROLES" in given):
        msg = f"{_PREFIX}GROUP_BASE and {_PREFIX}ROLES go together"
        raise ConfigError(msg, left=_LEFT, todo="Set both, or neither.")


def _placeholders(text: str) -> set[str]:
    return {each for each in ("{dn}", "{user}") if each in text}


def _roles(text: str) -> dict[str, tuple[str, ...]]:
    """Read `group=role, group=role`."""
    found: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        group, equals, role = (piece.strip() for piece in part.partition("="))
        if not (group and equals and _is_role(role)):
            msg = f"{_PREFIX}ROLES has '{part}', which is not group=role"
            raise ConfigError(msg, left=_LEFT, todo="Write group=role, group=role, …")
        found[group.lower()] = (*found.get(group.lower(), ()), role)
    return found


def _is_role(name: str) -> bool:
    try:
        check_role_name(name)
    except SqlError:
        return False
    return True


def _number(given: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = given.get(name, str(default))
    if text.isascii() and text.isdecimal() and 0 < int(text) <= most:
        return int(text)
    msg = f"{_PREFIX}{name} is not a whole number from 1 to {most}"
    raise ConfigError(msg, left=_LEFT, todo="Set it to such a number, or leave it out.")


def _readable(path: str | None) -> Path | None:
    if path is not None and not Path(path).is_file():
        msg = f"The file of {_PREFIX}CA_FILE is not there"
        raise ConfigError(msg, left=_LEFT, todo="Name a PEM file with the certificates that are trusted.")
    return Path(path) if path is not None else None


def _password(given: Mapping[str, str]) -> str:
    path, password = given.get("SERVICE_PASSWORD_FILE"), given.get("SERVICE_PASSWORD", "")
    if path is not None:
        try:
            with Path(path).open("rb") as file:
                password = file.read(_MOST_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            msg = f"The file of {_PREFIX}SERVICE_PASSWORD_FILE cannot be read: {error}"
            raise ConfigError(msg, left=_LEFT, todo="Name a text file that the service may read.") from error
    if "SERVICE_DN" in given and not password:
        # A directory takes a name with an empty password for nobody in particular, and lets it in.
        msg = f"{_PREFIX}SERVICE_DN needs a password"
        raise ConfigError(msg, left=_LEFT, todo=f"Set {_PREFIX}SERVICE_PASSWORD_FILE or {_PREFIX}SERVICE_PASSWORD.")
    return password
