"""Doris functions in Spark's words.

A call whose name Spark has too, with the same meaning, is left as it is. The rest is in the tables below: other
names, other shapes, and same names with another meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from lading.sql.expressions.formats import spark_format_or_none

Args = Sequence[exp.Expr]
Rewrite = Callable[[Args], exp.Expr | None]
"""Arguments to the Spark expression; None: these arguments cannot be translated."""

RENAMED = {
    "strleft": "left",
    "strright": "right",
    "starts_with": "startswith",
    "ends_with": "endswith",
    "to_base64": "base64",
    "get_json_string": "get_json_object",
    "json_extract_string": "get_json_object",
    "jsonb_extract_string": "get_json_object",
    "length": "octet_length",
    "size": "array_size",
    "cardinality": "array_size",
    "element_at": "try_element_at",
    "fmod": "mod",
    "dround": "round",
    "dpow": "power",
    "dexp": "exp",
    "dsqrt": "sqrt",
    "dlog1": "ln",
    "dlog10": "log10",
    "dceil": "ceil",
    "dfloor": "floor",
}
"""Same arguments, same meaning, another name. LENGTH counts bytes in Doris and letters in Spark."""

_JSON_TEXT = "Doris keeps the quotes of a text in the answer and Spark does not; use json_extract_string"
DIFFERENT = {
    "regexp_extract_all": "Doris gives a text and Spark an array",
    "json_extract": _JSON_TEXT,
    "jsonb_extract": _JSON_TEXT,
    "week": "Doris and Spark count weeks differently; use weekofyear",
    "convert": "character sets cannot be converted; use CAST",
    "format": "use format_string",
    "truncate": "use floor, or round to a number of digits",
    "trunc": "Doris cuts numbers and Spark cuts dates; use floor or date_trunc",
    "char": "Doris takes many codes and Spark one; use chr",
    "hash": "the numbers differ between Doris and Spark; use xxhash64",
}
"""Refused, because the same name gives another result; with the way out."""

_UNITS = {
    "years": "YEAR",
    "quarters": "QUARTER",
    "months": "MONTH",
    "weeks": "WEEK",
    "days": "DAY",
    "hours": "HOUR",
    "minutes": "MINUTE",
    "seconds": "SECOND",
}
_LONG = ("YEAR", "MONTH")
_MULTIPLES = {"QUARTER": (3, "MONTH"), "WEEK": (7, "DAY")}


def call(name: str, *args: exp.Expr) -> exp.Expr:
    """A call of a Spark function."""
    return exp.Anonymous(this=name.upper(), expressions=list(args))


def shift_date(date: exp.Expr, count: exp.Expr, unit: str, sign: int) -> exp.Expr | None:
    """`date` plus or minus so many units, for dates, times and texts alike.

    Spark's DATE_ADD only knows days and forgets the time. Its intervals of months do not go with texts, those of
    MAKE_INTERVAL do.
    """
    factor, base = _MULTIPLES.get(unit, (1, unit))
    if base not in _UNITS.values():
        return None
    number = int(count.name) * factor if isinstance(count, exp.Literal) and count.name.isdigit() else None
    interval = _months(count, number, factor, base) if base in _LONG else _days(count, number, factor, base)
    kind = exp.Add if sign > 0 else exp.Sub
    return exp.Paren(this=kind(this=exp.Paren(this=date), expression=interval))


def _months(count: exp.Expr, number: int | None, factor: int, base: str) -> exp.Expr:
    each = exp.Literal.number(factor)
    many: exp.Expr = exp.Mul(this=exp.Paren(this=count), expression=each) if factor > 1 else count
    size = exp.Literal.number(number) if number is not None else many
    return call("make_interval", size) if base == "YEAR" else call("make_interval", exp.Literal.number(0), size)


def _days(count: exp.Expr, number: int | None, factor: int, base: str) -> exp.Expr:
    one = exp.Interval(this=exp.Literal.string(str(factor)), unit=exp.Var(this=base))
    if number is None:
        return exp.Mul(this=exp.Paren(this=count), expression=one)
    return exp.Interval(this=exp.Literal.string(str(number)), unit=exp.Var(this=base))


def _date_shift(sign: int) -> Rewrite:
    def rewrite(args: Args) -> exp.Expr | None:
        if len(args) != 2:
            return None
        by = args[1]
        if not isinstance(by, exp.Interval):
            return shift_date(args[0], by, "DAY", sign)
        unit = by.args.get("unit")
        return shift_date(args[0], _count(by), unit.name.upper() if unit else "DAY", sign)

    return rewrite


def _count(interval: exp.Interval) -> exp.Expr:
    this = interval.this
    is_text = isinstance(this, exp.Literal) and this.is_string and this.name.isdigit()
    return exp.Literal.number(this.name) if is_text else this


def _unit_shift(unit: str, sign: int) -> Rewrite:
    return lambda args: shift_date(args[0], args[1], unit, sign) if len(args) == 2 else None


def _formatted(spark_name: str, default: str | None) -> Rewrite:
    """A function whose second argument is a `%` format: the format must be known to be translated."""

    def rewrite(args: Args) -> exp.Expr | None:
        if len(args) == 1 and default is not None:
            return call(spark_name, args[0], exp.Literal.string(default)) if default else call(spark_name, args[0])
        if len(args) != 2 or not isinstance(args[1], exp.Literal) or not args[1].is_string:
            return None
        pattern = spark_format_or_none(args[1].name)
        return call(spark_name, args[0], exp.Literal.string(pattern)) if pattern is not None else None

    return rewrite


def _str_to_date(args: Args) -> exp.Expr | None:
    if len(args) != 2 or not isinstance(args[1], exp.Literal) or not args[1].is_string:
        return None
    pattern = spark_format_or_none(args[1].name)
    if pattern is None:
        return None
    has_time = any(letter in pattern for letter in "HhmsSa")
    made = call("try_to_timestamp", args[0], exp.Literal.string(pattern))
    return exp.Cast(this=made, to=exp.DataType.build("timestamp_ntz" if has_time else "date", dialect="spark"))


def _json_as(kind: str) -> Rewrite:
    def rewrite(args: Args) -> exp.Expr | None:
        if len(args) != 2:
            return None
        return exp.TryCast(this=call("get_json_object", *args), to=exp.DataType.build(kind, dialect="spark"), safe=True)

    return rewrite


def _empty(args: Args) -> exp.Expr | None:
    if len(args) != 1:
        return None
    return exp.Paren(
        this=exp.Or(
            this=exp.Is(this=args[0], expression=exp.Null()),
            expression=exp.EQ(this=args[0].copy(), expression=exp.Literal.string("")),
        )
    )


def _not_empty(args: Args) -> exp.Expr | None:
    empty = _empty(args)
    return exp.Paren(this=exp.Not(this=empty)) if empty is not None else None


def _split(args: Args) -> exp.Expr | None:
    """Spark splits by a regular expression, Doris by the text itself."""
    if len(args) != 2 or not isinstance(args[1], exp.Literal) or not args[1].name or "\\E" in args[1].name:
        return None
    return call("split", args[0], exp.Literal.string(f"\\Q{args[1].name}\\E"))


def _lambda_last(spark_name: str) -> Rewrite:
    def rewrite(args: Args) -> exp.Expr | None:
        if len(args) != 2 or not isinstance(args[0], exp.Lambda):
            return None
        return call(spark_name, args[1], args[0])

    return rewrite


def _date_trunc(args: Args) -> exp.Expr | None:
    """Doris takes the date first, Spark the unit."""
    if len(args) != 2:
        return None
    is_unit_first = isinstance(args[0], exp.Literal) and args[0].is_string and not isinstance(args[1], exp.Literal)
    return call("date_trunc", *(args if is_unit_first else reversed(args)))


def _as_text(spark_name: str) -> Rewrite:
    """Spark gives bytes where Doris gives a text."""

    def rewrite(args: Args) -> exp.Expr | None:
        if len(args) != 1:
            return None
        return exp.TryCast(this=call(spark_name, *args), to=exp.DataType.build("string", dialect="spark"), safe=True)

    return rewrite


def _null_wins(spark_name: str) -> Rewrite:
    """In Doris one NULL makes the answer NULL; Spark passes over it."""

    def rewrite(args: Args) -> exp.Expr | None:
        if len(args) < 2:
            return None
        nulls = exp.or_(*(exp.Is(this=arg.copy(), expression=exp.Null()) for arg in args))
        return call("if", nulls, exp.Null(), call(spark_name, *args))

    return rewrite


def _split_part(args: Args) -> exp.Expr | None:
    """A part that is not there is NULL in Doris and empty in Spark's SPLIT_PART."""
    parts = _split(args[:2]) if len(args) == 3 else None
    return call("try_element_at", parts, args[2]) if parts is not None else None


