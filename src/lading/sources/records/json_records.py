"""Records of JSON, and lines of JSON files, as rows.

`files.json_reference` is the judge of what is right, one document at a time. Where they cannot differ from it, pyarrow
takes many flat objects at once, and orjson takes what is left document by document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from types import NoneType
from typing import Any

import pyarrow as pa

from lading.model.row_formats import JsonOptions
from lading.model.rows import REST
from lading.sources.files.json_reference import BadDocument, JsonText, Value, rest_of
from lading.sources.files.jsonpath import MISSING, Step, follow, parse_jsonpath
from lading.sources.records.arrow_json import MINUS_ZERO, FlatJson
from lading.sources.records.columns import text_column
from lading.sources.records.documents import SPACE, UNREAD, Documents, dumps_or_none, leave_unread, load
from lading.sources.records.parsed import Flaw, Taken, runs

_RUN_BYTES = 512 * 1024
"""Documents as Python objects take much memory, and more of them do not fit the processor's caches."""
_MALFORMED = "Malformed JSON"
_FRACTION = re.compile(rb"\d[.eE]")


@dataclass(slots=True)
class _Rows:
    objects: list[dict[str, Any]] = field(default_factory=list)
    """One per row; empty where the judge took the row apart."""
    origins: list[int] | None = None
    """For each row the document it is from. None: each document is one."""
    judged: dict[int, list[Value] | Flaw] = field(default_factory=dict)

    def origin(self, place: int) -> int:
        return place if self.origins is None else self.origins[place]


