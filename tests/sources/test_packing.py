"""How files are shared between tasks."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from lading.sources.files.packing import SplitSizing, pack_files
from lading.sources.files.payload import FilePart
from lading.sources.files.spec import FilesSpec, Format, Place
from lading.storage.store import ObjectInfo

MEGABYTE = 1024 * 1024
PLAIN = FilesSpec(place=Place(scheme="file", bucket="", pattern="/*"), format=Format.CSV)


def info(number: int, size: int, suffix: str = "csv") -> ObjectInfo:
    return ObjectInfo(key=f"/{number:05d}.{suffix}", size=size, etag="e", modified=datetime(2024, 1, 1, tzinfo=UTC))


def weight(group: tuple[FilePart, ...], sizing: SplitSizing) -> int:
    return sum(part.end - part.begin + sizing.open_cost_bytes for part in group)


def test_equal_files_are_shared_evenly_and_not_cut() -> None:
    sizing = SplitSizing(parallel=2)
    groups = pack_files([info(number, 16 * MEGABYTE) for number in range(16)], PLAIN, sizing)
    assert [len(group) for group in groups] == [4, 4, 4, 4]
    assert all(part.is_whole for group in groups for part in group)


def test_a_file_is_cut_where_whole_files_would_not_share_evenly() -> None:
    groups = pack_files([info(number, 30 * MEGABYTE) for number in range(3)], PLAIN, SplitSizing(parallel=2))
    assert len(groups) == 2
    assert [part.is_whole for group in groups for part in group] == [True, False, False, True]


def test_packed_files_are_never_cut() -> None:
    groups = pack_files([info(n, 30 * MEGABYTE, "csv.gz") for n in range(3)], PLAIN, SplitSizing(parallel=2))
    assert all(part.is_whole for group in groups for part in group)


def test_little_is_not_worth_several_tasks() -> None:
    assert len(pack_files([info(number, 1000) for number in range(10)], PLAIN, SplitSizing(parallel=8))) == 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 300 * MEGABYTE), min_size=1, max_size=60), st.integers(1, 8))
def test_every_byte_is_in_one_part_and_parts_are_even(sizes: list[int], parallel: int) -> None:
    sizing = SplitSizing(parallel=parallel)
    files = [info(number, size) for number, size in enumerate(sizes)]
    groups = pack_files(files, PLAIN, sizing)
    parts = [part for group in groups for part in group]
    for file in files:
        mine = [part for part in parts if part.key == file.key]
        assert [part.begin for part in mine] == [0, *(part.end for part in mine[:-1])]
        assert mine[-1].end == file.size
    assert [part.key for part in parts] == sorted(part.key for part in parts)
    total = sum(size + sizing.open_cost_bytes for size in sizes)
    aim = max(total / max(1, len(groups)), sizing.smallest_bytes)
    assert max(weight(group, sizing) for group in groups) <= 1.5 * aim + sizing.open_cost_bytes * (len(files) + 1)
