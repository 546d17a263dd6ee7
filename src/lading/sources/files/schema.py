"""Columns of files that nobody declared: from the first file there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pyarrow as pa

from lading.clock import Clock
from lading.errors import FILE_UNREADABLE, SourceError
from lading.sources.files.blocks import line_blocks
from lading.sources.files.csv_reference import CsvText
from lading.sources.files.errors import file_unreadable, translating
from lading.sources.files.json_reference import JsonText
from lading.sources.files.json_scan import JsonScanner
from lading.sources.files.jsonpath import parse_jsonpath
from lading.sources.files.payload import FilePart
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format
from lading.sources.files.text_files import OpenText, open_text
from lading.sources.files.watched import WatchedFile, judging
from lading.storage.store import ByteFile, ObjectInfo, ReadStore, open_store

_SAMPLE_BYTES = 1024 * 1024
_SAMPLE_DOCUMENTS = 1000
MOST_LOOKED_AT = 100
"""Files that cannot be read, before the first one that can."""


def infer_schema(spec: FilesSpec, *, store: ReadStore | None = None, clock: Clock | None = None) -> FilesSpec | None:
    """The spec with the columns of the first file, or as it is if it has some; None when there is no file yet.

    Columns of csv and json are strings: c1, c2, … for csv without names, the keys of the first documents for json.
    """
    if spec.schema is not None:
        return spec
    place = store or open_store(spec.place.root, spec.s3)
    failed: SourceError | None = None
    for file in FilesSource(spec, store=place, clock=clock).first_files(MOST_LOOKED_AT if spec.skips_unreadable else 1):
        try:
            return _with_columns_of(spec, place, file)
        except SourceError as error:
            if error.code != FILE_UNREADABLE:
                raise
            failed = failed or error
    if failed is not None:
        raise failed
    return None


def _with_columns_of(spec: FilesSpec, place: ReadStore, first: ObjectInfo) -> FilesSpec:
    uri = place.uri_of(first.key)
    with translating(uri):
        file = WatchedFile(place.open(first.key, if_match=first.etag, size=first.size, random=not spec.format.is_text))
        try:
            with judging(file, uri):
                found = _columns(spec, file, first, uri)
        finally:
            file.close()
    kept = [field for field in found if field.name not in spec.path_partition_keys]
    if not kept:
        raise file_unreadable(uri, "no columns can be found in it")
    return replace(spec, schema=pa.schema(kept))


def _columns(spec: FilesSpec, file: ByteFile, info: ObjectInfo, uri: str) -> pa.Schema:
    if not spec.format.is_text:
        from lading.sources.files.columnar import columnar_schema

        return columnar_schema(file, spec)
    if spec.format is Format.JSON and spec.json.jsonpaths:
        return _strings([_path_name(path, number) for number, path in enumerate(spec.json.jsonpaths, 1)])
    text = open_text(file, FilePart(info.key, info.size, info.etag, 0, info.size), spec, uri)
    if spec.format is Format.JSON:
        return _strings(_json_names(text, spec))
    return _strings(list(text.header) or _csv_names(text, spec))


def _strings(names: list[str]) -> pa.Schema:
    return pa.schema([pa.field(name, pa.string()) for name in dict.fromkeys(names)])


def _path_name(path: str, number: int) -> str:
    steps = parse_jsonpath(path)
    return steps[-1] if steps and isinstance(steps[-1], str) else f"c{number}"


def _csv_names(text: OpenText, spec: FilesSpec) -> list[str]:
    reader = CsvText(spec.csv)
    content = text.stream.read(_SAMPLE_BYTES)
    records, _ = reader.records(content, text.lines, at_end=len(content) < _SAMPLE_BYTES)
    for record in records:
        if record.raw:
            return [f"c{number}" for number in range(1, len(reader.fields(record.raw.decode(errors="replace"))) + 1)]
    return []


def _json_names(text: OpenText, spec: FilesSpec) -> list[str]:
    """Keys of the first documents, in the order they are met."""
    parser = JsonText(spec.json, [])
    names: dict[str, None] = {}
    for raw in islice(_documents(text, spec), _SAMPLE_DOCUMENTS):
        for found in parser.objects(raw):
            names.update(dict.fromkeys(found))
    return list(names)


def _documents(text: OpenText, spec: FilesSpec) -> Iterator[bytes]:
    if spec.json.read_by_line:
        for block in line_blocks(text.stream.read, text.lines):
            yield from (line for line in block.split(text.lines.delimiter) if line.strip())
        return
    opens_array = spec.json.strip_outer_array and not spec.json.json_root
    for raw, _ in JsonScanner(text.stream.read, text.lines, opens_array=opens_array).documents():
        yield raw
