"""What comes from the environment. Only this file and the command line's door read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from lading.errors import ConfigError

LARGEST = 1_000_000
_LEFT = "Nothing was started."
_LIST = "password_list"


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """How strict accounts are. Each field is the variable LADING_ and its name in capitals; see docs/users.md."""

    token_days: int = 90
    """How long a token is valid when CREATE TOKEN does not say; 0: for ever."""
    password_min_length: int = 8
    """How many characters a new password has at least."""
    password_classes: int = 1
    """Of how many kinds they are at least: small letters, capitals, digits, others."""
    password_list: frozenset[str] = field(default=frozenset(), repr=False)
    """Passwords that are refused because everybody knows them. The variable names a file with one on each line."""
    lockout_failures: int = 20
    """Wrong passwords of one name from one address after which it is locked there; 0: never."""
    lockout_minutes: int = 15
    """For how long."""
    name_failures: int = 200
    """Wrong passwords of one name within a day, from anywhere, after which it is locked where it never logged in
    from; 0: never."""
    address_failures: int = 20
    """Wrong passwords of one address after which all names are slowed down for it; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How much the audit log keeps. Each field is the variable LADING_ and its name in capitals; see docs/audit.md."""

    audit_file_mb: int = 32
    """A file that would become larger is rotated."""
    audit_files: int = 10
    """So many files are kept, the one that is written included."""
    audit_characters: int = 2000
    """A longer statement is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """How files are loaded. Each field is the variable LADING_ and its name in capitals; see docs/files.md."""

    file_settle_seconds: int = 5
    """For how long a file on a disk must not have been modified before it is loaded; 0: not at all."""


def file_settings(variables: Mapping[str, str] | None = None) -> FileSettings:
    """The settings of this process. Raises ConfigError for a value that is not a whole number."""
    known = environment() if variables is None else variables
    variable = "LADING_FILE_SETTLE_SECONDS"
    return (
        FileSettings(file_settle_seconds=_whole_number(variable, known[variable]))
        if variable in known
        else FileSettings()
    )


def security_settings(variables: Mapping[str, str] | None = None) -> SecuritySettings:
    """The settings of this process. Raises ConfigError for a value that cannot be used."""
    known = environment() if variables is None else variables
    given = {
        each.name: variable for each in fields(SecuritySettings) if (variable := f"LADING_{each.name.upper()}") in known
    }
    values: dict[str, Any] = {
        name: _lines_of(variable, known[variable]) if name == _LIST else _whole_number(variable, known[variable])
        for name, variable in given.items()
    }
    return replace(SecuritySettings(), **values)


def audit_settings(variables: Mapping[str, str] | None = None) -> AuditSettings:
    """The settings of this process. Raises ConfigError for a value that is not a whole number above 0."""
    known = environment() if variables is None else variables
    changed = {
        each.name: _whole_number(variable, known[variable])
        for each in fields(AuditSettings)
        if (variable := f"LADING_{each.name.upper()}") in known
    }
    for name, value in changed.items():
        if not value:
            msg = f"The variable LADING_{name.upper()} is 0"
            raise ConfigError(msg, left="Nothing was started.", todo="Set it to 1 or more, or leave it out.")
    return AuditSettings(**changed)


def _whole_number(variable: str, text: str) -> int:
    if text.isdecimal() and text.isascii() and int(text) <= LARGEST:
        return int(text)
    msg = f"The variable {variable} is not a whole number from 0 to {LARGEST}"
    raise ConfigError(msg, left=_LEFT, todo=f"Set {variable} to such a number, or leave it out.")


def _lines_of(variable: str, path: str) -> frozenset[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        msg = f"The file that {variable} names cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name a text file with one password on each line.") from error
    return frozenset(line.casefold() for line in text.splitlines() if line)
