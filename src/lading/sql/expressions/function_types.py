"""What functions take and give, as far as coercions need it. What a function gives that is not here is not known."""

from __future__ import annotations

from lading.sql.expressions.value_types import (
    BOOLEAN,
    DATE,
    DATETIME,
    DOUBLE,
    INTEGER,
    MOMENT,
    TEXT,
    TEXTS,
    ValueType,
)

_RESULTS = {
    TEXT: """array_join base64 bin btrim char chr collate concat concat_ws conv current_timezone date_format dayname
        decode elt format_number format_string from_base64 from_unixtime get_json_object get_json_string hex initcap
        json_extract_string jsonb_extract_string lcase left lower lpad ltrim mask md5 monthname overlay parse_url printf
        quote randstr regexp_extract regexp_replace regexp_substr repeat replace right rpad rtrim sha sha1 sha2 soundex
        space split_part strleft string strright substr substring substring_index to_base64 to_char to_csv to_json
        to_varchar translate trim try_parse_url try_url_decode typeof ucase unhex upper url_decode url_encode uuid""",
    INTEGER: """array_position array_size ascii bigint bit_count bit_get bit_length cardinality char_length
        character_length crc32 date_diff datediff day dayofmonth dayofweek dayofyear find_in_set get_json_bigint
        get_json_int getbit hour instr int json_array_length json_extract_bigint json_extract_int len length levenshtein
        locate minute month octet_length position quarter regexp_count regexp_instr second size smallint timestampdiff
        tinyint to_unix_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear
        width_bucket xxhash64 year""",
    DOUBLE: """acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees dexp dlog1 dlog10 double dpow
        dsqrt e exp expm1 float get_json_double hypot jaro_winkler_similarity json_extract_double ln log log10 log1p
        log2 months_between pi pow power radians rand randn random rint sec sign signum sin sinh sqrt tan tanh""",
    BOOLEAN: """array_contains arrays_overlap boolean contains ends_with endswith exists forall get_json_bool ilike
        is_valid_utf8 isnan isnotnull isnull json_extract_bool like luhn_check map_contains_key not_null_or_empty
        null_or_empty regexp regexp_like rlike starts_with startswith""",
    DATE: "curdate current_date date date_from_unix_date last_day make_date next_day to_date try_to_date",
    DATETIME: "localtimestamp make_timestamp_ntz str_to_date to_timestamp_ntz",
    MOMENT: """current_timestamp date_trunc from_utc_timestamp make_timestamp now timestamp timestamp_micros
        timestamp_millis timestamp_seconds to_timestamp to_timestamp_ltz to_utc_timestamp try_to_timestamp""",
    TEXTS: "split split_by_string regexp_extract_all sentences",
}
RESULTS: dict[str, ValueType] = {name: kind for kind, names in _RESULTS.items() for name in names.split()}
"""What a function gives, whatever it is given."""

KEEPS_NUMBER = frozenset(
    [
        "abs",
        "bround",
        "ceil",
        "ceiling",
        "dceil",
        "dfloor",
        "dround",
        "floor",
        "fmod",
        "mod",
        "negative",
        "nullifzero",
        "pmod",
        "positive",
        "round",
        "try_add",
        "try_divide",
        "try_mod",
        "try_multiply",
        "try_subtract",
        "zeroifnull",
    ]
)
"""Functions of numbers that give a number like those they are given: decimals stay decimals."""
_TWO_NUMBERS = frozenset(["atan2", "dpow", "fmod", "hypot", "mod", "pmod", "pow", "power"])
_TRIES = frozenset(["try_add", "try_divide", "try_mod", "try_multiply", "try_subtract"])
"""They add days to a date, too."""
_ONE_NUMBER = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cbrt",
        "cos",
        "cosh",
        "cot",
        "csc",
        "degrees",
        "dexp",
        "dlog1",
        "dlog10",
        "dsqrt",
        "exp",
        "expm1",
        "isnan",
        "ln",
        "log",
        "log10",
        "log1p",
        "log2",
        "radians",
        "rint",
        "sec",
        "sign",
        "signum",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    ]
)

_UNITS = ["years", "quarters", "months", "weeks", "days", "hours", "minutes", "seconds"]
_SHIFTS = frozenset(
    [
        *["add_months", "adddate", "date_add", "date_sub", "subdate"],
        *(f"{unit}_{way}" for unit in _UNITS for way in ("add", "sub")),
    ]
)
_PARTS = frozenset(
    [
        "date_format",
        "day",
        "dayname",
        "dayofmonth",
        "dayofweek",
        "dayofyear",
        "hour",
        "last_day",
        "minute",
        "month",
        "monthname",
        "next_day",
        "quarter",
        "second",
        "weekday",
        "weekofyear",
        "year",
    ]
)

COALESCES = frozenset(["coalesce", "ifnull", "nvl"])
EXTREMES = frozenset(["greatest", "least"])
_WITH_UNIT = 3


def number_places(name: str, count: int) -> range:
    """Which arguments of a function are numbers."""
    if name in _TWO_NUMBERS:
        return range(count)
    if name in _TRIES:
        return range(count)
    return range(min(1, count)) if name in _ONE_NUMBER or name in KEEPS_NUMBER else range(0)


_INTEGERS = {
    **dict.fromkeys(["from_unixtime", "timestamp_micros", "timestamp_millis", "timestamp_seconds"], 0),
    **dict.fromkeys(["left", "lpad", "repeat", "right", "rpad", "strleft", "strright"], 1),
    **dict.fromkeys(_SHIFTS, 1),
}


def integer_place(name: str, count: int) -> int | None:
    """Which argument of a function is a whole number."""
    place = _INTEGERS.get(name)
    return place if place is not None and place < count else None


def time_places(name: str, count: int) -> range:
    """Which arguments of a function are dates or times."""
    if name in ("datediff", "date_diff", "months_between", "timestampdiff"):
        return range(1, count) if count == _WITH_UNIT and name != "months_between" else range(min(2, count))
    if name in ("timestampadd", "dateadd"):
        return range(2, count) if count == _WITH_UNIT else range(min(1, count))
    if name == "unix_timestamp" and count != 1:
        return range(0)  # The second argument is a format: the text is read as it says.
    is_time = name in _SHIFTS or name in _PARTS or name == "unix_timestamp"
    return range(min(1, count)) if is_time else range(0)


def shifts_date(name: str) -> bool:
    """Whether a function moves a date or a time and gives one like it."""
    return name in _SHIFTS or name in ("timestampadd", "dateadd")
