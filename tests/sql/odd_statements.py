"""Statements with odd names and texts at every place of the grammar: the same number, the same statement."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pyarrow as pa

from lading.errors import LadingError
from lading.pipeline.mapping import RowMapping, TargetColumn, select_lists
from lading.service.compile.mapping import asked_columns, map_rows
from lading.sql.expressions.queries import read_query
from lading.sql.statements.definitions import define_routine_load, define_streaming_job
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad, Query
from lading.sql.statements.load_specs import load_spec
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.parse import parse_statement
from tests.support.examples import examples

SEED = "lading"
EXAMPLES = examples(120)
CALLS = (
    'java_method("java.lang.System","exit",1)',
    "reflect('a','b')",
    "system.builtin.reflect(1)",
    "(SELECT TRANSFORM(1) USING 'id')",
    "xpath('<a/>','/a')",
    "input_file_name()",
    "csv.`/etc/passwd`",
)
PIECES = (
    "`", "``", "'", "''", '"', '""', "\\", "\\'", '\\"', "\\\\", "--", "-- \n", "/*", "*/", "/*+", "#", ";", "\n",
    "\r", "\t", " ",
    "${env:PATH}", "$", "{", "}", "(", ")", ",", ".", ":", "::", "?", ":x", "@x", "=>", "->", "|", "||", "[", "]",
    "<", ">", "=",
    "AS", "FROM", "SELECT", "USING", "r'", "x'", "b", "a", "0", "1e5", "HOUR", "`__lading_0`", "`__lading_1`", "__v0",
    "__note",
    "\u2018", "\u02bc", "\uff07", "\uff40", "\u2028", "\u00a0", "é", "日本", "\U0001f600", "\x00", "\x1a", "%Y", "%",
    "_",
)  # fmt: skip
NAMES = (
    "a",
    "b",
    "c",
    "id",
    "s",
    "x",
    "user",
    "current_user",
    "hour",
    "day",
    "interval",
    "map",
    "transform",
    "from",
    "select",
)
UNITS = ("HOUR", "day", "Days", "YEAR", "quarter", "week", "microsecond", "epoch", "day_hour", "minute_second")
TYPES = (
    "INT",
    "string",
    "DECIMAL(10,2)",
    "varchar(3)",
    "datetime",
    "array<int>",
    "map<string,int>",
    "struct<{n} int>",
    "{n}",
    "double",
)
FUNCTIONS = (
    "upper", "coalesce", "concat", "length", "greatest", "split_by_string", "null_or_empty", "to_json", "from_json",
    "left", "date_trunc",
    "java_method", "reflect", "xpath", "from_xml", "count", "explode", "java_METHOD", "input_file_name", "range",
    "ours",
)  # fmt: skip
EXPRESSIONS = (
    "{n}", "{n}", "{s}", "{s}", "{i}", "s.{n}", "{n}.{n}", "{f}({e})", "{f}({e}, {s})", "{n}({e})", "{n}.{n}({e})",
    "NULL", "true",
    "timestampdiff({u}, {e}, {e})", "timestampadd({u}, {i}, {e})", "dateadd({u}, {i}, {e})",
    "datediff({u}, {e}, {e})",
    "date_diff({u}, {e}, {e})", "datediff({e}, {e})", "extract({u} from {e})", "date_add({e}, interval {i} {u})",
    "interval {s} {u}",
    "interval {e} {u}", "interval {s}", "date_sub({e}, interval {s} {u})", "cast({e} as {t})", "try_cast({e} as {t})",
    "convert({e}, {t})",
    "transform({e}, {n} -> {e})", "array_map({n} -> {e}, {e})", "filter({e}, ({n}, {n}) -> {e})", "{e}[{e}]",
    "{e} in ({e}, {e})",
    "{e} like {s} escape {s}", "{e} regexp {s}", "{e} rlike {e}", "case when {e} then {e} else {e} end",
    "case {e} when {s} then {e} end",
    "trim(both {s} from {e})", "trim({e})", "substring({e} from 1 for 2)", "position({s} in {e})",
    "date_format({e}, {s})",
    "str_to_date({e}, {s})", "from_unixtime({e}, {s})", "split_part({e}, {s}, 1)", "get_json_int({e}, {s})",
    "date_trunc({s}, {e})",
    "{e} is null", "{e} between {e} and {e}", "not {e}", "-{e}", "({e})", "{e} + {e}", "{e} = {e}", "{e} and {e}",
    "{e} <=> {e}",
    "{e} collate {n}", "{e} -> {s}", "{e}::{t}", "if({e}, {e}, {e})", "/* {raw} */ {e}", "{e} -- {raw}\n",
    "{e} /* {raw} */", "{e} {s}",
    "unix_timestamp({e}, {s})", "current_timestamp", "current_date", "{n} := {e}", "@{n}", "@@{n}", ":{n}", "?",
    "{raw}", "x{s}", "b{s}",
    "{s} {s}", "date {s}", "timestamp {s}", "{{fn upper({e})}}", "count({e}) over ({n})", "(select {e})",
    "exists (select {e})",
    "struct({e} as {n})", "map({s}, {e})", "{e} div {e}", "{e} % {e}", "{e} || {s}", "match_any({e}, {s})",
    "char({e} using {n})",
)  # fmt: skip
QUERIES = (
    "SELECT {e} FROM {t1}", "SELECT {e} AS {n}, {e} {n} FROM {t1} AS {n}", "SELECT * FROM {t1} WHERE {e}",
    "SELECT {n}.* FROM {t1} {n}",
    "WITH {n} AS (SELECT {e} AS {n}) SELECT {e} FROM {n}, {t1}", "WITH {n}({n}) AS (SELECT {e}) SELECT * FROM {n}",
    "SELECT {e} FROM {t1} GROUP BY {e} HAVING {e} ORDER BY {e} LIMIT {i}",
    "SELECT * FROM {t1} JOIN {t1} AS {n} ON {e}",
    "SELECT * FROM {t1} JOIN {t1} {n} USING ({n})", "SELECT * FROM (VALUES ({e}, {s})) AS {n}({n}, {n})",
    "SELECT {e} UNION SELECT {e}",
    "SELECT sum({e}) OVER (PARTITION BY {e} ORDER BY {e} ROWS BETWEEN {i} PRECEDING AND CURRENT ROW) FROM {t1}",
    "SELECT rank() OVER {n} FROM {t1} WINDOW {n} AS (ORDER BY {e})",
    "SELECT * FROM {t1} LATERAL VIEW explode({e}) {n} AS {n}",
    "SELECT * FROM {t1} TABLESAMPLE ({i} {u})", "SELECT /*+ {raw} */ {e} FROM {t1}", "SELECT {e} FROM {n}.{n}",
    "SELECT * FROM {n}({e})",
    "SELECT (SELECT {e} FROM {t1} {n}) FROM {t1}", "SELECT {f}(DISTINCT {e}) FILTER (WHERE {e}) FROM {t1}",
    "SELECT * FROM {t1}, LATERAL ({s})",
    "SELECT * FROM {t1} WHERE {e} IN (SELECT {e} FROM {t1})", "SELECT {e} FROM {t1} {raw}",
    "SELECT {e} INTO OUTFILE {s} FROM {t1}",
    "SELECT {e} FROM {t1} FOR VERSION AS OF {i}", "SELECT * EXCEPT({n}) FROM {t1}",
    "SELECT DISTINCT {e}, {e} FROM {t1} QUALIFY {e}",
)  # fmt: skip


class Odd:
    """One odd statement after the other."""

    def __init__(self, number: int) -> None:
        self._random = Random(f"{SEED}-{number}")

    def raw(self) -> str:
        count = self._random.randint(0, 6)
        pieces = [self._random.choice(CALLS if self._random.random() < 0.2 else PIECES) for _ in range(count)]
        return "".join(pieces)

    def name(self) -> str:
        if self._random.random() < 0.5:
            return self._random.choice(NAMES)
        return "`" + (self.raw() or "x").replace("`", "``") + "`"

    def text(self) -> str:
        quote = self._random.choice("''\"")
        content = self.raw()
        if self._random.random() < 0.8:
            content = content.replace("\\", "\\\\").replace(quote, quote * 2)
        return quote + content + quote

    def unit(self) -> str:
        if self._random.random() < 0.6:
            return self._random.choice(UNITS)
        return self._random.choice(
            (self.name, self.text, lambda: f"`HOUR, now(), now()) + {self._random.choice(CALLS)}`")
        )()

    def expression(self, depth: int = 0) -> str:
        form = self._random.choice(EXPRESSIONS[:5] if depth > 2 else EXPRESSIONS)
        return self.fill(form, depth)

    def sometimes(self) -> str:
        """An expression that is odd now and then: a statement of nothing but odd ones is refused for one of them."""
        return self.expression() if self._random.random() < 0.3 else "a"

    def query(self) -> str:
        return self.fill(self._random.choice(QUERIES), 1)

    def fill(self, form: str, depth: int) -> str:
        made, rest = "", form.replace("{{", "\1").replace("}}", "\2")
        while "{" in rest:
            before, _, rest = rest.partition("{")
            kind, _, rest = rest.partition("}")
            made += before + self._part(kind, depth)
        return (made + rest).replace("\1", "{").replace("\2", "}")

    def _part(self, kind: str, depth: int) -> str:
        match kind:
            case "e":
                return self.expression(depth + 1)
            case "n":
                return self.name()
            case "s":
                return self.text()
            case "u":
                return self.unit()
            case "t":
                return self.fill(self._random.choice(TYPES), depth)
            case "f":
                return self._random.choice(FUNCTIONS)
            case "t1":
                return self._random.choice(("orders", "shop.orders", "`orders`"))
            case "i":
                return str(self._random.randint(0, 12))
        return self.raw()

    def plain(self) -> str:
        """A name as it is, for a column of a table or a file."""
        return self.raw() or "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A statement and what Spark would be told."""

    statement: str
    texts: tuple[str, ...]


