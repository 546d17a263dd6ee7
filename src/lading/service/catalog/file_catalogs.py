"""Catalogs that belong to an installation: `[catalogs.NAME]` of its settings file. No statement changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lading.errors import ConfigError, LadingError
from lading.model.names import INTERNAL
from lading.service.catalog.definitions import read_definition
from lading.settings_file import SettingsFile
from lading.sql.syntax.masking import drop_secrets
from lading.sql.syntax.spans import is_reference
from lading.store.records import CatalogEntry

_FIRST_ID = 1_000_000
"""Far from the numbers of those that statements make."""
_LEFT = "Nothing was started."


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCatalogs:
    """The catalogs of a file, checked."""

    path: Path = Path()
    entries: Mapping[str, CatalogEntry] = field(default_factory=dict)
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """With their secrets, or references to them."""

    def refuse(self, name: str, verb: str) -> None:
        """Refuse to change a catalog of the file."""
        if name in self.entries:
            msg = f"The catalog {name} cannot be {verb}: it is defined in {self.path}, [catalogs.{name}]"
            todo = "Change it there and start the service again."
            raise ConfigError(msg, left="Nothing was changed.", todo=todo)

    def check_names(self, made: list[str]) -> None:
        """Refuse a file that has the name of a catalog that a statement made."""
        for name in sorted(self.entries.keys() & set(made)):
            msg = f"The catalog {name} is in {self.path}, and was made with CREATE CATALOG before"
            todo = "Give it another name in the file; or take it out, run DROP CATALOG, and put it in again."
            raise ConfigError(msg, left=_LEFT, todo=todo)


def read_file_catalogs(file: SettingsFile) -> FileCatalogs:
    """Check the catalogs of a file. Raises ConfigError that names the table of the file."""
    if file.path is None or not file.catalogs:
        return FileCatalogs()
    changed = datetime.fromtimestamp(file.path.stat().st_mtime, UTC)
    entries = {}
    for number, (name, said) in enumerate(sorted(file.catalogs.items())):
        where = f"[catalogs.{name}] in {file.path}"
        if name == INTERNAL or not name.isidentifier():
            msg = f"{where} cannot have this name"
            raise ConfigError(msg, left=_LEFT, todo="Use letters, digits and underscores, and not internal.")
        try:
            read_definition(said.properties)
        except LadingError as error:
            msg = f"{where} is wrong: {error.what}"
            raise ConfigError(msg, left=_LEFT, todo=error.todo) from error
        open_ = drop_secrets(said.properties)
        written = [key for key in said.properties if key not in open_ and not is_reference(said.properties[key])]
        if written and not file.is_private:
            msg = f"{written[0]} of {where} is a secret, and others than its owner can read the file"
            todo = f"Write env:NAME or file:/path there, or run chmod 600 {file.path}."
            raise ConfigError(msg, left=_LEFT, todo=todo)
        entries[name] = CatalogEntry(
            name=name,
            catalog_id=_FIRST_ID + number,
            properties=open_,
            comment=said.comment,
            created_at=changed,
            changed_at=changed,
        )
    properties = {name: said.properties for name, said in file.catalogs.items()}
    return FileCatalogs(path=file.path, entries=entries, properties=properties)
