"""Text that a user chose never reaches Spark outside of quotes: typed as a user with LOAD on one table would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

from lading.errors import SqlError
from lading.service.compile.mapping import asked_columns, map_rows
from lading.service.facade import Lading
from lading.sql.expressions.mapping import translate_expression
from lading.sql.expressions.type_names import parse_type
from lading.sql.properties.values import timezone
from lading.sql.statements.jobs import CreateRoutineLoad
from lading.sql.statements.load_specs import load_spec
from lading.sql.syntax.parse import parse_statement
from lading.testing.marked import secret

PASSWORD = secret("long-enough")
EVIL = """java_method("java.lang.System", "getenv", "LADING_SECRET_KEY")"""
UNIT = f"`HOUR, now(), now()) + length({EVIL}) + timestampdiff(HOUR`"
MAPPINGS = [
    *(
        f"{name}({UNIT}, now(), now())"
        for name in ("timestampdiff", "timestampadd", "dateadd", "datediff", "date_diff")
    ),
    "timestampdiff(`HOUR`, now(), now())",
    "timestampdiff('HOUR', now(), now())",
    "timestampdiff(lower('HOUR'), now(), now())",
    f"timestampdiff({EVIL}, now(), now())",
    f"extract(`year from now()) + length({EVIL}) + extract(year` from now())",
    "extract(epoch from now())",
    "extract('year' from now())",
    f"date_add(now(), interval 1 `day + length({EVIL})`)",
    "date_add(now(), interval 1 day_hour)",
    "xpath_string('<!DOCTYPE a SYSTEM \"http://127.0.0.1:1/x\"><a/>', '/a')",
    "from_xml('<a/>', 'a INT')",
    "schema_of_xml('<a/>')",
    "input_file_name()",
    "current_user()",
]


class ReachedSparkError(Exception):
    """The statement was not refused."""


def no_spark(*_: object, **__: object) -> NoReturn:
    raise ReachedSparkError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    with Lading(tmp_path / "home", allow_private_endpoints="true") as lading:
        lading.sql(
            f"""CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT) USING delta;
            CREATE USER ann IDENTIFIED BY '{PASSWORD}'; GRANT LOAD ON shop.orders TO ann;
            GRANT USAGE ON IDENTITY service TO ann;
            CREATE USER bob IDENTIFIED BY '{PASSWORD}'; GRANT SELECT ON shop.orders TO bob"""
        )
        monkeypatch.setattr(lading, "spark", no_spark)
        monkeypatch.setattr(lading.queries, "ask", no_spark)
        yield lading


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_a_user_with_load_cannot_put_text_into_a_mapping(home: Lading, mapping: str) -> None:
    ann = home.session("ann", "shop")
    for text in (
        f"CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT {mapping} "
        'FROM S3("uri"="s3://b/k/*.json", "format"="json")',
        f"CREATE JOB j ON STREAMING DO INSERT INTO orders SELECT id "
        f'FROM S3("uri"="s3://b/k/*.json", "format"="json") WHERE {mapping} > 0',
        f'CREATE ROUTINE LOAD r ON orders COLUMNS(x, id = {mapping}) PROPERTIES("format"="json") FROM KAFKA('
        '"kafka_broker_list"="127.0.0.1:1", "kafka_topic"="t")',
        f'CREATE ROUTINE LOAD r ON orders COLUMNS(id), PRECEDING FILTER {mapping} > 0 PROPERTIES("format"="json") '
        'FROM KAFKA("kafka_broker_list"="127.0.0.1:1", "kafka_topic"="t")',
    ):
        with pytest.raises(SqlError):
            ann.sql(text)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_a_user_with_select_cannot_put_text_into_a_query(home: Lading, mapping: str) -> None:
    with pytest.raises(SqlError):
        home.session("bob", "shop").sql(f"SELECT {mapping} FROM orders")


@pytest.mark.parametrize("user", ["bob", "root"])
def test_the_name_of_a_lateral_view_stays_a_name(home: Lading, user: str) -> None:
    """sqlglot writes it without quotes."""
    odd = "x AS y FROM (SELECT TRANSFORM(1) USING 'id') --"
    with pytest.raises(SqlError, match="Spark would see it without its quotes"):
        home.session(user, "shop").sql(f"SELECT * FROM orders LATERAL VIEW explode(array(1)) `{odd}` AS z")
    with pytest.raises(ReachedSparkError):
        home.session(user, "shop").sql("SELECT * FROM orders LATERAL VIEW explode(array(1)) `x` AS `odd name`")


def test_the_error_says_where_and_which_units_there_are() -> None:
    with pytest.raises(SqlError) as caught:
        translate_expression("id + timestampdiff(`a b`, x, y)")
    assert caught.value.offending == "`a b`"
    assert "Units are: DAY, HOUR" in str(caught.value)
    assert translate_expression("TimestampDiff(hour, a, b)").text == "TIMESTAMPDIFF(HOUR, `a`, `b`)"


def test_a_refused_function_says_why() -> None:
    with pytest.raises(SqlError, match="xpath cannot be used: Spark's XML reader fetches"):
        translate_expression("xpath(a, '/b')")


def where_of(columns: str, where: str) -> str:
    statement = parse_statement(
        f'CREATE ROUTINE LOAD r ON t COLUMNS({columns}), WHERE {where} PROPERTIES("format"="json") '
        'FROM KAFKA("kafka_broker_list"="h:1", "kafka_topic"="t")'
    )
    assert isinstance(statement, CreateRoutineLoad)
    target = pa.schema([pa.field(name, pa.string()) for name in ("x", "y")])
    load = load_spec(statement)
    fields, _ = asked_columns(load, target, pa.schema([]))
    return map_rows(load, target, {}, pa.schema([(name, pa.string()) for name in fields])).where or ""


def test_no_value_of_a_filter_is_put_between_the_quotes_of_another() -> None:
    """A text that holds the name of a stand-in is a text."""
    payload = f"' || {EVIL} || '".replace("'", "")
    for columns, where in (
        (f"a, x = '`__lading_1`', y = '{payload}'", "x = y"),
        (f"a, x = '{payload}', y = '1'", "x = '`__lading_0`' AND y = '`__lading_1`'"),
    ):
        text = where_of(columns, where)
        assert "java_method" not in outside_of_quotes(text), text
        assert text.count("java_method") == 1


def outside_of_quotes(text: str) -> str:
    outside, quote, at = "", "", 0
    while at < len(text):
        if quote and text[at] == "\\":
            at += 1
        elif quote:
            quote = "" if text[at] == quote else quote
        elif text[at] in "'\"`":
            quote = text[at]
        else:
            outside += text[at]
        at += 1
    return outside


def test_a_time_zone_is_no_text_where_zones_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.sql.properties.values._zones", frozenset)
    assert timezone("timezone", "Mars/Olympus") == "Mars/Olympus"
    with pytest.raises(SqlError, match="not a time zone"):
        timezone("timezone", f"x') || {EVIL} || ('")


def test_names_of_fields_stay_names() -> None:
    assert parse_type("struct<`x:int,y` int, z: string>").name == "struct<`x:int,y`:int,z:string>"
    assert parse_type("struct<`it``s>` int>").name == "struct<`it``s>`:int>"