def odd_mapping(number: int) -> Translated | None:
    """A file job or a routine load; None when it was refused."""
    odd = Odd(number)
    columns = [odd.plain(), odd.plain()]
    try:
        return _file_job(odd, columns) if number % 2 else _routine_load(odd, columns)
    except LadingError:
        return None


def _file_job(odd: Odd, columns: list[str]) -> Translated:
    alias = odd.name()
    statement = (
        f"CREATE JOB j ON STREAMING DO INSERT INTO t SELECT {odd.expression()} AS {odd.name()}, {odd.sometimes()} "
        f'FROM S3("uri"="s3://b/k", "format"="json") AS {alias} WHERE {odd.sometimes()}'
    )
    parsed = parse_statement(statement)
    assert isinstance(parsed, CreateJob)
    definition, load = define_streaming_job(parsed), load_spec(parsed)
    asked = [name for column in definition.columns if column.expression for name in column.expression.columns]
    asked += definition.where.columns if definition.where else ()
    source = pa.schema([pa.field(name, pa.string()) for name in dict.fromkeys([*asked, *columns])])
    target = pa.schema([pa.field("x", pa.string(), nullable=False), pa.field(columns[0] + "2", pa.timestamp("us"))])
    mapping = map_rows(load, target, {}, source)
    return Translated(statement=statement, texts=_texts(mapping, tuple(source.names)))


