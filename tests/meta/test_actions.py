"""What `transition` returns is done: one function executes every action, and nobody else decides."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

from lading.jobs import actions
from tests.meta.trees import nodes_of

SRC = Path(__file__).parent.parent.parent / "src" / "lading"
LOOP = SRC / "service" / "runtime" / "job_loop.py"
ACTIONS = [action.__name__ for action in get_args(actions.Action)]


def classes_named(node: ast.AST) -> set[str]:
    patterns = [part for part in ast.walk(node) if isinstance(part, ast.MatchClass)]
    return {part.cls.id for part in patterns if isinstance(part.cls, ast.Name)}


def executed() -> set[str]:
    """The actions that `JobLoop.execute` has a case for."""
    functions = [node for node in nodes_of(LOOP) if isinstance(node, ast.FunctionDef)]
    (execute,) = (node for node in functions if node.name == "execute")
    return set[str]().union(
        *(classes_named(case.pattern) for case in ast.walk(execute) if isinstance(case, ast.match_case))
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_an_executor(action: str) -> None:
    assert action in executed(), f"transition returns {action}, and nobody does it"


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_is_returned_by_transition(action: str) -> None:
    text = "".join((SRC / "jobs" / name).read_text() for name in ("transition.py", "batches.py"))
    assert f"{action}(" in text, f"{action} has an executor, and nobody asks for it"


def test_the_loop_does_not_look_at_the_state_of_a_job() -> None:
    """A state is looked at by those who decide."""
    names = {node.attr for node in nodes_of(LOOP) if isinstance(node, ast.Attribute)}
    assert not names & {"state", "is_final", "is_waiting", "pace", "failures", "auto_resume", "reason"}
