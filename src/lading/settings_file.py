"""`lading.toml`: the settings of an installation in one file, its Spark and its catalogs. And how values are read.

A table has the name of a group of settings, a key in it that of the variable in small letters, without `lading_`. The
tables `[spark]` and `[catalogs.NAME]` are of this file only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lading.errors import ConfigError
from lading.setting_fields import ABOUT, About
from lading.suggest import nearest

_LEFT = "Nothing was started."
_SPARK, _CATALOGS, _COMMENT = "spark", "catalogs", "comment"
_OTHERS = 0o077
_MOST_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value as somebody wrote it."""

    text: str = field(repr=False)
    what: str
    """How a sentence about it begins."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCatalog:
    """A catalog of the file, in the words of CREATE CATALOG."""

    properties: Mapping[str, str] = field(repr=False)
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """What a file says; nothing when there is none."""

    path: Path | None = None
    is_private: bool = False
    """Nobody but its owner can read it: it may have secrets in it."""
    given: Mapping[str, Mapping[str, Given]] = field(default_factory=dict, repr=False)
    """By group and field."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    catalogs: Mapping[str, FileCatalog] = field(default_factory=dict)


def read_settings_file(
    path: Path | None, groups: Mapping[str, type[Any]], variables: Mapping[str, str], *, is_in_home: bool
) -> SettingsFile:
    """Read the file, if there is one. Raises ConfigError, with the name of what is wrong in it."""
    if path is None:
        return SettingsFile()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        is_private = not path.stat().st_mode & _OTHERS
    except OSError as error:
        msg = f"The settings file {path} cannot be read: {error.strerror or error}"
        raise ConfigError(msg, left=_LEFT, todo="Correct --config or LADING_CONFIG, or make the file.") from error
    except ValueError as error:
        msg = f"The settings file {path} is not TOML: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Correct it there.") from error
    reader = _Reader(path, groups, variables, is_private=is_private, is_in_home=is_in_home)
    return SettingsFile(
        path=path,
        is_private=is_private,
        given={name: reader.group(name, table) for name, table in tables.items() if reader.is_group(name, table)},
        spark=reader.spark(tables.get(_SPARK, {})),
        catalogs={name: reader.catalog(name, table) for name, table in tables.get(_CATALOGS, {}).items()},
    )


class _Reader:
    """Reads the tables of one file."""

    def __init__(
        self,
        path: Path,
        groups: Mapping[str, type[Any]],
        variables: Mapping[str, str],
        *,
        is_private: bool,
        is_in_home: bool,
    ) -> None:
        self._path = path
        self._groups = groups
        self._variables = variables
        self._is_private = is_private
        self._is_in_home = is_in_home
        self._tables = {each.name: name for name, group in groups.items() for each in fields(group)}

    def is_group(self, name: str, table: object) -> bool:
        """Whether it is a table of settings. Raises ConfigError for a name that means nothing."""
        if name in self._groups and isinstance(table, dict):
            return True
        if name in (_SPARK, _CATALOGS) and isinstance(table, dict):
            return False
        near = nearest(name, (*self._groups, _SPARK, _CATALOGS))
        if name in self._tables:
            meant = f"; it is {name} of [{self._tables[name]}]"
        else:
            meant = f"; did you mean [{near}]?" if near else ""
        known = ", ".join(f"[{each}]" for each in (*self._groups, _SPARK, f"{_CATALOGS}.NAME"))
        msg = f"{self._path} has {name!r}, which is no table of settings{meant}"
        raise self._wrong(msg, f"Tables are {known}.")

    def group(self, table: str, said: Mapping[str, Any]) -> dict[str, Given]:
        """The settings of one table."""
        known = {each.name: each for each in fields(self._groups[table])}
        found = {}
        for name, value in said.items():
            if name not in known:
                raise self._unknown(table, name, known)
            about: About = known[name].metadata[ABOUT]
            if not about.in_file or (name == "home" and self._is_in_home):
                msg = f"{name} cannot be set in {self._path}"
                raise self._wrong(msg, f"Use LADING_{name.upper()}{f' or {about.option}' if about.option else ''}.")
            what = f"{name} in [{table}] of {self._path}"
            text = self._text(what, value, str(known[name].type))
            if about.is_secret and str(known[name].type) == "str":
                text = self._secret(what, text)
            found[name] = Given(text=text, what=what, name=f"{name} in [{table}]")
        return found

    def spark(self, said: object) -> dict[str, str]:
        """`spark.*`, with or without that word before it."""
        found = {}
        for name, value in _flat(said):
            whole = name if name.startswith("spark.") else f"spark.{name}"
            found[whole] = self._plain(f"{whole} in [{_SPARK}] of {self._path}", value)
        return found

    def catalog(self, name: str, said: object) -> FileCatalog:
        """The properties of a catalog. Their meaning is looked at where catalogs are opened."""
        if not isinstance(said, dict):
            msg = f"{name} in [{_CATALOGS}] of {self._path} is no table"
            raise self._wrong(msg, f"Write [{_CATALOGS}.{name}].")
        where = f"of [{_CATALOGS}.{name}] in {self._path}"
        properties = {key: self._plain(f"{key} {where}", value) for key, value in _flat(said)}
        return FileCatalog(comment=properties.pop(_COMMENT, ""), properties=properties)

    def _text(self, what: str, value: object, kind: str) -> str:
        """The value as a variable would have it."""
        if kind == "bool" and isinstance(value, bool):
            return "yes" if value else "no"
        if kind in ("int", "float") and isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if kind == "tuple[str, ...]" and isinstance(value, list) and all(isinstance(each, str) for each in value):
            return ",".join(value)
        if isinstance(value, str) and kind in ("str", "tuple[str, ...]"):
            return value.strip()
        if isinstance(value, str) and kind in ("Path", "Path | None", "frozenset[str]"):
            return str(self._path.absolute().parent / value) if value.strip() else ""
        wanted = _WORDS[kind]
        msg = f"{what} is not {wanted}"
        raise self._wrong(msg, f"Write {wanted} there, as TOML has it.")

    def _plain(self, what: str, value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value)
        msg = f"{what} is not a text, a number, true or false"
        raise self._wrong(msg, "Correct it there.")

    def _secret(self, what: str, text: str) -> str:
        kind, _, place = text.partition(":")
        if kind == "env":
            if found := self._variables.get(place, ""):
                return found
            msg = f"{what} is in the variable {place}, which is not set"
            raise self._wrong(msg, "Set it, or correct the name.")
        if kind == "file" and place.startswith("/"):
            return read_secret_file(what, Path("/" + place.lstrip("/")))
        if text and not self._is_private:
            msg = f"{what} is a secret, and others than its owner can read the file"
            raise self._wrong(msg, f"Write env:NAME or file:/path there, or run chmod 600 {self._path}.")
        return text

    def _unknown(self, table: str, name: str, known: Mapping[str, Any]) -> ConfigError:
        longer = f"{table}_{name}"
        near = longer if longer in known else nearest(name, known) or nearest(name, self._tables)
        other = f" of [{self._tables[near]}]" if near and near not in known else ""
        if name in self._tables:
            near, other = name, f" of [{self._tables[name]}]"
        meant = f"; did you mean {near}{other}?" if near else ""
        msg = f"There is no setting {name} in [{table}] of {self._path}{meant}"
        return self._wrong(msg, "Correct the name; docs/settings.md lists them all.")

    def _wrong(self, msg: str, todo: str) -> ConfigError:
        return ConfigError(msg, left=_LEFT, todo=todo)


