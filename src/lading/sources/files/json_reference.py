"""JSON by the letter: one document at a time. Slow, and the judge of what is right.

Every value becomes text: strings their content, numbers the letters they are written with, objects and lists compact
JSON, null and absent keys null. Of a key that stands twice in an object, the last one counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lading.model.json_text import Digits, render_json
from lading.model.row_formats import JsonOptions
from lading.model.rows import REST
from lading.sources.files.jsonpath import MISSING, follow, parse_jsonpath

NOT_UTF8 = "Not UTF-8"
TOO_DEEP = "Malformed JSON: nested too deeply"
IS_ARRAY = "JSON data is array-object, `strip_outer_array` must be TRUE"
IS_NO_ARRAY = "JSON data is not an array-object, `strip_outer_array` must be FALSE"
NO_OBJECT = "Expect json object value"
NO_ROOT = "json_root leads nowhere in this document"
NO_PATH = "No json path matches this document"

Value = str | None


@dataclass(frozen=True, slots=True)
class BadDocument:
    """Why a document gives no row."""

    reason: str


class JsonText:
    """Turns documents into rows as the options say."""

    def __init__(self, options: JsonOptions, names: Sequence[str]) -> None:
        self._options = options
        self._root = parse_jsonpath(options.json_root) if options.json_root else ()
        self._names = list(names)
        self._known = frozenset(names) - {REST}  # A document may have a field of that name itself.
        self._keeps_rest = REST in names
        self._paths = [parse_jsonpath(path) for path in options.jsonpaths]
        self._decoder = json.JSONDecoder(parse_float=Digits, parse_int=Digits, parse_constant=_refuse)

    def rows(self, raw: bytes) -> Iterator[list[Value] | BadDocument]:
        """The rows of one document."""
        value = self._parse(raw)
        if isinstance(value, BadDocument):
            yield value
            return
        rooted = follow(value, self._root)
        if rooted is MISSING:
            yield BadDocument(NO_ROOT)
        elif isinstance(rooted, list) != self._options.strip_outer_array:
            yield BadDocument(IS_ARRAY if isinstance(rooted, list) else IS_NO_ARRAY)
        else:
            for item in rooted if isinstance(rooted, list) else [rooted]:
                yield self._row(item)

    def element(self, raw: bytes) -> list[Value] | BadDocument:
        """The row of one element of an outer array that was taken apart already."""
        value = self._parse(raw)
        return value if isinstance(value, BadDocument) else self._row(value)

    def objects(self, raw: bytes) -> list[dict[str, Any]]:
        """The objects that would become rows, for somebody who wants to know their keys."""
        rooted = follow(self._parse(raw), self._root)
        return [item for item in (rooted if isinstance(rooted, list) else [rooted]) if isinstance(item, dict)]

    def _parse(self, raw: bytes) -> Any:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return BadDocument(NOT_UTF8)
        try:
            value = self._decoder.decode(text)
            if "\\u" in text:
                render_json(value).encode()
        except UnicodeEncodeError:
            return BadDocument("Malformed JSON: half a surrogate pair")
        except ValueError as error:
            return BadDocument(f"Malformed JSON: {error}")
        except RecursionError:
            return BadDocument(TOO_DEEP)
        return value

    def _row(self, value: Any) -> list[Value] | BadDocument:
        try:
            return self._values(value)
        except RecursionError:
            return BadDocument(TOO_DEEP)

    def _values(self, value: Any) -> list[Value] | BadDocument:
        if not isinstance(value, dict):
            return BadDocument(NO_OBJECT)
        if self._keeps_rest:
            rest = rest_of(value, self._known)
            return [self._text(rest if name == REST else value.get(name)) for name in self._names]
        if not self._paths:
            return [self._text(value.get(name)) for name in self._names]
        found = [follow(value, path) for path in self._paths]
        if all(item is MISSING for item in found):
            return BadDocument(NO_PATH)
        return [None if item is MISSING else self._text(item) for item in found]

    def _text(self, value: Any) -> Value:
        if value is None:
            return None
        if isinstance(value, str):
            return str(value)
        return render_json(value)


def rest_of(value: dict[str, Any], known: Collection[str]) -> dict[str, Any] | None:
    """The fields of an object that nobody asked for, but for nulls; None when there are none."""
    return {name: item for name, item in value.items() if name not in known and item is not None} or None


def _refuse(constant: str) -> Any:
    msg = f"{constant} is no JSON value"
    raise ValueError(msg)
