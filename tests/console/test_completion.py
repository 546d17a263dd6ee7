"""What can be written next, without a browser: `|` is the cursor."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lading.console import queries
from lading.console.completion import Known, complete
from lading.console.desk import Console
from lading.errors import SqlError
from lading.sources.registry import kinds
from lading.sql.statements.load_specs import load_with_secrets
from lading.sql.syntax.parse import parse_statement
from tests.console.test_queries import ANYBODY, console

__all__ = ["console"]

COLUMNS = {"orders": {"id": "bigint", "city": "string"}, "shop.clicks": {"url": "string"}}


def columns(name: str) -> Mapping[str, str]:
    return COLUMNS.get(name, {})


KNOWN = Known(tables={"orders": "delta", "shop.clicks": "iceberg"}, columns=columns)


def offered(text: str, *, is_asked: bool = False) -> list[str]:
    at = text.index("|")
    found = complete(text.replace("|", ""), at, KNOWN, is_asked=is_asked)
    return [option.label for option in found.options]


def test_the_first_words_of_a_statement() -> None:
    assert offered("cr|")[:2] == ["CREATE JOB", "CREATE ROUTINE LOAD"]
    assert offered("SHOW TABLES; create ro|") == ["CREATE ROUTINE LOAD", "CREATE ROLE"]
    found = complete(text := "-- a note\nSHOW TABLES; create   ro", len(text), KNOWN)
    assert found.start == 23  # All of its words are replaced, whatever stands between them.
    assert "SELECT" in offered("|", is_asked=True)
    assert offered("|") == []
    assert offered("DESC|") == []  # It is a statement as it stands.


def test_properties_of_each_kind_of_source_and_of_jobs() -> None:
    assert offered('SELECT * FROM S3("ur|")') == ["uri"]
    assert "kafka_topic" in offered('FROM KAFKA("|')
    assert "kafka_table_name_location" not in offered('FROM KAFKA("|')
    assert "s3.region" not in offered('FROM FILE("|')
    assert offered('FROM KINESIS("kinesis_stream" = "x", "aws.r|')[:2] == ["aws.region", "aws.role_arn"]
    assert "kinesis_stream" not in offered('FROM KINESIS("kinesis_stream" = "x", "kin|')
    assert offered('FROM KINESIS("kinesis_stream" = "ki|') == []  # A value.
    assert offered("SELECT * FROM FILE(ur|") == ['"uri" = ']
    assert offered('CREATE JOB j PROPERTIES ("max_i|') == ["max_interval"]
    assert offered('ALTER JOB j PROPERTIES ("max_i|') == ["max_interval"]
    assert "max_error_number" in offered('CREATE ROUTINE LOAD r ON t PROPERTIES ("max_|')
    assert offered("SELECT upper('a|") == []


def test_tables_where_one_is_named() -> None:
    assert offered("SELECT * FROM |", is_asked=True) == ["orders", "shop.clicks", "S3(", "FILE(", "KAFKA(", "KINESIS("]
    assert offered("SELECT * FROM cl|") == ["shop.clicks"]
    assert offered("CREATE JOB j ON STREAMING DO INSERT INTO or|") == ["orders"]
    assert offered("CREATE ROUTINE LOAD r ON or|") == ["orders"]
    assert offered("CREATE TABLE or|") == []  # A new one.
    assert offered("CREATE JOB or|") == []


def test_columns_of_the_chosen_table() -> None:
    assert offered("SELECT ci| FROM orders") == ["city"]
    assert offered("SELECT i|, city FROM orders; SELECT 1 FROM shop.clicks") == ["id"]
    assert offered("SELECT u| FROM shop.clicks") == ["url"]
    assert offered("SELECT orders.| FROM orders") == ["orders.id", "orders.city"]
    assert offered('CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT c| FROM FILE("uri" = "x")') == ["city"]
    assert offered("CREATE ROUTINE LOAD r ON orders COLUMNS(c|") == ["city"]
    assert offered("SELECT id| FROM orders") == []  # It stands there already: Enter is a new line.
    assert offered("SELECT id AS d|") == []
    assert "WHERE" in offered("SELECT id FROM orders wh|")


@pytest.mark.parametrize(
    "text", ["'", '"', "`", "a.", "(((", "/*", "--", "#", "select 'a\\", "\ud83d", "a..b.", ")", ","]
)
def test_no_text_is_too_wrong_for_it(text: str) -> None:
    for at in range(len(text) + 1):
        complete(text, at, KNOWN, is_asked=True)


@pytest.mark.parametrize("kind", kinds())
def test_no_property_that_is_offered_is_unknown_to_its_source(kind: str) -> None:
    """Values may be refused; names not."""
    assert kinds()[kind].property_names
    for name in kinds()[kind].property_names:
        text = f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT a FROM {kind}("{name}" = "x")'
        statement = parse_statement(text)
        with pytest.raises(SqlError) as caught:
            kinds()[kind].check(load_with_secrets(statement))  # type: ignore[arg-type]  # It is a CREATE JOB.
        assert "nvalid" not in caught.value.what or "x" in caught.value.what, name


def test_a_visitor_is_told_of_tables_and_columns(console: Console) -> None:
    known = queries.known_names(console, ANYBODY, "shop", asks_others=False)
    assert "delta_t" in known.tables
    assert list(known.columns("delta_t")) == list(known.columns("shop.delta_t")) == ["id", "city"]
    assert known.columns("nothing") == known.columns("a.b.c.d") == known.columns("other.shop.t") == {}
