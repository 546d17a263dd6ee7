"""A new source is a folder and a line in the registry: statements, compiler, jobs and SHOW take it as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import NotSupportedError, SqlError
from lading.sources import registry
from tests.console.local import LocalLading
from tests.sources.toy import BOXES, ToyKind

ROUTINE = 'CREATE ROUTINE LOAD words ON t COLUMNS (id, word, place = _partition) FROM TOY ("toy_box"="animals")'
JOB = 'CREATE JOB words ON STREAMING DO INSERT INTO t SELECT id, word, _partition FROM TOY("toy_box"="animals")'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalLading]:
    monkeypatch.setitem(registry.STREAMS, "TOY", ToyKind())
    monkeypatch.setitem(registry.FILES, "TOY", ToyKind())
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE TABLE t (id BIGINT, word STRING, place STRING) USING delta")
        yield lading


def rows(home: LocalLading) -> list[tuple[int, str, str]]:
    table = home.catalog.open_table("default", "t").scan()
    return sorted(zip(*(table[name].to_pylist() for name in ("id", "word", "place")), strict=True))


@pytest.mark.parametrize("statement", [ROUTINE, JOB], ids=["COLUMNS", "SELECT"])
def test_a_statement_loads_rows_from_a_new_source(home: LocalLading, statement: str) -> None:
    home.sql(statement)
    home.run()
    assert rows(home) == [(0, "hare", "north"), (0, "newt", "south"), (1, "lynx", "north")]
    assert home.verify("default.words" if statement is ROUTINE else "words").is_clean


def test_what_came_later_is_loaded_and_everything_is_shown(home: LocalLading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BOXES, "animals", {"north": ["hare"]})
    home.sql(ROUTINE)
    home.run()
    BOXES["animals"]["north"].append("lynx")
    home.run()
    assert [word for _, word, _ in rows(home)] == ["hare", "lynx"]
    shown = home.sql("SHOW ROUTINE LOAD FOR words")[0].dicts()[0]
    told = {name: json.loads(str(shown[name])) for name in ("Progress", "Lag", "DataSourceProperties")}
    assert told == {"Progress": {"north": "2"}, "Lag": {"north": 0}, "DataSourceProperties": {"box": "animals"}}
    assert '"toy_start" = "2"' in home.sql("SHOW CREATE ROUTINE LOAD FOR words")[0].rows[0][2]


def test_it_is_altered_and_loads_again_what_an_operator_asks_for(home: LocalLading) -> None:
    home.sql(ROUTINE)
    home.run()
    home.sql('PAUSE ROUTINE LOAD FOR words; ALTER ROUTINE LOAD FOR words FROM TOY ("toy_start"="1")')
    home.sql("RESUME ROUTINE LOAD FOR words")
    home.run()
    assert sorted(word for _, word, _ in rows(home)) == ["hare", "lynx", "lynx", "newt"]


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ('TOY ("toy_box"="animals", "colour"="red")', SqlError, "colour is invalid property"),
        ('TOY ("toy_box"="animals", "toy_start"="x")', SqlError, "toy_start should be a number"),
        ('LEGO ("toy_box"="animals")', NotSupportedError, "LEGO cannot be the source"),
    ],
)
def test_its_own_rules_refuse_what_it_does_not_know(
    home: LocalLading, source: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        home.sql(f"CREATE ROUTINE LOAD words ON t FROM {source}")
