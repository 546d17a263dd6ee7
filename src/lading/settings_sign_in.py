"""Settings of sign-in with a directory or a provider. `settings.py` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lading.setting_fields import setting

_MONTH_MINUTES = 60 * 24 * 31


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapVariables:
    """Sign-in with LDAP: see [sign-in.md](sign-in.md)"""

    ldap_url: str = setting("", "`ldaps://ldap.example`, or `ldap://ldap.example` with StartTLS.", shown="no LDAP")
    ldap_start_tls: bool = setting(True, "`no`: do not encrypt; accepted for a directory on this machine only.")
    ldap_ca_file: Path | None = setting(
        None, "Certificates that vouch for the directory, PEM.", shown="those of the system"
    )
    ldap_bind_dn: str = setting("", "What a user is called there: `uid={user},ou=people,dc=example,dc=org`.")
    ldap_search_base: str = setting("", "Where users are searched for, when there is no LADING_LDAP_BIND_DN.")
    ldap_search_filter: str = setting("(uid={user})", "How they are searched for.")
    ldap_service_dn: str = setting("", "The account that searches.")
    ldap_service_password: str = setting("", "Its password.", is_secret=True)
    ldap_service_password_file: Path | None = setting(None, "A file with its password.")
    ldap_group_base: str = setting("", "Where groups are searched for.", shown="groups are not looked at")
    ldap_group_filter: str = setting("(member={dn})", "How, with `{dn}` or `{user}`.")
    ldap_group_attribute: str = setting("cn", "What the name of a group is.")
    ldap_roles: str = setting("", "`group=role, group=role`: members of the group have the role.")
    ldap_timeout_s: int = setting(5, "How long the directory may take, in seconds.", least=1, most=60)
    ldap_session_minutes: int = setting(
        60, "How long a login lasts without a service account.", least=1, most=_MONTH_MINUTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcVariables:
    """Sign-in with OpenID Connect: see [sign-in.md](sign-in.md)"""

    oidc_issuer: str = setting("", "The provider, exactly as it calls itself.", shown="no provider")
    oidc_client_id: str = setting("", "How Lading is registered there.")
    oidc_client_secret: str = setting("", "Its secret; none: a public client.", is_secret=True)
    oidc_client_secret_file: Path | None = setting(None, "A file with its secret.")
    oidc_base_url: str = setting("", "How browsers call the service: `https://lading.example`.")
    oidc_name: str = setting("single sign-on", "What the button says after *Sign in with*.")
    oidc_scopes: str = setting("profile", "What is asked for beside `openid`.")
    oidc_user_claim: str = setting("preferred_username", "The claim that is the user's name here.")
    oidc_user_prefix: str = setting("", "What is put before that name.")
    oidc_groups_claim: str = setting("groups", "The claim that lists the groups.")
    oidc_roles: str = setting("", "Roles for groups of the provider: `analysts=reader, /data/admins=operator`.")
    oidc_audiences: str = setting(
        "", "For whom access tokens of the API must be made.", shown="none: no such token is accepted"
    )
    oidc_session_minutes: int = setting(720, "How long a login to the console lasts.", least=1, most=_MONTH_MINUTES)
    oidc_create_users: bool = setting(
        False, "`yes`: who signs in for the first time becomes a user, without any privilege."
    )
    oidc_ca_file: Path | None = setting(
        None, "Certificates that vouch for the provider, PEM.", shown="those of the system"
    )
