"""Expressions on the vector path and in Spark, over rows with all that is odd: the same bits, or none."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.vector.both_paths import Outcome, compare_expressions
from tests.vector.mappings import compare_mappings
from tests.vector.odd_rows import odd_rows
from tests.vector.random_sql import SqlMaker

LEAST_SHARE = 0.85
"""Of expressions made of what is in the set, so many take the vector path to the end for some rows at least."""


def made(seed: int, count: int) -> list[str]:
    maker = SqlMaker(seed)
    return [maker.any(1 + number % 3) for number in range(count)]


def judged(outcome: Outcome) -> None:
    print(f"{outcome.same} the same, {outcome.share:.0%} of all; refused: {outcome.refused.most_common(5)}")
    assert not outcome.wrong, "\n".join(outcome.wrong[:10])
    assert outcome.share >= LEAST_SHARE, outcome


def test_hundreds_of_expressions_give_the_same_bits(spark: SparkSession) -> None:
    judged(compare_expressions(spark, odd_rows(1, 150), made(1, 240)))


def test_rows_have_the_same_fates_and_reasons(spark: SparkSession) -> None:
    outcome = compare_mappings(spark, 1, 6)
    assert not outcome.wrong, "\n".join(outcome.wrong[:10])
    assert outcome.same >= 3, outcome


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 14))
def test_thousands_of_expressions_give_the_same_bits(spark: SparkSession, seed: int) -> None:
    judged(compare_expressions(spark, odd_rows(seed, 300), made(seed, 500)))
    outcome = compare_mappings(spark, seed, 12)
    assert not outcome.wrong, "\n".join(outcome.wrong[:10])
