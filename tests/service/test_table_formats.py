"""CREATE TABLE … USING, for every format of the registry, from the door."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.console.statement_check import check_text
from lading.errors import ConflictError, SqlError
from lading.tables.registry import NAMES, kind_of
from tests.service.conftest import Desk
from tests.tables.optional import skip_without

EXPECTED = "mismatched input 'hudi', expected DELTA, ICEBERG or PAIMON"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_an_unknown_format_is_refused_by_name_at_its_place(desk: Desk) -> None:
    with pytest.raises(SqlError, match=EXPECTED) as caught:
        desk.sql("CREATE TABLE t (a int) USING hudi")
    assert (caught.value.line, caught.value.column) == (1, 30)
    assert desk.sql("SHOW TABLES") == []
    desk.lading.close()


def test_the_console_marks_an_unknown_format_while_it_is_typed() -> None:
    mistake = check_text("CREATE TABLE t (a int) USING hudi;").mistake
    assert mistake is not None
    assert EXPECTED in mistake.message
    assert (mistake.line, mistake.column) == (1, 30)


@pytest.mark.parametrize("form", NAMES)
def test_a_table_of_every_format_is_made_shown_and_dropped(desk: Desk, form: str) -> None:
    skip_without(kind_of(form))
    desk.table(form=form.upper(), more="PARTITIONED BY (city)")
    with pytest.raises(ConflictError):
        desk.table(form=form)
    entry = desk.lading.catalog.entry("shop", "orders")
    assert entry.format == form
    assert desk.ids() == []
    desk.restart()
    assert desk.lading.catalog.open_table("shop", "orders").writer_spec().format == form
    assert [row[0] for row in desk.sql("DESCRIBE orders")] == ["id", "city", "amount"]
    desk.sql("DROP TABLE orders")
    assert not Path(entry.location).exists()
    desk.table(form=form)
    desk.lading.close()
