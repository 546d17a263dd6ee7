"""How results are shown: nothing is cut, and what another program reads can be read back."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from decimal import Decimal

import pytest
from rich.console import Console

from lading.cli.output import OutputFormat, show
from lading.cli.statement_ends import read_ends
from lading.service.result import Result

LONG = "x" * 150
RESULT = Result(columns=("a", "b"), rows=((1, 'say "hi", |you|\n\tthere\\'), (None, "")))


def shown(result: Result, form: OutputFormat, capsys: pytest.CaptureFixture[str], width: int = 80) -> str:
    console = Console(file=(file := io.StringIO()), width=width)
    show(result, form, console)
    return file.getvalue() + capsys.readouterr().out


def test_csv_and_json_are_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO(shown(RESULT, OutputFormat.CSV, capsys))))
    assert rows == [["a", "b"], ["1", RESULT.rows[0][1]], ["", ""]]
    lines = [json.loads(line) for line in shown(RESULT, OutputFormat.JSON, capsys).splitlines()]
    assert lines == RESULT.dicts()


def test_tsv_and_markdown_have_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(RESULT, OutputFormat.TSV, capsys) == 'a\tb\n1\tsay "hi", |you|\\n\\tthere\\\\\n\\N\t\n'
    lines = shown(RESULT, OutputFormat.MARKDOWN, capsys).splitlines()
    assert lines[1] == "| --- | --- |"
    assert lines[2] == '| 1 | say "hi", \\|you\\|<br>\tthere\\\\ |'


def test_a_table_folds_and_loses_no_letter(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(Result(columns=("id", "long"), rows=((1, LONG),)), OutputFormat.TABLE, capsys, width=60)
    assert said.count("x") == len(LONG)
    assert max(map(len, said.splitlines())) <= 60
    assert "…" not in said


def test_a_table_that_is_too_wide_turns_vertical(capsys: pytest.CaptureFixture[str]) -> None:
    wide = Result(columns=tuple(f"column_{n}" for n in range(12)), rows=(tuple(f"value {n}" for n in range(12)),))
    said = shown(wide, OutputFormat.TABLE, capsys)
    assert "1. row" in said
    assert " column_7: value 7\n" in said


def test_a_definition_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"CREATE JOB j\nDO {LONG}"
    made = Result(columns=("JobName", "CreateStmt"), rows=(("j", text),))
    assert shown(made, OutputFormat.TABLE, capsys, width=40) == f"{text};\n"


def test_text_that_looks_like_markup_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[red]x[/red] :smile:" in shown(
        Result(columns=("a",), rows=(("[red]x[/red] :smile:",),)), OutputFormat.TABLE, capsys
    )


@pytest.mark.parametrize(
    ("text", "plain", "vertical", "is_complete"),
    [
        ("SHOW DATABASES;", "SHOW DATABASES;", set(), True),
        ("SHOW DATABASES", "SHOW DATABASES", set(), False),
        ("a\\G", "a; ", {0}, True),
        ("a; b\\g c", "a; b;  c", {1}, False),
        (";; a\\G", ";; a; ", {0}, True),
        ("SELECT '\\G;' -- ;\n", "SELECT '\\G;' -- ;\n", set(), False),
        ("SELECT 'it''s;'; -- end", "SELECT 'it''s;'; -- end", set(), True),
        ("a; SELECT 'open;", "a; SELECT 'open;", set(), False),
        ("a; /* open ;", "a; /* open ;", set(), False),
        ("a; /* closed */", "a; /* closed */", set(), True),
        ("SELECT `\\G`;", "SELECT `\\G`;", set(), True),
    ],
)
def test_where_statements_end(text: str, plain: str, vertical: set[int], is_complete: bool) -> None:
    read = read_ends(text)
    assert (read.text, set(read.vertical), read.is_complete) == (plain, vertical, is_complete)
    assert len(read.text) == len(text)


@pytest.mark.parametrize("form", [OutputFormat.TABLE, OutputFormat.VERTICAL])
def test_what_is_said_of_rows_is_shown_to_people(form: OutputFormat, capsys: pytest.CaptureFixture[str]) -> None:
    """A look at a source says how it was read, and which rows are bad."""
    said = Result(columns=("a",), rows=((1,),), message='read with "format" = "csv"; 2 bad rows')
    assert 'read with "format" = "csv"; 2 bad rows\n' in shown(said, form, capsys)
    assert "bad rows" not in shown(said, OutputFormat.CSV, capsys)


NESTED = Result(
    columns=("ok", "who", "raw", "price"),
    rows=((True, {"name": "ann", "tags": ["a", None], "at": date(2026, 1, 2)}, b"\x00\xff", Decimal("1.50")),),
)


def test_values_are_written_as_sql_and_json_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"name":"ann","tags":["a",null],"at":"2026-01-02"}'
    quoted = '"' + text.replace('"', '""') + '"'
    assert shown(NESTED, OutputFormat.TSV, capsys).splitlines()[-1] == f"true\t{text}\tAP8=\t1.50"
    assert shown(NESTED, OutputFormat.CSV, capsys).splitlines()[-1] == f"true,{quoted},AP8=,1.50"
    assert shown(NESTED, OutputFormat.MARKDOWN, capsys).splitlines()[-1] == f"| true | {text} | AP8= | 1.50 |"
    assert f" who: {text}\n" in shown(NESTED, OutputFormat.VERTICAL, capsys)
    told = json.loads(shown(NESTED, OutputFormat.JSON, capsys))
    assert told == {"ok": True, "who": json.loads(text), "raw": "AP8=", "price": "1.50"}
