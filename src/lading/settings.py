"""What comes from the environment. Only this file and the command line's door read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from lading.errors import ConfigError

LARGEST = 1_000_000


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """How strict accounts are. Each field is the variable LADING_ and its name in capitals; see docs/users.md."""

    token_days: int = 90
    """How long a token is valid when CREATE TOKEN does not say; 0: for ever."""


def security_settings(variables: Mapping[str, str] | None = None) -> SecuritySettings:
    """The settings of this process. Raises ConfigError for a value that is not a whole number."""
    known = environment() if variables is None else variables
    changed = {
        field.name: _whole_number(variable, known[variable])
        for field in fields(SecuritySettings)
        if (variable := f"LADING_{field.name.upper()}") in known
    }
    return SecuritySettings(**changed)


def _whole_number(variable: str, text: str) -> int:
    if text.isdecimal() and text.isascii() and int(text) <= LARGEST:
        return int(text)
    msg = f"The variable {variable} is not a whole number from 0 to {LARGEST}"
    raise ConfigError(msg, left="Nothing was started.", todo=f"Set {variable} to such a number, or leave it out.")