class JsonRecords:
    """Takes apart runs of records. `of_file`: they are lines of a file, of which few fail."""

    def __init__(self, options: JsonOptions, names: Sequence[str], *, fast: bool = True, of_file: bool = False) -> None:
        self._judge = JsonText(replace(options, read_by_line=True), names)
        self._root = parse_jsonpath(options.json_root) if options.json_root else ()
        self._opens_array = options.strip_outer_array
        self._has_paths = bool(options.jsonpaths)
        self._paths: list[tuple[Step, ...]] = [parse_jsonpath(path) for path in options.jsonpaths]
        self._known = frozenset(names) - {REST}
        self._keeps_rest = REST in names
        self._paths = self._paths or [(name,) for name in names if name != REST]
        keys = [path[0] for path in self._paths if len(path) == 1 and isinstance(path[0], str)]
        is_flat = len(keys) == len(self._paths)
        self._all_keys = itemgetter(*keys) if is_flat and len(keys) > 1 else None
        self._flat: FlatJson | None = None
        if fast and is_flat and 0 < len(set(keys)) == len(keys) and not self._opens_array and not self._root:
            self._flat = FlatJson(keys, needs_value=self._has_paths, keeps_rest=self._keeps_rest)
        self._load = load if fast else leave_unread
        self._of_file = of_file

    def take(self, values: Sequence[bytes]) -> Iterator[Taken]:
        for run in runs(values, _RUN_BYTES):
            yield self._take(run)

    def _take(self, values: Sequence[bytes]) -> Taken:
        columns = self._flat.parse(values) if self._flat else None
        return self._flat_rows(columns) if columns else self.take_documents(values)

    @property
    def knows_types(self) -> bool:
        """Whether lines may go the fast way: what values they have was seen."""
        return self._flat is not None and self._flat.knows_types

    def take_lines(self, block: bytes) -> Taken | None:
        """The rows of a block of lines, each one document; None when it must be taken document by document."""
        columns = self._flat.parse_lines(block) if self._flat else None
        return self._flat_rows(columns) if columns else None

    def _flat_rows(self, columns: Sequence[pa.Array]) -> Taken:
        count = len(columns[0])
        rests = [pa.nulls(count, pa.string())] if self._keeps_rest else []
        return Taken(records=count, rows=count, columns=[*columns, *rests])

    def take_documents(self, values: Sequence[bytes]) -> Taken:
        """The rows of one run of records, not the fast way."""
        if not values:
            return Taken(records=0, rows=0, columns=[])
        # Numbers with fractions that are written in another way than orjson's are for the judge in the end.
        is_for_judge = self._of_file and self._flat is not None and self._flat.quotes_numbers
        documents = (leave_unread if is_for_judge else self._load)(values, self._is_document)
        while True:
            rows = self._rows(documents)
            columns, doubtful = self._columns(rows, documents)
            doubtful = {number for number in doubtful if documents.parsed[number] is not UNREAD}
            if not doubtful:
                break
            for number in doubtful:
                documents.parsed[number] = UNREAD
        for place, row in rows.judged.items():
            given = [None] * len(columns) if isinstance(row, Flaw) else row
            for column, value in zip(columns, given, strict=True):
                column[place] = value
        return Taken(
            records=len(values),
            rows=len(rows.objects),
            columns=[text_column(column) for column in columns],
            owners=_owners(rows, documents),
            flaws={place: row for place, row in rows.judged.items() if isinstance(row, Flaw)},
        )

    def _is_document(self, line: bytes) -> bool:
        first = next(self._judge.rows(line), None)
        return not isinstance(first, BadDocument) or not first.reason.startswith(_MALFORMED)

    def _rows(self, documents: Documents) -> _Rows:
        if not self._opens_array and not self._root and set(map(type, documents.parsed)) == {dict}:
            return _Rows(documents.parsed)
        rows, origins = _Rows(), list[int]()
        for number, (text, parsed) in enumerate(zip(documents.texts, documents.parsed, strict=True)):
            items = None if parsed is UNREAD else self._items(parsed)
            if items is None:
                judged = [self._judged(text, row) for row in self._judge.rows(text.strip(SPACE))]
                rows.judged.update(enumerate(judged, len(rows.objects)))
                items = [{}] * len(judged)
            rows.objects.extend(items)
            origins.extend([number] * len(items))
        rows.origins = origins
        return rows

    def _items(self, parsed: Any) -> list[dict[str, Any]] | None:
        """The objects in a document; None when not all is as it should be."""
        rooted = follow(parsed, self._root)
        if isinstance(rooted, list) != self._opens_array:
            return None
        items = rooted if isinstance(rooted, list) else [rooted]
        return items if all(isinstance(item, dict) for item in items) else None

    @staticmethod
    def _judged(text: bytes, row: list[Value] | BadDocument) -> list[Value] | Flaw:
        return Flaw(text, row.reason) if isinstance(row, BadDocument) else row

    def _columns(self, rows: _Rows, documents: Documents) -> tuple[list[list[Any]], set[int]]:
        """Values, and the documents that only the judge can read rightly."""
        columns = self._by_keys(rows.objects) or [self._column(rows.objects, path) for path in self._paths]
        rests = [[rest_of(item, self._known) for item in rows.objects]] if self._keeps_rest else []
        doubtful = {rows.origin(place) for place in _take_missing_out(columns)} if self._has_paths else set()
        kinds = [set(map(type, column)) - {NoneType} for column in columns]
        if self._flat:
            self._flat.learn(kinds)
        columns += rests
        kinds += [{dict} for _ in rests]
        for column, found in zip(columns, kinds, strict=True):
            for place in self._odd_places(column, found):
                number = rows.origin(place)
                column[place] = self._text(column[place], documents, number)
                if column[place] is None:
                    doubtful.add(number)
        return columns, doubtful

    def _by_keys(self, objects: list[dict[str, Any]]) -> list[list[Any]] | None:
        """All columns at once, where every object has all of the keys."""
        if self._all_keys is None:
            return None
        try:
            return list(map(list, zip(*map(self._all_keys, objects), strict=True)))
        except KeyError:
            return None

    def _column(self, objects: list[dict[str, Any]], path: tuple[Step, ...]) -> list[Any]:
        if len(path) == 1 and isinstance(path[0], str):
            key, default = path[0], MISSING if self._has_paths else None
            return [item.get(key, default) for item in objects]
        return [follow(item, path) for item in objects]

    def _odd_places(self, column: list[Any], kinds: set[type]) -> list[int]:
        """Where values are whose text depends on how they were written."""
        if kinds & {dict, list, float}:
            return [
                place
                for place, value in enumerate(column)
                if not isinstance(value, str | bool | None) and _is_odd(value)
            ]
        return [place for place, value in enumerate(column) if value == 0 and _is_odd(value)] if int in kinds else []

    def _text(self, value: Any, documents: Documents, number: int) -> str | int | None:
        """The text of a value as the judge would write it; None where that is not certain."""
        has_minus_zero = MINUS_ZERO.search(documents.texts[number]) is not None
        if isinstance(value, int):
            return None if has_minus_zero else value
        written = dumps_or_none(value)
        if written is None:
            return None
        has_letters = has_minus_zero or _FRACTION.search(written)
        return None if has_letters and not documents.is_canonical(number) else written.decode()


def _is_odd(value: Any) -> bool:
    """Whole numbers are written in one way, all but zero."""
    return not isinstance(value, int) or (value == 0 and not isinstance(value, bool))


def _take_missing_out(columns: list[list[Any]]) -> list[int]:
    """Put nulls where paths lead nowhere; returns the rows in which all of them do."""
    empty = [place for place, value in enumerate(columns[0]) if value is MISSING]
    for column in columns[1:]:
        empty = [place for place in empty if column[place] is MISSING]
    for column in columns:
        if MISSING in column:
            column[:] = [None if value is MISSING else value for value in column]
    return empty


def _owners(rows: _Rows, documents: Documents) -> Sequence[int] | None:
    if rows.origins is None or documents.owners is None:
        return documents.owners if rows.origins is None else rows.origins
    return [documents.owners[origin] for origin in rows.origins]
