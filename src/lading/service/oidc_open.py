"""The identity provider of a service, if one is set up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.service.security.oidc_settings import load_oidc_settings
from lading.settings_sign_in import OidcVariables

if TYPE_CHECKING:
    from lading.service.security.oidc import OpenIdConnect


def open_oidc(variables: OidcVariables, lading: Lading) -> OpenIdConnect | None:
    """None when the variables name no provider. The provider itself is asked when somebody signs in.

    Raises ConfigError, also when the libraries for it were not installed.
    """
    settings = load_oidc_settings(variables)
    if settings is None:
        return None
    try:
        from lading.service.security.oidc import OpenIdConnect
    except ImportError as error:
        msg = f"Sign-in with OpenID Connect needs a library that is not installed: {error.name}"
        raise ConfigError(msg, left="Nothing was started.", todo="Run: pip install 'lading[oidc]'.") from error
    return OpenIdConnect(settings, lading.access, lading.clock)
