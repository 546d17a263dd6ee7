"""Date formats: the percent signs of Doris as the letters of Spark."""

from __future__ import annotations

_LETTERS = {
    "Y": "yyyy",
    "y": "yy",
    "m": "MM",
    "c": "M",
    "d": "dd",
    "e": "d",
    "H": "HH",
    "k": "H",
    "h": "hh",
    "I": "hh",
    "l": "h",
    "i": "mm",
    "s": "ss",
    "S": "ss",
    "f": "SSSSSS",
    "p": "a",
    "T": "HH:mm:ss",
    "F": "yyyy-MM-dd",
    "j": "DDD",
    "b": "MMM",
    "M": "MMMM",
    "a": "EEE",
    "W": "EEEE",
    "%": "%",
}


def spark_format_or_none(text: str) -> str | None:
    """The same format in Spark's letters; None when one of its parts has no counterpart.

    A format without a percent sign and with letters is one of Spark already, and is left as it is.
    """
    if "%" not in text:
        return text
    out: list[str] = []
    plain = ""
    letters = iter(text)
    for letter in letters:
        if letter != "%":
            plain += letter
            continue
        found = _LETTERS.get(next(letters, ""))
        if found is None:
            return None
        out += [_quoted(plain), found]
        plain = ""
    return "".join([*out, _quoted(plain)])


def _quoted(plain: str) -> str:
    """Letters mean something in Spark's formats unless they stand in single quotes."""
    if not any(letter.isalpha() or letter in "'[]{}#" for letter in plain):
        return plain
    return "'" + plain.replace("'", "''") + "'"
