"""Parts of enclosed csv files give the rows of the whole, or say that they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lading.errors import LINES_IN_FIELDS, StageError
from lading.model.row_formats import CsvOptions
from lading.sources.files.payload import FilePart
from lading.sources.files.rows import RowShaper
from lading.sources.files.spec import FilesSpec, Format, Place
from lading.sources.files.text_files import csv_batches, open_text

OPTIONS = CsvOptions(column_separator=",", enclose='"')
SPEC = FilesSpec(place=Place(scheme="file", bucket="", pattern="/*"), format=Format.CSV, csv=OPTIONS)
NAMES = ("a", "b")


class Content(BytesIO):
    """A file that stays as it is."""

    def check(self) -> None:
        """Nobody replaces it."""


def rows_of(content: bytes, *borders: int) -> list[object]:
    return [row for part in pairwise([0, *borders, len(content)]) for row in _part(content, *part)]


def _part(content: bytes, begin: int, end: int) -> Iterator[object]:
    shaper = RowShaper(pa.schema([(name, pa.string()) for name in NAMES]), "f", {})
    text = open_text(Content(content), FilePart("f", len(content), "e", begin, end), SPEC, "f")
    for batch in csv_batches(text, SPEC, shaper, "f"):
        columns = [*NAMES, "__raw", "__error"]
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def rows_or_refused(content: bytes, *borders: int) -> list[object] | None:
    try:
        return rows_of(content, *borders)
    except StageError as error:
        if error.code != LINES_IN_FIELDS:
            raise
        return None


FIELD = st.one_of(
    st.text("ab1 ", max_size=4), st.text('ab,"', max_size=5).map(lambda text: '"' + text.replace('"', '""') + '"')
)
LINE = st.lists(FIELD, min_size=1, max_size=3).map(",".join)


@settings(deadline=None)
@given(st.lists(LINE, min_size=1, max_size=12), st.lists(st.integers(1, 100), max_size=3))
def test_parts_of_files_with_one_record_a_line_give_all_rows(lines: list[str], cuts: list[int]) -> None:
    content = "\n".join(lines).encode()
    borders = sorted({cut for cut in cuts if cut < len(content)})
    assert sorted(map(str, rows_of(content, *borders))) == sorted(map(str, rows_of(content)))


@settings(deadline=None)
@given(st.text('a,"\n', min_size=1, max_size=40), st.lists(st.integers(1, 40), min_size=1, max_size=3))
@example('x,"1\n2,3\n4"\n5,6\n', [6])
@example('x,"1\n2\n', [4])
def test_parts_of_any_file_give_all_rows_or_are_refused(text: str, cuts: list[int]) -> None:
    content = text.encode()
    borders = sorted({cut for cut in cuts if cut < len(content)})
    found = rows_or_refused(content, *borders)
    assert found is None or sorted(map(str, found)) == sorted(map(str, rows_of(content)))


def test_a_field_with_lines_is_refused_in_a_part() -> None:
    content = b"1,x\n" * 50 + b'2,"two\nlines"\n' + b"3,x\n" * 50
    with pytest.raises(StageError) as caught:
        rows_of(content, 100, 300)
    assert caught.value.code == LINES_IN_FIELDS
    assert len(rows_of(content)) == 101
