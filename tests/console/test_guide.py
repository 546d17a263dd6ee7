"""A job from a form: the preview of its source, and the statements that it writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from lading.console import actions, queries
from lading.console.desk import Console
from lading.console.guide import (
    Guide,
    Mapped,
    is_same_source,
    mapped_again,
    mapped_to,
    missing_of,
    seen_columns,
    source_of,
    text_of,
)
from lading.console.statement_check import check_text
from lading.errors import LadingError
from tests.console.test_queries import ANYBODY, console

__all__ = ["console"]


def test_a_form_from_a_preview_to_rows_in_a_new_table(console: Console, tmp_path: Path) -> None:
    guide = Guide(kind="FILE", properties={"uri": f"{tmp_path}/in/*.csv", "kafka_topic": "of another kind"})
    rows, described = queries.look_at_source(console, ANYBODY, source_of(guide))
    assert [row[1] for row in rows.rows] == ["essen", "lagos"]
    columns, found = seen_columns(described)
    assert [(column.name, column.type) for column in columns] == [("id", "bigint"), ("city", "string")]
    assert found["format"] == "csv_with_names"
    guide = replace(guide, found=found, columns=columns)
    assert text_of(guide) == ""
    assert missing_of(guide) == ["the table", "the name of the job"]
    guide = replace(guide, table="shop.made", makes="delta", job="made", interval_s="1", more="skip_lines = 0")
    text = text_of(guide)
    assert check_text(text).is_ready
    assert (actions.create(console, ANYBODY, text, "default").name, '"skip_lines" = "0"' in text) == ("made", True)
    console.lading.run(["made"])
    place = queries.look_at_table(console, ANYBODY, "shop.made").table.location
    assert pl.scan_delta(place).collect()["city"].to_list() == ["essen", "lagos"]


def test_a_table_that_is_there_is_filled_by_name_and_what_is_not_filled_is_left_out(console: Console) -> None:
    source = [Mapped(name="ID", type="bigint", expression="`ID`"), Mapped(name="x", type="string", expression="x")]
    described = queries.describe_table(console, ANYBODY, "shop.delta_t")
    columns = mapped_to(described, source)
    assert [(column.name, column.expression) for column in columns] == [("id", "`ID`"), ("city", "")]
    # The table was chosen before the source was seen, or another source is seen: what somebody wrote stays.
    again = mapped_again(described, [], source, mapped_to(described, []))
    assert again == columns
    again[1] = replace(again[1], expression="upper(x)")
    other = [Mapped(name="Id", type="bigint", expression="`Id`"), Mapped(name="city", type="string", expression="city")]
    filled = mapped_again(described, source, other, again)
    assert [column.expression for column in filled] == ["`Id`", "upper(x)"]
    kafka = {"kafka_broker_list": "b:9092", "kafka_topic": "t"}
    guide = Guide(kind="KAFKA", properties=kafka, begin="now", table="shop.delta_t", makes="", columns=columns, job="k")
    text = text_of(replace(guide, allows_bad_rows=True))
    assert check_text(text).is_ready
    assert "CREATE TABLE" not in text
    for part in ("OFFSET_END", "INSERT INTO shop.delta_t (id)", '"session.enable_strict_cast" = "true"'):
        assert part in text


def test_what_was_seen_of_a_source_is_not_said_of_another() -> None:
    looked_at = Guide(kind="FILE", properties={"uri": "/in/*.csv"})
    assert is_same_source(looked_at, replace(looked_at, found={"format": "csv"}, table="t", job="j"))
    assert not is_same_source(looked_at, replace(looked_at, properties={"uri": "/other/*.csv"}))
    assert not is_same_source(looked_at, replace(looked_at, more="skip_lines = 1"))
    assert not is_same_source(looked_at, replace(looked_at, kind="S3"))


@pytest.mark.parametrize("name", ["a b", "sel`ect", "größe", 'x"y', "x'y"])
def test_any_name_is_quoted(name: str) -> None:
    columns = [Mapped(name=name, type="string", expression="1")]
    guide = Guide(kind="FILE", properties={"uri": "/x/*.csv"}, table="t", makes="delta", columns=columns, job=name)
    text = text_of(replace(guide, found={"format": "csv_with_names"}))
    mistake = check_text(text).mistake
    assert mistake is None or "name" in mistake.message  # Some names are refused; none breaks out of its quotes.


def test_a_source_that_does_not_answer_is_said(console: Console, tmp_path: Path) -> None:
    with pytest.raises(LadingError) as caught:
        queries.look_at_source(console, ANYBODY, source_of(Guide(kind="S3", properties={"uri": "nowhere"})))
    title, line = queries.told(caught.value)
    assert title
    assert line