def _flat(said: object, before: str = "") -> Iterator[tuple[str, object]]:
    """`a.b = 1` is a table in TOML, and `"a.b" = 1` is not; both mean the same here."""
    if not isinstance(said, dict):
        yield before, said
        return
    for name, value in said.items():
        yield from _flat(value, f"{before}.{name}" if before else name)


def read_secret_file(what: str, path: Path) -> str:
    """The secret in the file that a setting names. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The file of {what} cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name a text file that the service may read.") from error


def _whole_number(given: Given, about: About) -> int:
    text = given.text
    if text.isdecimal() and text.isascii() and about.least <= int(text) <= about.most:
        return int(text)
    msg = f"{given.what} is not a whole number from {about.least} to {about.most}"
    raise ConfigError(msg, left=_LEFT, todo=f"Set {given.name} to such a number, or unset it.")


def _number(given: Given, about: About) -> float:
    try:
        found = float(given.text)
    except ValueError:
        found = -1.0
    if about.least <= found <= about.most:
        return found
    msg = f"{given.what} is not a number from {about.least} to {about.most}"
    raise ConfigError(msg, left=_LEFT, todo=f"Set {given.name} to such a number, or unset it.")


def _yes_or_no(given: Given, about: About) -> bool:
    match given.text.lower():
        case "1" | "yes" | "true" | "on":
            return True
        case "0" | "no" | "false" | "off":
            return False
    msg = f"{given.what} is neither yes nor no"
    raise ConfigError(msg, left=_LEFT, todo=f"Set {given.name} to yes or no, or unset it.")


def _lines_of(given: Given, about: About) -> frozenset[str]:
    if not given.text:
        return frozenset()
    try:
        text = Path(given.text).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        msg = f"The file that {given.name} names cannot be read: {error}"
        raise ConfigError(msg, left=_LEFT, todo="Name a text file with one password on each line.") from error
    return frozenset(line.casefold() for line in text.splitlines() if line)


def _words(given: Given, about: About) -> str:
    if about.choices and given.text not in about.choices:
        known = " or ".join(about.choices)
        msg = f"{given.what} is not {known}"
        raise ConfigError(msg, left=_LEFT, todo=f"Set {given.name} to one of them.")
    return given.text


def _several(given: Given, about: About) -> tuple[str, ...]:
    return tuple((given.text if about.is_spaced else given.text.replace(",", " ")).split())


READERS: dict[str, Callable[[Given, About], Any]] = {
    "str": _words,
    "int": _whole_number,
    "float": _number,
    "bool": _yes_or_no,
    "Path": lambda given, _about: Path(given.text),
    "Path | None": lambda given, _about: Path(given.text) if given.text else None,
    "frozenset[str]": _lines_of,
    "tuple[str, ...]": _several,
}
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "Path": "a path",
    "Path | None": "a path",
    "frozenset[str]": "a path",
    "tuple[str, ...]": "a list of texts",
}
