"""Random expressions of Spark's SQL over the odd rows, of a type that is asked for."""

from __future__ import annotations

from random import Random

_COLUMNS = {
    "string": ["t", "u", "num", "day", "time", "flag"],
    "boolean": ["b"],
    "tinyint": ["i8"],
    "smallint": ["i16"],
    "int": ["i32"],
    "bigint": ["i64"],
    "float": ["f32"],
    "double": ["f64"],
    "decimal(10,2)": ["n"],
    "decimal(38,18)": ["m"],
    "decimal(5,5)": ["q"],
    "date": ["d"],
    "timestamp": ["ts"],
    "timestamp_ntz": ["ntz"],
}
_TEXT_FOR = {
    "date": ["day", "time"],
    "timestamp": ["time", "day"],
    "timestamp_ntz": ["time", "day"],
    "boolean": ["flag"],
}
INTEGERS = ["tinyint", "smallint", "int", "bigint"]
DECIMALS = ["decimal(10,2)", "decimal(38,18)", "decimal(5,5)", "decimal(28,10)", "decimal(4,0)", "decimal(38,0)"]
NUMBERS = [*INTEGERS, "double", *DECIMALS]
TYPES = ["string", "boolean", *NUMBERS, "float", "date", "timestamp", "timestamp_ntz"]
PATTERNS = ["%", "a%", "%b", "_", "%_b%", "city _", "a_b", "%ß%", "", "100%", "__"]
WORDS = ["", "a", "abc", "b", "city 7", "Straße", "it\\'s", "zz", " ", "10", "true"]
RLIKES = ["[0-9.][dDfF]|[xX]", "^[^-]*:", "^ *[+-]?[0-9]{4}"]


