"""From files to splits: small files are packed together, large ones are cut where their format allows it.

Positions of one batch form a chain: "" → key of the last file of the first split → … → key of the last file. Inside a
file that is cut the position is written `key#offset`. All parts of a file are in one batch, so that such a position
stands between two splits only and is never committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lading.sources.files.payload import FilePart
from lading.sources.files.spec import Compression, FilesSpec, Format, compression_of
from lading.storage.store import ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSizing:
    """How large splits should be."""

    target_bytes: int = 128 * 1024 * 1024
    parallel: int = 2
    """Tasks that run at one time; a batch is cut into as many splits where it is large enough."""
    smallest_bytes: int = 4 * 1024 * 1024
    """Less is not worth a task of its own."""
    max_splits: int = 512
    open_cost_bytes: int = 64 * 1024
    """What opening one more file costs, in bytes that could be read meanwhile."""


def pack_files(
    files: Sequence[ObjectInfo], spec: FilesSpec, sizing: SplitSizing, *, cuts: bool = True
) -> list[tuple[FilePart, ...]]:
    """Groups of files and parts of files, in the order of their keys, of even weight; `cuts`: parts are allowed.

    The files stand in a row, each as long as it weighs, and the row is divided evenly. Where a border falls close to
    the edge of a file it moves there; elsewhere it cuts the file, or, if that cannot be, the whole file goes where most
    of it lies.
    """
    total = sum(file.size + sizing.open_cost_bytes for file in files)
    aim = max(1, _divide(total, _group_count(total, sizing)))
    groups: dict[int, list[FilePart]] = {}
    before = 0
    for file in files:
        weight = file.size + sizing.open_cost_bytes
        for part in _cut(file, spec, _borders(file.size, before, weight, aim) if cuts else ()):
            middle = before + weight * (part.begin + part.end) // (2 * file.size) if file.size else before
            groups.setdefault(middle // aim, []).append(part)
        before += weight
    return [tuple(groups[number]) for number in sorted(groups)]


def _group_count(total: int, sizing: SplitSizing) -> int:
    """A multiple of what runs at one time, so that all of it ends at one time."""
    rounds = max(1, _divide(_divide(total, sizing.target_bytes), sizing.parallel))
    worth = max(1, _divide(total, sizing.smallest_bytes))
    return min(rounds * sizing.parallel, worth, sizing.max_splits)


def _borders(size: int, before: int, weight: int, aim: int) -> list[int]:
    """Where borders fall inside a file, without those close to its edges."""
    slack = max(1, aim // 8)
    if size < 2 * slack:
        return []
    first, last = _divide(before, aim), (before + weight) // aim
    offsets = [size * (at * aim - before) // max(1, weight) for at in range(first, last + 1)]
    return [offset for offset in offsets if slack <= offset <= size - slack]


def end_of(part: FilePart) -> str:
    """The position after a part."""
    return part.key if part.end == part.size else f"{part.key}#{part.end}"


def is_cuttable(key: str, spec: FilesSpec) -> bool:
    """Whether rows of a file can be found from its middle. In enclosed csv they can unless a field has lines; the task
    that reads where the first of these begins finds out (`CsvReader`)."""
    if not spec.format.is_text:
        return True
    if compression_of(key, spec) is not Compression.PLAIN:
        return False
    if spec.format is Format.JSON:
        return spec.json.read_by_line
    return not _has_border(spec.csv.line_delimiter)


def _cut(file: ObjectInfo, spec: FilesSpec, borders: Sequence[int]) -> list[FilePart]:
    inner = borders if borders and is_cuttable(file.key, spec) else ()
    return [FilePart(file.key, file.size, file.etag, *span) for span in pairwise([0, *inner, file.size])]


def _has_border(text: str) -> bool:
    """Whether a text can overlap with itself: then its places depend on where the search begins."""
    return any(text[:length] == text[-length:] for length in range(1, len(text)))


def _divide(number: int, by: int) -> int:
    return -(-number // by)
