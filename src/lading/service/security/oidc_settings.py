"""Settings of sign-in with OpenID Connect: variables that begin with LADING_OIDC_."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import ConfigError, SqlError
from lading.service.security.bind_policy import is_loopback
from lading.sql.syntax.names import check_role_name

_PREFIX = "LADING_OIDC_"
_LEFT = "Nothing was started."
_MOST_BYTES = 65536
_DEFAULT_MINUTES = 720
_DEFAULT_NAME = "single sign-on"
_MOST_MINUTES = 60 * 24 * 31
_KNOWN = frozenset(
    (
        "ISSUER",
        "CLIENT_ID",
        "CLIENT_SECRET",
        "CLIENT_SECRET_FILE",
        "BASE_URL",
        "NAME",
        "SCOPES",
        "USER_CLAIM",
        "USER_PREFIX",
        "GROUPS_CLAIM",
        "ROLES",
        "AUDIENCES",
        "SESSION_MINUTES",
        "CREATE_USERS",
        "CA_FILE",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Which provider is trusted, and with what."""

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    """Empty: a public client, which PKCE alone protects."""
    base_url: str
    """How browsers call this service. It is never taken from a request."""
    name: str = _DEFAULT_NAME
    """What the button says after "Sign in with"."""
    scopes: tuple[str, ...] = ("openid", "profile")
    user_claim: str = "preferred_username"
    user_prefix: str = ""
    groups_claim: str = "groups"
    roles: tuple[tuple[str, str], ...] = ()
    """Groups of the provider, each with a role that its members have here."""
    audiences: tuple[str, ...] = ()
    """For whom access tokens of the HTTP API must be made. Empty: none is accepted."""
    session_minutes: int = _DEFAULT_MINUTES
    create_users: bool = False
    """Whether somebody who signs in for the first time becomes a user, without any privilege."""
    ca_file: Path | None = None

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to."""
        return f"{self.base_url}/login/oidc/callback"


def load_oidc_settings(variables: Mapping[str, str]) -> OidcSettings | None:
    """None when no provider is named. Raises ConfigError."""
    given = {name.removeprefix(_PREFIX): value.strip() for name, value in variables.items() if name.startswith(_PREFIX)}
    given = {name: value for name, value in given.items() if value}
    if unknown := sorted(given.keys() - _KNOWN):
        msg = f"There is no setting {_PREFIX}{unknown[0]}"
        raise ConfigError(msg, left=_LEFT, todo="docs/sign-in.md lists the settings.")
    if not given:
        return None
    for name in ("ISSUER", "CLIENT_ID", "BASE_URL"):
        if name not in given:
            msg = f"Sign-in with OpenID Connect needs {_PREFIX}{name}"
            raise ConfigError(msg, left=_LEFT, todo="Set it, or none of these variables. See docs/sign-in.md.")
    check_url(given["ISSUER"], f"{_PREFIX}ISSUER")
    check_url(given["BASE_URL"], f"{_PREFIX}BASE_URL")
    return OidcSettings(
        issuer=given["ISSUER"],
        client_id=given["CLIENT_ID"],
        client_secret=_secret(given),
        base_url=given["BASE_URL"].rstrip("/"),
        name=given.get("NAME", _DEFAULT_NAME),
        scopes=tuple(dict.fromkeys(("openid", *given.get("SCOPES", "profile").replace(",", " ").split()))),
        user_claim=given.get("USER_CLAIM", "preferred_username"),
        user_prefix=given.get("USER_PREFIX", ""),
        groups_claim=given.get("GROUPS_CLAIM", "groups"),
        roles=_roles(given.get("ROLES", "")),
        audiences=tuple(given.get("AUDIENCES", "").replace(",", " ").split()),
        session_minutes=_minutes(given.get("SESSION_MINUTES", str(_DEFAULT_MINUTES))),
        create_users=_switch(given.get("CREATE_USERS", "no")),
        ca_file=Path(given["CA_FILE"]) if "CA_FILE" in given else None,
    )


def check_url(url: str, what: str) -> None:
    """Refuse a URL that others could listen in on. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    is_safe = bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))
    if not is_safe or parts.username or parts.fragment or parts.query:
        msg = f"{what} is not an https URL"
        todo = "Use https://…; http:// is accepted for this machine alone (127.0.0.1, localhost)."
        raise ConfigError(msg, left=_LEFT, todo=todo)


def _secret(given: Mapping[str, str]) -> str:
    path = given.get("CLIENT_SECRET_FILE")
    if path is None:
        return given.get("CLIENT_SECRET", "")
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The file of {_PREFIX}CLIENT_SECRET_FILE cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name a text file that the service may read.") from error


def _minutes(text: str) -> int:
    if text.isascii() and text.isdecimal() and 0 < int(text) <= _MOST_MINUTES:
        return int(text)
    msg = f"{_PREFIX}SESSION_MINUTES is not a number from 1 to {_MOST_MINUTES}"
    raise ConfigError(msg, left=_LEFT, todo="Give the number of minutes that a login lasts.")


def _roles(text: str) -> tuple[tuple[str, str], ...]:
    """`group=role, group=role`; a group may stand there more than once."""
    pairs = [part.strip().rpartition("=") for part in text.split(",") if part.strip()]
    for group, _, role in pairs:
        try:
            check_role_name(role.strip())
        except SqlError as error:
            msg = f"{_PREFIX}ROLES: {error.what}"
            raise ConfigError(msg, left=_LEFT, todo="Write group=role, separated by commas.") from error
        if not group.strip():
            msg = f"{_PREFIX}ROLES names no group for the role '{role.strip()}'"
            raise ConfigError(msg, left=_LEFT, todo="Write group=role, separated by commas.")
    return tuple((group.strip(), role.strip()) for group, _, role in pairs)


def _switch(text: str) -> bool:
    match text.lower():
        case "1" | "yes" | "true" | "on":
            return True
        case "0" | "no" | "false" | "off":
            return False
    msg = f"{_PREFIX}CREATE_USERS is neither yes nor no"
    raise ConfigError(msg, left=_LEFT, todo="Set it to yes or no.")
