"""Signing in to clusters of Amazon MSK with IAM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lading.errors import ConfigError

TokenCall = Callable[[str], tuple[str, float]]
"""What librdkafka calls for a token: the token, and when it expires in seconds since 1970."""


def token_call(aws: Mapping[str, str]) -> TokenCall:
    """A function that signs tokens. Raises ConfigError when Amazon's signer is not installed."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # type: ignore[import-not-found]
    except ImportError as error:
        msg = "AWS cannot sign in to Kafka: the package aws-msk-iam-sasl-signer-python is not installed"
        todo = "Install it beside Lading, on the driver and on every executor, or sign in another way."
        raise ConfigError(msg, left="Nothing was read.", todo=todo) from error

    def sign(_config: str) -> tuple[str, float]:
        token, expires_ms = _sign(MSKAuthTokenProvider, aws)
        return token, expires_ms / 1000

    return sign


def _sign(provider: Any, aws: Mapping[str, str]) -> tuple[str, int]:
    """A token by the first of: keys, role, the default chain."""
    region = aws["aws.region"]
    answer: tuple[str, int]
    if aws.get("aws.access_key"):
        answer = provider.generate_auth_token_from_credentials_provider(region, _keys(aws))
    elif aws.get("aws.role_arn"):
        answer = provider.generate_auth_token_from_role_arn(region, aws["aws.role_arn"])
    else:
        answer = provider.generate_auth_token(region)
    return answer


def _keys(aws: Mapping[str, str]) -> Any:
    """The signer wants a provider of credentials, not credentials."""
    from botocore.credentials import CredentialProvider, Credentials

    class Keys(CredentialProvider):  # type: ignore[misc]
        METHOD = "lading"

        def load(self) -> Any:
            return Credentials(aws["aws.access_key"], aws["aws.secret_key"], aws.get("aws.session_key") or None)

    return Keys()
