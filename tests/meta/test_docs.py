"""Documents are part of the build: examples run, links lead somewhere, nothing is undocumented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

import lading
from lading.cli.main import COMMANDS
from tests.meta import api_page, settings_page

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)\)")


def examples(pattern: re.Pattern[str]) -> list[ParameterSet]:
    found = [(page, text) for page in PAGES for text in pattern.findall(page.read_text())]
    return [pytest.param(text, id=f"{page.name}-{number}") for number, (page, text) in enumerate(found)]


@pytest.mark.parametrize("code", examples(PYTHON))
def test_python_examples_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []


def test_every_file_that_the_page_for_newcomers_names_is_there() -> None:
    named = re.findall(r"`((?:src|tests|docs)/[^`]+)`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(named) > 40
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", ["engines.md", "catalogs.md"])
def test_every_test_that_a_page_about_others_names_is_there(name: str) -> None:
    """Their cells are promises; each names the test that keeps it."""
    page = (ROOT / "docs" / name).read_text()
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", page))
    assert [path for path in files if not (ROOT / path).exists()] == []
    known = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        known |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > {"engines.md": 25, "catalogs.md": 8}[name]
    assert sorted(named - known) == []
    ends = set(re.findall(r"`…(\w+)`", page))
    assert [end for end in ends if not any(each.endswith(end) for each in known)] == []


def test_every_row_of_the_page_about_engines_names_a_test() -> None:
    page = (ROOT / "docs" / "engines.md").read_text()
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| ---", "| operation"))
    ]
    vague = [line for line in rows if "test" not in line and "the same" not in line and "both" not in line]
    assert [line for line in vague if not line.startswith("| feature")] == []


def test_the_page_of_the_api_is_what_the_package_exports() -> None:
    assert api_page.PAGE.read_text() == api_page.render(), "run python -m tests.meta.api_page"
    assert "None\n\n###" not in api_page.render()


def test_the_page_of_the_settings_is_what_can_be_set() -> None:
    assert settings_page.PAGE.read_text() == settings_page.render(), "run python -m tests.meta.settings_page"


def test_everything_that_the_package_exports_is_there_and_says_what_it_is() -> None:
    for name in lading.__all__:
        assert getattr(lading, name).__doc__, name


def test_every_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in COMMANDS if f"lading {name}" not in text] == []


def test_the_changelog_begins_with_this_version() -> None:
    assert f"\n## {lading.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_every_make_target_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert targets
    for target in targets[1].split():
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), target
