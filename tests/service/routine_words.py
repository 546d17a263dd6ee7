"""Statements about routine loads, in few words."""

from __future__ import annotations

import json

from lading.testing.marked import secret
from tests.service.routine_fakes import Desk

SECRET1, SECRET2, LOGIN = secret("1"), secret("2"), f"u:{secret('p')}"

KAFKA = 'FROM KAFKA("kafka_broker_list"="b:1", "kafka_topic"="clicks"{})'
KINESIS = 'FROM KINESIS("aws.region"="eu-west-1", "kinesis_stream"="views"{})'


def create(bench: Desk, more: str = "", *, name: str = "j", clauses: str = "", source: str = KAFKA) -> None:
    bench.sql(f"CREATE ROUTINE LOAD {name} ON t {clauses} {source.format(more)} COMMENT 'c'")


def paused(bench: Desk, more: str = "", **options: str) -> None:
    create(bench, more, **options)
    bench.run()
    bench.sql("PAUSE ROUTINE LOAD FOR j")


def progress(bench: Desk, name: str = "j") -> dict[str, str]:
    found: dict[str, str] = json.loads(bench.show(name)["Progress"])
    return found
