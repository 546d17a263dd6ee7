"""docs/first-hour.md, typed from top to bottom as a new user would, with the answers that it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lading.cli.main import app
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

PAGE = (Path(__file__).parents[2] / "docs" / "first-hour.md").read_text()
PART = re.compile(r"^```(\w+)\n(.*?)^```|^((?: {4}[^\n]+\n)+)", re.DOTALL | re.MULTILINE)
STATUS = re.compile(r"# .*?status (\d)")


def sections() -> dict[str, str]:
    """By their titles; the first has none."""
    parts = PAGE.split("\n## ")
    return {part.partition("\n")[0]: part for part in parts}


def typed(words: list[str], status: int = 0) -> str:
    done = CliRunner().invoke(app, words)
    said = f"{done.output} {done.exception or ''}"
    assert done.exit_code == status, f"{words}: {done.exit_code} {said}"
    return said


def spaced(text: str) -> str:
    """Words with one space between them, without the frames of tables."""
    return " ".join(re.sub(r"[│┃┏━┳┓┡╇┩└─┴┘]", " ", text).split())


def type_in(text: str) -> None:
    """Run what is in fences, in its order. Lines that are set in show what was said since the last such lines."""
    names: dict[str, Any] = {}
    said = ""
    for kind, code, shown in PART.findall(text):
        if kind == "py":
            exec(compile(code, "first-hour", "exec"), names)
        elif kind == "sql":
            said += typed(["sql", "-e", code])
        elif kind == "sh":
            for line in code.splitlines():
                status = STATUS.search(line)
                said += typed(shlex.split(line, comments=True)[1:], int(status[1]) if status else 0)
        else:
            found = spaced(said)
            for line in shown.splitlines():
                missing = [word for word in words_of(line) if word not in found]
                assert missing == [], said
            said = ""


def words_of(line: str) -> list[str]:
    """A line as it is; a list of columns, which are one below the other, by its words."""
    return line.split() if line.strip() == "id customer city amount note" else [spaced(line)]


def test_the_first_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.chdir(tmp_path)
    for title, text in sections().items():
        if title != "A topic":
            type_in(text)
    assert spark.range(3).count() == 3


def test_the_first_hour_with_a_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, broker: KafkaBroker
) -> None:
    monkeypatch.chdir(tmp_path)
    topic = f"clicks-{tmp_path.name}"
    Topics(broker).create(topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in (1, 2, 3):
        producer.produce(topic, json.dumps({"id": number, "url": f"https://example.com/{number}"}))
    producer.flush()
    type_in(sections()["A home"])
    asked = sections()["A topic"].replace("localhost:9092", broker.bootstrap)
    type_in(asked.replace('"kafka_topic" = "clicks"', f'"kafka_topic" = "{topic}"'))
    assert spark.range(3).count() == 3
