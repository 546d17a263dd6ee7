"""Spark's SQL as sqlglot reads it, with function calls left as they were written."""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")


class PlainSpark(Spark):
    """Spark, for looking at what was written."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, object]] = {}  # type: ignore[assignment]  # narrower than theirs
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
        }