REWRITTEN: dict[str, Rewrite] = {
    "date_add": _date_shift(+1),
    "adddate": _date_shift(+1),
    "date_sub": _date_shift(-1),
    "subdate": _date_shift(-1),
    **{f"{name}_add": _unit_shift(unit, +1) for name, unit in _UNITS.items()},
    **{f"{name}_sub": _unit_shift(unit, -1) for name, unit in _UNITS.items()},
    "date_format": _formatted("date_format", None),
    "from_unixtime": _formatted("from_unixtime", "yyyy-MM-dd HH:mm:ss"),
    "unix_timestamp": _formatted("unix_timestamp", ""),
    "str_to_date": _str_to_date,
    "date_trunc": _date_trunc,
    "get_json_int": _json_as("int"),
    "get_json_bigint": _json_as("bigint"),
    "get_json_double": _json_as("double"),
    "get_json_bool": _json_as("boolean"),
    "json_extract_int": _json_as("int"),
    "json_extract_bigint": _json_as("bigint"),
    "json_extract_double": _json_as("double"),
    "json_extract_bool": _json_as("boolean"),
    "null_or_empty": _empty,
    "not_null_or_empty": _not_empty,
    "split_by_string": _split,
    "split_part": _split_part,
    "array_map": _lambda_last("transform"),
    "array_filter": _lambda_last("filter"),
    "from_base64": _as_text("unbase64"),
    "unhex": _as_text("unhex"),
    "greatest": _null_wins("greatest"),
    "least": _null_wins("least"),
}
