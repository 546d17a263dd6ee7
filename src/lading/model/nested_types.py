"""Types made of types, by their Spark names: `struct<a:int,b:array<string>>`, taken apart and put together."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of a field that needs no quotes."""
_NAME = re.compile(r"[A-Za-z_]+(?:\(\d+(?:, ?\d+)?\))?")
_FIELD = re.compile(r"`((?:[^`]|``)*)`|([^:`<>,]+)")
"""A name in quotes may be empty: files have such fields, and tables do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedType:
    """A type. One that is not made of others has no parts."""

    kind: str
    """struct, array or map; else the name of a plain type."""
    parts: tuple[tuple[str, NestedType], ...] = ()
    """The fields of a struct; `element` of an array; `key` and `value` of a map."""

    @property
    def is_nested(self) -> bool:
        return self.kind in ("struct", "array", "map")

    def __str__(self) -> str:
        if self.kind == "struct":
            return f"struct<{','.join(f'{quoted_field(name)}:{kind}' for name, kind in self.parts)}>"
        return f"{self.kind}<{','.join(str(kind) for _, kind in self.parts)}>" if self.is_nested else self.kind


def quoted_field(name: str) -> str:
    """The name of a field inside the name of a type."""
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def nested_type(name: str) -> NestedType:
    """The type that a name says. Raises ValueError."""
    reader = _Reader(name)
    found = reader.type()
    if reader.rest:
        raise ValueError(name)
    return found


class _Reader:
    def __init__(self, name: str) -> None:
        self.rest = name.strip()

    def type(self) -> NestedType:
        found = _NAME.match(self.rest)
        if found is None:
            raise ValueError(self.rest)
        self.rest = self.rest[found.end() :].lstrip()
        kind = found[0].lower().replace(" ", "")
        if kind not in ("struct", "array", "map"):
            return NestedType(kind=kind)
        self._take("<")
        parts = self._parts(("element",) if kind == "array" else ("key", "value") if kind == "map" else ())
        self._take(">")
        return NestedType(kind=kind, parts=parts)

    def _parts(self, names: tuple[str, ...]) -> tuple[tuple[str, NestedType], ...]:
        """Parts that have these names; none: each says its own."""
        found = list[tuple[str, NestedType]]()
        while True:
            if names and len(found) == len(names):
                raise ValueError(self.rest)
            found.append((names[len(found)] if names else self._field(), self.type()))
            if not self.rest.startswith(","):
                break
            self._take(",")
        if names and len(found) != len(names):
            raise ValueError(self.rest)
        return tuple(found)

    def _field(self) -> str:
        found = _FIELD.match(self.rest)
        if found is None:
            raise ValueError(self.rest)
        self.rest = self.rest[found.end() :].lstrip()
        self._take(":")
        return found[2].strip() if found[1] is None else found[1].replace("``", "`")

    def _take(self, letter: str) -> None:
        if not self.rest.startswith(letter):
            raise ValueError(self.rest)
        self.rest = self.rest[1:].lstrip()