class SqlMaker:
    """Makes expressions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def any(self, depth: int = 3) -> str:
        return self.of(self._random.choice(TYPES), depth)

    def of(self, kind: str, depth: int) -> str:
        """An expression of a type."""
        if depth <= 0 or self._random.random() < 0.15:
            return self._leaf(kind)
        if self._random.random() < 0.2:
            return self._chosen(kind, depth - 1)
        if kind == "string":
            return self._text(depth - 1)
        if kind == "boolean":
            return self._condition(depth - 1)
        if kind in ("date", "timestamp", "timestamp_ntz"):
            return self._time(kind, depth - 1)
        return self._number(kind, depth - 1)

    def _pick(self, *options: str) -> str:
        return self._random.choice(options)

    def _leaf(self, kind: str) -> str:
        names = _COLUMNS.get(kind, [])
        if names and self._random.random() < 0.7:
            return self._random.choice(names)
        if kind == "string":
            return f"'{self._random.choice(WORDS)}'"
        if kind == "boolean":
            return self._pick("true", "false", "b")
        if kind == "int":
            return self._pick("0", "1", "-1", "7", "2147483647", "100")
        texts = _TEXT_FOR.get(kind, ["num", "num", "t"])
        return f"TRY_CAST({self._random.choice(texts)} AS {kind})"

    def _chosen(self, kind: str, depth: int) -> str:
        one, other, third = (self.of(kind, depth) for _ in range(3))
        condition = self.of("boolean", depth)
        return self._pick(
            f"CASE WHEN {condition} THEN {one} ELSE {other} END",
            f"CASE WHEN {condition} THEN {one} END",
            f"CASE WHEN {condition} THEN NULL WHEN {self.of('boolean', depth)} THEN {other} ELSE {third} END",
            f"if({condition}, {one}, {other})",
            f"coalesce({one}, {other}, {third})",
            f"coalesce({one}, NULL)",
            f"nvl({one}, {other})",
            f"nullif({one}, {other})",
            f"nvl2({third}, {one}, {other})",
        )

    def _text(self, depth: int) -> str:
        text, other = self.of("string", depth), self.of("string", depth)
        word = self._random.choice([each for each in WORDS if each])
        number = self._random.choice([-1, 0, 1, 2, 5, 100])
        kind = self._random.choice([*INTEGERS, "date", "timestamp", "timestamp_ntz", "boolean", *DECIMALS])
        return self._pick(
            f"upper({text})", f"lower({text})", f"trim({text})", f"ltrim({text})", f"rtrim({text})",
            f"concat({text}, {other})", f"concat({text}, '{word}', {self.of('int', depth)})",
            f"substring({text}, {max(number, 0)}, {number})", f"substring({text}, {max(number, 0)})",
            f"left({text}, {number})", f"right({text}, {number})", f"replace({text}, '{word}', 'xy')",
            f"lpad({text}, {max(number, 0)}, '0')", f"rpad({text}, {max(number, 0)}, 'é')",
            f"TRY_CAST({self.of(kind, depth)} AS STRING)", f"cast({self.of(kind, depth)} AS string)",
        )  # fmt: skip

    def _condition(self, depth: int) -> str:
        sign = self._pick("=", "<>", "<", "<=", ">", ">=", "<=>")
        kind = self._random.choice([*TYPES, "string", "double"])
        one, other = self.of(kind, depth), self.of(kind, depth)
        if kind == "boolean":
            sign = self._pick("=", "<>", "<=>")
        left, right = (self.of(self._random.choice(NUMBERS), depth) for _ in range(2))
        text, word = self.of("string", depth), self._random.choice(WORDS)
        return self._pick(
            f"({one} {sign} {other})", f"({left} {sign if kind != 'boolean' else '<'} {right})",
            f"({self.of('boolean', depth)} AND {self.of('boolean', depth)})",
            f"({self.of('boolean', depth)} OR {self.of('boolean', depth)})", f"(NOT {self.of('boolean', depth)})",
            f"({one} IS NULL)", f"({one} IS NOT NULL)",
            f"({one} IN ({other}, {self.of(kind, depth)}))", f"({left} IN (1, 7, {right}))",
            f"({left} BETWEEN {right} AND {self.of('int', depth)})",
            f"({left} > {self._pick('0', '10', '1.5', '-3', '1e2', '0.10')})",
            f"({text} LIKE '{self._random.choice(PATTERNS)}')", f"({text} NOT LIKE '{self._random.choice(PATTERNS)}')",
            f"({text} RLIKE '{self._random.choice(RLIKES)}')", f"startswith({text}, '{word}')",
            f"endswith({text}, '{word}')",
            f"contains({text}, '{word}')", f"isnull({one})", f"isnotnull({one})",
        )  # fmt: skip

    def _number(self, kind: str, depth: int) -> str:
        if kind == "int" and self._random.random() < 0.5:
            return self._counted(depth)
        given = self._random.choice([each for each in [*NUMBERS, "string", "boolean"] if self._casts(each, kind)])
        if kind in DECIMALS or self._random.random() < 0.4:
            return f"TRY_CAST({self._operated(given, depth)} AS {kind})"
        return self._operated(kind, depth)

    def _casts(self, given: str, kind: str) -> bool:
        if given == "string":
            return kind != "float"
        if kind in DECIMALS:
            return given in INTEGERS or given in DECIMALS
        return given != "boolean" or kind in (*INTEGERS, "double")

    def _operated(self, kind: str, depth: int) -> str:
        if kind in ("string", "boolean") or self._random.random() < 0.3:
            return self.of(kind, depth)
        one, other = self.of(kind, depth), self.of(kind, depth)
        if kind in DECIMALS and self._random.random() < 0.5:
            other = self._pick("1.1", "100", "0.015", "-2.50", self.of(self._random.choice(DECIMALS), depth))
        sign = self._pick("+", "-", "*") if kind in (*DECIMALS, "float") else self._pick("+", "-", "*", "%")
        if kind == "double":
            sign = self._pick("+", "-", "*", "/")
        return self._pick(f"({one} {sign} {other})", f"(-{one})", f"({one} {sign} {other})")

    def _counted(self, depth: int) -> str:
        text, time = self.of("string", depth), self._pick("date", "timestamp", "timestamp_ntz")
        clock = self.of(self._pick("timestamp", "timestamp_ntz"), depth)
        part = self._pick(
            "year", "quarter", "month", "day", "dayofmonth", "dayofyear", "dayofweek", "weekday", "weekofyear"
        )
        word = self._random.choice([each for each in WORDS if each])
        return self._pick(
            f"length({text})", f"octet_length({text})", f"{part}({self.of(time, depth)})",
            f"{self._pick('hour', 'minute', 'second')}({clock})", f"instr({text}, '{word}')",
            f"locate('{word}', {text})",
            f"datediff({self.of(time, depth)}, {self.of('date', depth)})", f"unix_date({self.of('date', depth)})",
            f"abs({self.of('int', depth)})",
        )  # fmt: skip

    def _time(self, kind: str, depth: int) -> str:
        given = self._pick("string", "date", "timestamp", "timestamp_ntz")
        text = self._random.choice(_TEXT_FOR[kind])
        cast = f"TRY_CAST({text if given == 'string' else self.of(given, depth)} AS {kind})"
        date = self.of("date", depth)
        if kind == "date":
            days = self._pick("1", "-1", "30", "i8", "i16", "0")
            return self._pick(cast, f"date_add({date}, {days})", f"date_sub({date}, {days})", f"last_day({date})")
        if kind == "timestamp":
            unit = self._pick("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
            return self._pick(cast, f"date_trunc('{unit}', {self.of(kind, depth)})")
        return cast