def _routine_load(odd: Odd, columns: list[str]) -> Translated:
    names = ", ".join("`" + name.replace("`", "``") + "`" for name in dict.fromkeys(columns))
    statement = (
        f"CREATE ROUTINE LOAD r ON t COLUMNS ({names}, x = {odd.expression()}, y = {odd.sometimes()}), "
        f"PRECEDING FILTER {odd.sometimes()}, WHERE {odd.sometimes()} = x AND y = {odd.sometimes()} "
        'PROPERTIES("format"="json", "strict_mode"="true") '
        'FROM KAFKA("kafka_broker_list"="h:1", "kafka_topic"="t")'
    )
    parsed = parse_statement(statement)
    assert isinstance(parsed, CreateRoutineLoad)
    definition = define_routine_load(parsed)
    target = pa.schema([pa.field(name, pa.string()) for name in ("x", "y", columns[0] + "2")])
    wanted = {name for column in definition.columns or () if column.expression for name in column.expression.columns}
    for filtered in (definition.where, definition.preceding_filter):
        wanted.update(filtered.columns if filtered else ())
    load, metadata = load_spec(parsed), pa.schema([(name, pa.string()) for name in sorted(wanted)])
    asked = [name for names in asked_columns(load, target, metadata) for name in names]
    mapping = map_rows(load, target, {}, pa.schema([(name, pa.string()) for name in asked]))
    return Translated(statement=statement, texts=_texts(mapping, tuple(asked)))


def _texts(mapping: RowMapping, source: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for columns in select_lists(mapping, source) for text in columns)


def odd_names(number: int) -> Translated:
    """A mapping of plain expressions over columns with odd names, of every type."""
    odd = Odd(number)
    names = [odd.plain() for _ in range(3)]
    columns = tuple(
        TargetColumn(name=name, type="string", expression="1", nullable=False, max_length=3) for name in names
    )
    texts = _texts(RowMapping(columns=columns, strict=bool(number % 2)), tuple(names))
    return Translated(statement=repr(names), texts=texts)


def odd_query(number: int) -> Translated | None:
    """A query; None when it was refused."""
    odd = Odd(number)
    statement = odd.query()
    try:
        parsed = parse_statement(statement)
        if not isinstance(parsed, Query):
            return None
        checked = read_query(parsed)
        views: dict[QualifiedName, str] = dict.fromkeys(checked.tables, "lading_view")
        counter = iter(range(1000))
        return Translated(statement=statement, texts=(checked.render(views, lambda: f"lading_{next(counter)}"),))
    except LadingError:
        return None
