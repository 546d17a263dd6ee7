"""Settings of sign-in with OpenID Connect: variables that begin with LADING_OIDC_."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import ConfigError, SqlError
from lading.service.security.bind_policy import is_loopback
from lading.settings_file import read_secret_file
from lading.settings_sign_in import OidcVariables
from lading.sql.syntax.names import check_role_name

_PREFIX = "LADING_OIDC_"
_LEFT = "Nothing was started."


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """Which provider is trusted, and with what."""

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    """Empty: a public client, which PKCE alone protects."""
    base_url: str
    """How browsers call this service. It is never taken from a request."""
    name: str
    """What the button says after "Sign in with"."""
    scopes: tuple[str, ...]
    user_claim: str
    user_prefix: str
    groups_claim: str
    roles: tuple[tuple[str, str], ...] = ()
    """Groups of the provider, each with a role that its members have here."""
    audiences: tuple[str, ...] = ()
    """For whom access tokens of the HTTP API must be made. Empty: none is accepted."""
    session_minutes: int
    create_users: bool
    """Whether somebody who signs in for the first time becomes a user, without any privilege."""
    ca_file: Path | None = None

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to."""
        return f"{self.base_url}/login/oidc/callback"


def load_oidc_settings(given: OidcVariables) -> OidcSettings | None:
    """None when no provider is named. Raises ConfigError."""
    if given == OidcVariables():
        return None
    needed = {"ISSUER": given.oidc_issuer, "CLIENT_ID": given.oidc_client_id, "BASE_URL": given.oidc_base_url}
    for name, value in needed.items():
        if not value:
            msg = f"Sign-in with OpenID Connect needs {_PREFIX}{name}"
            raise ConfigError(msg, left=_LEFT, todo="Set it, or none of these variables. See docs/sign-in.md.")
    check_url(given.oidc_issuer, f"{_PREFIX}ISSUER")
    check_url(given.oidc_base_url, f"{_PREFIX}BASE_URL")
    return OidcSettings(
        issuer=given.oidc_issuer,
        client_id=given.oidc_client_id,
        client_secret=_secret(given),
        base_url=given.oidc_base_url.rstrip("/"),
        name=given.oidc_name,
        scopes=tuple(dict.fromkeys(("openid", *given.oidc_scopes.replace(",", " ").split()))),
        user_claim=given.oidc_user_claim,
        user_prefix=given.oidc_user_prefix,
        groups_claim=given.oidc_groups_claim,
        roles=_roles(given.oidc_roles),
        audiences=tuple(given.oidc_audiences.replace(",", " ").split()),
        session_minutes=given.oidc_session_minutes,
        create_users=given.oidc_create_users,
        ca_file=given.oidc_ca_file,
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


def _secret(given: OidcVariables) -> str:
    path = given.oidc_client_secret_file
    return given.oidc_client_secret if path is None else read_secret_file(f"{_PREFIX}CLIENT_SECRET_FILE", path)


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
