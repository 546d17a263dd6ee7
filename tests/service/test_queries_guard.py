"""What a query can reach: the tables it was checked for, and nothing else of Spark or of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import (
    ConfigError,
    DeniedError,
    LadingError,
    NotFoundError,
    NotSupportedError,
    SqlError,
    TableNotFoundError,
)
from lading.service.facade import Lading
from lading.service.limits.cancellation import CancelToken
from lading.service.result import Result
from lading.sql.expressions.queries import TableQuery, read_query
from lading.sql.statements.jobs import Query
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.parse import parse_statement
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.support.examples import examples

PASSWORD = secret("long-enough")


class ReachedSparkError(Exception):
    """The query was not refused."""


def no_spark(*_: object, **__: object) -> Result:
    raise ReachedSparkError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    with Lading(tmp_path / "home") as lading:
        lading.sql(
            f"""CREATE DATABASE shop; CREATE DATABASE hr; CREATE DATABASE mine;
            CREATE TABLE shop.orders (id BIGINT) USING delta; CREATE TABLE hr.wages (id BIGINT) USING delta;
            CREATE USER bob IDENTIFIED BY '{PASSWORD}'; CREATE USER carl IDENTIFIED BY '{PASSWORD}';
            GRANT SELECT ON mine TO bob; GRANT SELECT ON shop.orders TO bob; GRANT SELECT ON *.* TO carl"""
        )
        monkeypatch.setattr(lading.queries, "ask", no_spark)
        yield lading


def read(text: str) -> TableQuery:
    query = parse_statement(text)
    assert isinstance(query, Query)
    return read_query(query)


def names(text: str) -> set[str]:
    return {str(name) for name in read(text).tables}


@pytest.mark.parametrize(
    "text",
    [
        "WITH wages AS (SELECT * FROM wages) SELECT * FROM wages",
        "SELECT * FROM wages WHERE 1 IN (WITH wages AS (SELECT 1) SELECT 1)",
        "WITH a AS (SELECT * FROM wages), wages AS (SELECT 1) SELECT * FROM a",
        "WITH x AS (WITH wages AS (SELECT 1) SELECT * FROM wages) SELECT * FROM x, wages",
        "SELECT (WITH wages AS (SELECT 1 AS one) SELECT one FROM wages) UNION ALL SELECT id FROM wages",
        "WITH wages AS (SELECT 1) SELECT * FROM hr.wages",
        "SELECT 1 FROM shop.orders o JOIN shop.orders p ON EXISTS (SELECT 1 FROM wages)",
        "SELECT * FROM shop.orders, LATERAL (SELECT * FROM wages) x",
        "SELECT 1 ORDER BY (SELECT max(id) FROM wages)",
        "TABLE wages UNION SELECT 1",
        "SELECT (TABLE wages)",
    ],
)
def test_a_table_of_others_is_found_wherever_it_stands(home: Lading, text: str) -> None:
    session = home.session("bob", "hr")
    with pytest.raises((DeniedError, SqlError)):
        session.sql(text)


def test_names_of_a_query_hide_tables_only_where_they_count() -> None:
    assert names("WITH x AS (SELECT 1) SELECT * FROM x") == set()
    assert names("WITH X AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM (SELECT * FROM Y) z") == set()
    assert names("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM x) SELECT * FROM x") == set()
    assert names("WITH x AS (SELECT * FROM y), y AS (SELECT * FROM x) SELECT * FROM y") == {"y"}
    assert names("WITH x AS (SELECT 1) SELECT * FROM a.x, x, b") == {"a.x", "b"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT reflect('java.lang.System','getenv','LADING_SECRET_KEY')",
        "SELECT `reflect`('java.lang.System','getenv','LADING_SECRET_KEY')",
        "SELECT ReFlect('java.lang.System','exit',0)",
        "SELECT java_method('java.lang.System','exit',0)",
        "SELECT try_reflect('java.lang.System','exit',0)",
        "SELECT system.builtin.reflect('java.lang.System','exit',0)",
        "SELECT input_file_name(), version(), current_user(), session_user()",
        "SELECT current_user",
        "SELECT extract(`year from now()), reflect('java.lang.System','exit',0), extract(year` from now())",
        "SELECT cast(1 as `odd), reflect(1), cast(1 as odd`)",
        "SELECT * FROM shop.orders LATERAL VIEW reflect('java.lang.System','exit',0) q AS z",
        "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
        "SELECT 1 INTO copied",
        "WITH x AS (DELETE FROM shop.orders) SELECT 1",
        "WITH x AS (SELECT 1) INSERT INTO shop.orders SELECT * FROM x",
        "SELECT * FROM range(3)",
        "SELECT * FROM read_files('/etc/passwd')",
        "SELECT * FROM IDENTIFIER('hr.wages')",
        "SELECT * FROM spark_catalog.shop.orders",
        "SELECT * FROM shop.orders.history",
        "SELECT * FROM shop.orders FOR VERSION AS OF 1",
        "SELECT @@version, @x",
        "SELECT ?",
        "SELECT 1; SET spark.x=1",
        "SELECT 1; ADD JAR '/x.jar'",
        "SELECT 1; CREATE VIEW v AS SELECT 1",
    ],
)
def test_what_does_more_than_read_never_reaches_spark(home: Lading, text: str) -> None:
    for session in (home.session("carl", "shop"), home.session("root", "shop")):
        with pytest.raises((SqlError, NotFoundError)):
            session.sql(text)


@pytest.mark.parametrize("form", ["text", "parquet", "csv", "json", "binaryFile", "delta", "orc", "avro", "xml"])
def test_a_file_is_not_a_table(home: Lading, tmp_path: Path, form: str) -> None:
    secret = tmp_path / "home" / "service.json"
    secret.write_text('{"token":"ROOT"}')
    for user in ("carl", "root"):
        for text in (f"SELECT * FROM {form}.`{secret}`", f"SELECT * FROM {form}.`{str(secret).replace('.', '_')}`"):
            with pytest.raises((TableNotFoundError, NotSupportedError), match=r"Unknown (table|database)|not a table"):
                home.session(user, "shop").sql(text)


def test_views_of_other_queries_have_no_names(home: Lading) -> None:
    for text in ("SELECT * FROM hr__wages", "SELECT 'wages' FROM hr__wages", "SELECT * FROM global_temp.hr__wages"):
        with pytest.raises((TableNotFoundError, DeniedError)):
            home.session("bob", "mine").sql(text)


def test_an_allowed_query_goes_to_spark(home: Lading) -> None:
    with pytest.raises(ReachedSparkError):
        home.session("bob", "shop").sql("WITH x AS (SELECT * FROM orders) SELECT count(*) FROM x")


def test_spark_is_told_no_name_that_somebody_wrote() -> None:
    checked = read("WITH wages AS (SELECT * FROM wages w) SELECT wages.id FROM wages, hr.pay, b JOIN (b) ON b.x = 1")
    views = {name: f"v{number}" for number, name in enumerate(sorted(checked.tables, key=str))}
    text = checked.render(views, iter(f"c{number}" for number in range(9)).__next__)
    from sqlglot import exp, parse_one

    found = {table.name for table in parse_one(text, dialect="spark").find_all(exp.Table)}
    assert found == {*views.values(), "c0"}
    assert views.keys() == {QualifiedName(name="wages"), QualifiedName(name="pay", db="hr"), QualifiedName(name="b")}


WORDS = st.sampled_from([*"'\"`\\;${}\na )(,", "\\'", "''", "--", "/*", "*/", "reflect(1)"])
TEXTS = st.lists(WORDS, max_size=8).map("".join)


@settings(max_examples=examples(150), deadline=None)
@given(TEXTS, TEXTS)
def test_no_text_gets_out_of_its_quotes(content: str, name: str) -> None:
    """Whatever was written in quotes is in quotes for Spark too, whose rules are: \\ takes one, a quote ends."""
    quoted = content.replace("\\", "\\\\").replace("'", "''")
    column = name.replace("`", "``") or "x"
    try:
        text = read(f"SELECT '{quoted}' AS `{column}`, CAST(a AS INT) FROM t").render(
            {QualifiedName(name="t"): "v"}, lambda: "c"
        )
    except LadingError:
        return
    assert bare(text) == "SELECT  AS , CAST(a AS INT) FROM  AS "


def bare(text: str) -> str:
    """What Spark sees outside of quotes."""
    outside, at = "", 0
    while at < len(text):
        if text[at] == "'":
            at += 1
            while text[at] != "'":
                at += 2 if text[at] == "\\" else 1
        elif text[at] == "`":
            at += 1
            while text[at] != "`" or text[at : at + 2] == "``":
                at += 2 if text[at] == "`" else 1
        else:
            outside += text[at]
        at += 1
    return outside


# On Spark itself.


def test_queries_of_all_kinds_are_answered(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.create()
    desk.run()
    asked: dict[str, list[tuple[object, ...]]] = {
        "SELECT count(*), max(orders.id) FROM orders": [(10, 9)],
        "SELECT o.id FROM shop.orders AS o WHERE o.id IN (SELECT id FROM orders WHERE id < 2) ORDER BY 1": [(0,), (1,)],
        "WITH orders AS (SELECT id FROM orders WHERE id > 7) SELECT orders.id FROM orders ORDER BY id": [(8,), (9,)],
        "WITH x(n) AS (SELECT id FROM orders) SELECT n FROM x WHERE n = 3": [(3,)],
        "SELECT a.id FROM orders a JOIN orders b ON a.id = b.id + 1 WHERE b.id = 4": [(5,)],
        "SELECT (WITH x AS (SELECT max(id) AS m FROM orders) SELECT m FROM x) + x.id FROM orders x LIMIT 1": [(9,)],
        "SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM orders QUALIFY n = 1": [(9, 1)],
        "SELECT timestampdiff(DAY, date '2024-01-01', date '2024-01-03')": [(2,)],
        "SELECT z FROM orders LATERAL VIEW explode(array(1, 2)) q AS z WHERE id = 0 ORDER BY z": [(1,), (2,)],
        "SELECT sum(id) FILTER (WHERE id < 3), count(DISTINCT city) FROM orders": [(3, 1)],
        "SELECT 1 UNION ALL SELECT 2": [(1,), (2,)],
        "SELECT /*+ SET_VAR(a=1) */ id FROM orders WHERE id = 1": [(1,)],
        "SELECT * FROM (VALUES (1, 'a')) t": [(1, "a")],
    }
    for text, rows in asked.items():
        assert desk.sql(text) == rows, text
    assert [view.name for view in desk.lading.spark().catalog.listTables() if view.isTemporary] == []


def test_variables_and_files_are_closed_in_spark_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert desk.sql("SELECT '${env:PATH}', '${spark.app.name}'") == [("${env:PATH}", "${spark.app.name}")]
    odd = "it's \\ \" ` \n -- /* ${x}"
    written = odd.replace("\\", "\\\\").replace("'", "''")
    assert desk.sql(f"SELECT '{written}' AS `{odd.replace('`', '``')}`") == [(odd,)]
    from lading.service.spark_queries.answering import reading_session

    (tmp_path / "secret").write_text("secret")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        reading_session(desk.lading.spark()).sql(f"SELECT * FROM text.`{tmp_path}/secret`")


def test_a_wrong_column_is_said_in_the_words_of_the_query(desk: Desk) -> None:
    desk.table()
    with pytest.raises(LadingError) as caught:
        desk.sql("SELECT nothing FROM orders")
    assert "nothing" in str(caught.value)
    assert "lading_" not in str(caught.value)


def test_a_query_that_is_ended_ends_on_spark_too(desk: Desk) -> None:
    desk.table()
    desk.put_orders("a.csv", 0, 10)
    desk.create()
    desk.run()
    context = desk.lading.spark().sparkContext
    # Long, and not endless: a task does not look whether it was ended while it joins, and holds a core of all tests.
    endless = "SELECT count(*) FROM " + ", ".join(f"orders o{number}" for number in range(10))
    stop = CancelToken()

    def ask() -> None:
        assert desk.sql("SELECT count(*) FROM orders") == [(10,)]
        with pytest.raises(ConfigError, match="was ended"):
            stop.run(lambda: desk.sql(endless))
        assert desk.sql("SELECT count(*) FROM orders") == [(10,)]

    def is_counting() -> bool:
        """The last of its jobs runs: those before it are short."""
        stages = context.statusTracker().getActiveStageIds()
        return bool(stages) and time.monotonic() - began > 3

    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        asked = pool.submit(ask)
        while not asked.done() and not is_counting():
            time.sleep(0.05)
        assert not asked.done()
        stop.set()
        asked.result(timeout=60)
    assert not context.statusTracker().getActiveJobsIds()


def test_a_query_is_one_query() -> None:
    for text in ("SELECT 1 SELECT 2", "WITH x AS (SELECT 1) DELETE FROM t", "WITH x AS (SELECT 1) UPDATE t SET a = 1"):
        with pytest.raises((SqlError, NotSupportedError)):
            read(text)
