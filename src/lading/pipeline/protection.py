"""Settings that keep others out of Spark: connections need a secret, and what is sent or spilled is encrypted."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lading.errors import ConfigError

INSECURE = "spark.lading.insecure"
"""Set to true by an operator who wants a Spark that anybody on its network can speak to."""
SECRET = "spark.authenticate.secret"  # noqa: S105 - the name of a setting
_SECRET_FILES = re.compile(r"spark\.authenticate\.secret\.(?:driver\.|executor\.)?file")
_ON = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
_MORE = {"spark.network.crypto.authEngineVersion": "2"}
REDACTION = "spark.redaction.regex"
_REDACTED = "(?i)secret|password|passwd|token|credential|access[.]?key"


def protected(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a user with protection on. Raises ConfigError for those that switch it off without saying so.

    Spark makes a fresh secret at each start by itself: alone on this machine, on YARN and on Kubernetes. The master and
    the workers of a standalone cluster have one already, which only their operator knows.
    """
    if settings.get(INSECURE, "false").lower() == "true":
        return dict(settings)
    if off := sorted(name for name in _ON if settings.get(name, "true").lower() != "true"):
        msg = f"{', '.join(off)} would be switched off: anybody on Spark's network could read what it loads"
        raise ConfigError(msg, left="Spark was not started.", todo=f'Leave it on, or set "{INSECURE}" to "true", too.')
    named = {name for name, value in settings.items() if value and (name == SECRET or _SECRET_FILES.fullmatch(name))}
    if settings.get("spark.master", "").startswith("spark://") and not named:
        msg = "A standalone cluster has one secret for its master, its workers and those who use it"
        todo = f'Set "{SECRET}.file" to a file that holds it, or "{INSECURE}" to "true".'
        raise ConfigError(msg, left="Spark was not started.", todo=todo)
    redacted = "|".join((_REDACTED, f"(?:{settings[REDACTION]})")) if settings.get(REDACTION) else _REDACTED
    return {**_MORE, **settings, **_ON, REDACTION: redacted}
