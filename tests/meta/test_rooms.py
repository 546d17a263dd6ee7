"""Imports go down, never sideways; importing Lading costs nothing and says nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.trees import nodes_of

SRC = Path(__file__).parent.parent.parent / "src" / "lading"

FLOORS: list[set[str]] = [
    {
        "errors",
        "ids",
        "clock",
        "settings",
        "settings_around",
        "settings_file",
        "settings_sign_in",
        "setting_fields",
        "failpoints",
        "deferred",
        "suggest",
    },
    {"net"},
    {"model"},
    {"sql", "jobs", "plan", "commit", "status"},
    {"storage"},
    {"store", "sources", "tables", "pipeline"},
    {"service"},
    {"http", "mysql", "console"},
    {"cli"},  # `lading serve` starts the other faces
    {
        "integrations",  # imported by the schedulers of others; their client is that of the commands
        "connecting",  # `lading.connect`: a home that is opened here, or the service that has it
    },
]
SERVICE: list[set[str]] = [
    {"result", "home"},
    {"limits"},
    {"security"},
    {"catalog", "compile", "spark_queries"},
    {"runtime"},
    {"installation"},
    {"recording"},
    {"session"},
    {"telemetry"},
    {"edits"},
    {"views"},
    {"notify"},
    {"lineage"},
    {"statements"},
    {"scheduling", "operations"},
    {"facade"},
    {"recover", "oidc_open"},
]
"""The rooms of the service, from the lowest."""
DOOR = {
    "facade",
    "session",
    "installation",
    "result",
    "recording",
    "operations",
    "views",
    "security",
    "limits",
    "telemetry",
}
"""What the faces may use of it. `cli` starts the threads of a service and may use all."""
FROM = re.compile(r"^\s*from (lading[\w.]*) import ([\w, ]+)$", re.MULTILINE)
MAY_IMPORT_TESTING = {"cli/simulate.py", "cli/demo_kinesis.py"}


def files() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def floor_of(room: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def rooms_imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes_of(path):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts = [name.split(".") for name in names]
        found |= {part[1] for part in parts if part[0] == "lading" and len(part) > 1}
    return {room for room in found if (SRC / room).is_dir() or (SRC / f"{room}.py").exists()}


def test_a_file_imports_only_from_floors_below_its_own() -> None:
    wrong = [
        f"{path.relative_to(SRC)} must not import {other}"
        for path in files()
        if (room := room_of(path)) not in ("__init__", "testing")
        for other in rooms_imported(path) - {room}
        if not may_import(path, room, other)
    ]
    assert wrong == []


def may_import(path: Path, room: str, other: str) -> bool:
    if other == "testing":
        return str(path.relative_to(SRC)) in MAY_IMPORT_TESTING
    return floor_of(other) < floor_of(room) or floor_of(room) == floor_of(other) == 0


def service_rooms_imported(path: Path) -> set[str]:
    """Also by functions, and for types alone."""
    imported: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module == "lading.service":
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lading.service."):
            imported.add(str(node.module).split(".")[2])
    return imported


def service_floor(room: str) -> int:
    return next(number for number, rooms in enumerate(SERVICE) if room in rooms)


def test_rooms_of_the_service_import_only_rooms_below() -> None:
    wrong = [
        f"{path.relative_to(SRC)} must not import {other}"
        for path in sorted((SRC / "service").rglob("*.py"))
        if (room := path.relative_to(SRC / "service").parts[0].removesuffix(".py")) != "__init__"
        for other in service_rooms_imported(path) - {room}
        if service_floor(other) >= service_floor(room)
    ]
    assert wrong == []


WITHOUT_SQL = ("installation", "runtime", "compile", "telemetry", "scheduling", "views")
"""Rooms that run, open or show jobs, by the load that the record keeps. Only statements and edits read texts."""


@pytest.mark.parametrize("room", WITHOUT_SQL)
def test_no_statement_is_parsed_while_a_job_runs_is_opened_or_shown(room: str) -> None:
    place = SRC / "service" / room
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
        text = path.read_text()
        for word in ("syntax.parse", "parse_statement", "define_routine_load", "define_streaming_job", "spec_of_text"):
            assert word not in text, f"{path.name} reads the text of a statement: {word}"


NAMES_A_SOURCE = re.compile(
    r"""isinstance\([^)]*(?:FilesSource|KafkaSource|KinesisSource|KafkaProperties|KinesisProperties|S3Properties)
      | (?:[!=]=|\bin)\s*\(?"(?:S3|FILE|KAFKA|KINESIS)" """,
    re.VERBOSE,
)


@pytest.mark.parametrize(
    "line", ['if source.kind == "KAFKA":', 'if name in ("S3", "FILE"):', "if isinstance(source, FilesSource):"]
)
def test_a_question_after_the_source_would_be_found(line: str) -> None:
    assert NAMES_A_SOURCE.search(line)


def test_nobody_asks_which_source_it_is_but_the_source_itself() -> None:
    outside = [path for path in files() if not path.is_relative_to(SRC / "sources")]
    assert found_in(outside, NAMES_A_SOURCE) == [], "ask the kind, see sources/kind.py"


def found_in(paths: list[Path], pattern: re.Pattern[str]) -> list[str]:
    matches = ((path, pattern.search(path.read_text())) for path in paths)
    return [f"{path.relative_to(SRC)}: {match[0]!r}" for path, match in matches if match]


NAMES_A_DIALECT = re.compile(r"""(?:[!=]=|\bis(?: not)?|\bin)\s*\(?(?:JobKind\.|"(?:streaming|routine)")""")


@pytest.mark.parametrize("line", ["if record.kind is JobKind.STREAMING:", 'if job.kind == "routine":'])
def test_a_question_after_the_dialect_would_be_found(line: str) -> None:
    assert NAMES_A_DIALECT.search(line)


def test_nobody_asks_which_statement_made_a_job() -> None:
    assert found_in(files(), NAMES_A_DIALECT) == [], "what differs is in jobs/dialects.py"


@pytest.mark.parametrize("face", ["http", "mysql", "console"])
def test_faces_come_in_by_the_door(face: str) -> None:
    used = {room for path in (SRC / face).rglob("*.py") for room in service_rooms_imported(path)}
    assert used <= DOOR


def test_only_the_clock_asks_for_the_time() -> None:
    asks = re.compile(r"import time\n|datetime\.now\(|datetime\.utcnow\(")
    assert found_in([path for path in files() if path.name != "clock.py"], asks) == [], "take a Clock"


def test_the_package_has_no_module_that_only_tests_use() -> None:
    """From the commands, the names that `lading` exports and what schedulers import, every module is reached.

    Others are in tests/support.
    """
    modules = {".".join(("lading", *path.relative_to(SRC).with_suffix("").parts)): path for path in files()}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    reached, to_do = set[str](), ["lading", "lading.cli.main"]
    to_do += [f"lading.integrations.{name}" for name in ("airflow", "dagster")]
    while to_do:
        name = to_do.pop()
        if name in reached:
            continue
        reached.add(name)
        named = set(re.findall(r"\blading(?:\.\w+)+", modules[name].read_text()))
        beside = {
            f"{package}.{word}"
            for package, words in FROM.findall(modules[name].read_text())
            for word in words.split(", ")
        }
        to_do += [each for each in named | beside | {name.rpartition(".")[0]} if each in modules]
    assert modules.keys() - reached == set()


def test_only_the_settings_read_the_environment() -> None:
    reads = re.compile(r"\bos\.environb?\b|\bgetenv\b|\bfrom os import .*environ|envvar=\"")
    assert {path.name for path in files() if reads.search(path.read_text())} == {"settings.py"}


def test_files_stay_small() -> None:
    assert [str(path.relative_to(SRC)) for path in files() if len(path.read_text().splitlines()) > 400] == []


def test_importing_lading_is_quick_silent_and_pulls_nothing_heavy() -> None:
    code = (
        "import sys, time; before = time.process_time(); import lading, lading.errors, lading.model.codec; "
        "took = time.process_time() - before; "
        "heavy = [m for m in ('pyspark', 'boto3', 'pyarrow', 'deltalake', 'pyiceberg') if m in sys.modules]; "
        "assert not heavy, heavy; assert took < 0.2, took"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_seven_steps_read_the_same_in_the_code_and_in_the_documentation() -> None:
    code = (SRC / "commit" / "coordinator.py").read_text()
    page = (SRC.parent.parent / "docs" / "commit.md").read_text()
    docstring = ast.get_docstring(ast.parse(code)) or ""
    steps = " ".join(docstring[docstring.index("1. plan") :].split())
    assert steps in " ".join(page.replace("**", "").split())
