"""Settings of sign-in with LDAP: variables that begin with LADING_LDAP_."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import ConfigError, SqlError
from lading.service.security.bind_policy import is_loopback
from lading.service.security.ldap_filter import parse_filter
from lading.settings_file import read_secret_file
from lading.settings_sign_in import LdapVariables
from lading.sql.syntax.names import check_role_name

_PREFIX = "LADING_LDAP_"
_LEFT = "Nothing was started."


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
    search_filter: str
    service_dn: str = ""
    service_password: str = field(default="", repr=False)
    group_base: str = ""
    """Empty: groups are not looked at."""
    group_filter: str
    group_attribute: str
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the name of a group, in small letters: the roles that its members have."""
    timeout_s: int
    session_minutes: int
    """How long a login counts when the directory cannot be asked about it again: there is no service account."""

    @property
    def url(self) -> str:
        """Where it is, to be shown."""
        return f"{'ldaps' if self.is_ldaps else 'ldap'}://{self.host}:{self.port}"


def load_ldap_settings(given: LdapVariables) -> LdapSettings | None:
    """None when no directory is named. Raises ConfigError."""
    if given == LdapVariables():
        return None
    host, port, is_ldaps = _place(given.ldap_url)
    start_tls = not is_ldaps and given.ldap_start_tls
    if not (is_ldaps or start_tls or is_loopback(host)):
        msg = f"{_PREFIX}START_TLS=no would send passwords to {host} in the clear"
        raise ConfigError(msg, left=_LEFT, todo="Leave it out, or use ldaps://.")
    _check_names(given)
    return LdapSettings(
        host=host,
        port=port,
        is_ldaps=is_ldaps,
        start_tls=start_tls,
        ca_file=_readable(given.ldap_ca_file),
        bind_dn=given.ldap_bind_dn,
        search_base=given.ldap_search_base,
        search_filter=given.ldap_search_filter,
        service_dn=given.ldap_service_dn,
        service_password=_password(given),
        group_base=given.ldap_group_base,
        group_filter=given.ldap_group_filter,
        group_attribute=given.ldap_group_attribute,
        roles=_roles(given.ldap_roles),
        timeout_s=given.ldap_timeout_s,
        session_minutes=given.ldap_session_minutes,
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


def _check_names(given: LdapVariables) -> None:
    if bool(given.ldap_bind_dn) == bool(given.ldap_search_base):
        msg = f"Sign-in with LDAP needs either {_PREFIX}BIND_DN or {_PREFIX}SEARCH_BASE"
        raise ConfigError(msg, left=_LEFT, todo="Set one of them. See docs/sign-in.md.")
    if given.ldap_search_base and not given.ldap_service_dn:
        msg = f"{_PREFIX}SEARCH_BASE needs {_PREFIX}SERVICE_DN, the account that searches"
        raise ConfigError(msg, left=_LEFT, todo="Set it and its password, or use a template in BIND_DN.")
    for name, text in (("BIND_DN", given.ldap_bind_dn or "{user}"), ("SEARCH_FILTER", given.ldap_search_filter)):
        if "{user}" not in text:
            msg = f"{_PREFIX}{name} does not say where the name of the user goes"
            raise ConfigError(msg, left=_LEFT, todo="Write {user} there.")
    if "{dn}" not in given.ldap_group_filter and "{user}" not in given.ldap_group_filter:
        msg = f"{_PREFIX}GROUP_FILTER does not say whose groups are searched for"
        raise ConfigError(msg, left=_LEFT, todo="Write {dn} or {user} there.")
    for name, text in (("SEARCH_FILTER", given.ldap_search_filter), ("GROUP_FILTER", given.ldap_group_filter)):
        try:
            parse_filter(text)
        except ValueError as error:
            msg = f"{_PREFIX}{name} is not a filter: {error}"
            raise ConfigError(msg, left=_LEFT, todo="Write it as (attribute=value), (&(…)(…)) or (|(…)(…)).") from error
    if bool(given.ldap_group_base) != bool(given.ldap_roles):
        msg = f"{_PREFIX}GROUP_BASE and {_PREFIX}ROLES go together"
        raise ConfigError(msg, left=_LEFT, todo="Set both, or neither.")


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


def _readable(path: Path | None) -> Path | None:
    if path is not None and not path.is_file():
        msg = f"The file of {_PREFIX}CA_FILE is not there"
        raise ConfigError(msg, left=_LEFT, todo="Name a PEM file with the certificates that are trusted.")
    return path


def _password(given: LdapVariables) -> str:
    path, password = given.ldap_service_password_file, given.ldap_service_password
    if path is not None:
        password = read_secret_file(f"{_PREFIX}SERVICE_PASSWORD_FILE", path)
    if given.ldap_service_dn and not password:
        # A directory takes a name with an empty password for nobody in particular, and lets it in.
        msg = f"{_PREFIX}SERVICE_DN needs a password"
        raise ConfigError(msg, left=_LEFT, todo=f"Set {_PREFIX}SERVICE_PASSWORD_FILE or {_PREFIX}SERVICE_PASSWORD.")
    return password
