"""A test that does not say that it needs Java, a broker or a browser cannot start one, also not through a process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.servers import BY_FIXTURE, QUICK, SPARK, mark_servers, take_refused

THROUGH_A_PROCESS = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"


def start(*command: str) -> subprocess.CompletedProcess[str]:
    """As a process that a test starts would."""
    return subprocess.run(
        [sys.executable, "-c", THROUGH_A_PROCESS, *command], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("java", "-version"), "ATestThatStartsJavaHasTheMarkJava"),
        (("node", "--eval", "0"), "a-test-that-starts-node-has-the-mark-node"),
    ],
)
def test_a_quick_test_starts_no_server_and_is_told_the_mark(
    request: pytest.FixtureRequest, command: tuple[str, ...], told: str
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"NOT PROVED: there is no {command[0]}")
    assert request.node.get_closest_marker(QUICK) is not None
    done = start(*command)
    assert done.returncode != 0
    assert told in done.stderr


@pytest.mark.parametrize("command", [("java", "-version"), ("node", "--version")])
def test_a_quick_test_that_is_skipped_without_a_server_fails(command: tuple[str, ...]) -> None:
    with suppress(FileNotFoundError):
        subprocess.run(command, capture_output=True, check=False)
    assert take_refused() == [f"{command[0]}: the test has no mark for it, see tests/servers.py"]


@pytest.mark.java
@pytest.mark.node
def test_a_test_with_a_mark_starts_it(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker(QUICK) is None
    for command in (("java", "-version"), ("node", "--eval", "0")):
        if shutil.which(command[0]) is not None:
            assert start(*command).returncode == 0


def test_a_browser_is_not_started() -> None:
    program = "from playwright.sync_api import sync_playwright; sync_playwright().start()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0
    assert "has-the-mark-node" in done.stderr


class Item(pytest.Item):
    """A test with fixtures."""

    fixturenames: tuple[str, ...] = ("tmp_path",)

    def runtest(self) -> None: ...


@pytest.mark.parametrize("fixture", [*BY_FIXTURE, SPARK])
def test_a_fixture_that_starts_a_server_marks_its_tests(request: pytest.FixtureRequest, fixture: str) -> None:
    plain, with_server = (Item.from_parent(request.node.parent, name=name) for name in ("plain", "with_server"))
    with_server.fixturenames = ("tmp_path", fixture)
    mark_servers([plain, with_server])
    assert [mark.name for mark in plain.iter_markers()] == [QUICK]
    assert [mark.name for mark in with_server.iter_markers()] == [BY_FIXTURE.get(fixture, SPARK)]


def test_who_needs_another_server_beside_the_session_is_in_the_lane_of_servers(request: pytest.FixtureRequest) -> None:
    item = Item.from_parent(request.node.parent, name="both")
    item.fixturenames = (SPARK, "broker")
    mark_servers([item])
    assert {mark.name for mark in item.iter_markers()} == {"kafka", "java"}
