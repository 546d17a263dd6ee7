"""Schemathesis asks whatever the description allows, and some of what it forbids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from lading.http import actions, health, reads, sql
from lading.service.security.users import ROOT
from tests.http.rig import Rig
from tests.support.examples import examples

EXAMPLES = examples(12, costs=20)
OPERATIONS = [
    (method, route.path)  # type: ignore[attr-defined]  # these are all paths
    for router in (health.router, reads.router, actions.router, sql.router)
    for route in router.routes
    for method in route.methods  # type: ignore[attr-defined]
]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    rig = Rig(tmp_path_factory.mktemp("described"))
    rig.put("a.csv", "1.00", "bad")
    rig.load(rig.create())
    access = rig.access()
    app = rig.app(access=access)
    app.state.token = access.create_token("root", by=ROOT).text
    yield schemathesis.openapi.from_asgi("/api/openapi.json", app)
    rig.lading.close()


def test_every_path_is_described(described: Any) -> None:
    listed = [operation.ok() for operation in described.get_all_operations()]
    assert sorted((operation.method.upper(), operation.path) for operation in listed) == sorted(OPERATIONS)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_the_api_is_as_described(described: Any, method: str, path: str, mode: GenerationMode) -> None:
    operation = described[path][method]
    headers = {"authorization": f"Bearer {described.app.state.token}"}
    # What a text means, the description cannot say: a statement or a position may be wrong although it is a text.
    # `ignored_auth` takes a token that it was given for one that it made up; the same is asserted by hand below.
    excluded = [ignored_auth, *([positive_data_acceptance] if method == "POST" else [])]
    if mode is GenerationMode.NEGATIVE and not (operation.path_parameters or operation.query or operation.body):
        return

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    def ask(case: Any, is_known: bool) -> None:
        if is_known and mode is GenerationMode.POSITIVE and "name" in case.path_parameters:
            case.path_parameters["name"] = "orders"  # Names that are made up find nothing.
        if path.startswith("/api/") and mode is GenerationMode.POSITIVE:
            case.headers = {"content-type": "application/json"}
            assert case.call().status_code == 401
        case.headers = headers
        case.call_and_validate(excluded_checks=excluded)

    ask()
