"""The token by which commands of a machine reach its service, when several services share a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lading.cli.serve import LOCAL_TOKEN, _light
from lading.errors import AuthError
from lading.service.facade import Lading
from lading.service.runtime.address_file import find_address
from lading.service.security.users import ROOT


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[list[Lading]]:
    with ExitStack() as stack:
        store = str(tmp_path / "store.db")
        yield [stack.enter_context(Lading(tmp_path / name, store_url=store)) for name in ("one", "two")]


def lit(lading: Lading) -> ExitStack:
    stack = ExitStack()
    _light(stack, lading, "http://127.0.0.1:1", 1)
    return stack


def token_of(lading: Lading) -> str:
    address = find_address(lading.home.path)
    assert address is not None
    return address.token


def test_a_service_that_starts_leaves_tokens_of_others_alone(homes: list[Lading]) -> None:
    one, two = homes
    ends = [lit(one)]
    first = token_of(one)
    ends.append(lit(two))
    assert two.access.check_token(first).user == ROOT.user, "commands still reach the first service"
    for end in ends:
        end.close()
    assert one.access.list_tokens(by=ROOT) == []


def test_one_that_starts_again_makes_the_old_token_of_its_home_invalid(homes: list[Lading]) -> None:
    one, two = homes
    lit(one)
    killed = token_of(one)
    one.access.create_token(ROOT.user, by=ROOT, comment=LOCAL_TOKEN)  # As older versions called it.
    end = lit(one)
    with pytest.raises(AuthError):
        two.access.check_token(killed)
    assert len(one.access.list_tokens(by=ROOT)) == 1
    end.close()


def test_a_service_ends_well_when_somebody_dropped_its_token(homes: list[Lading]) -> None:
    one, two = homes
    end = lit(one)
    two.sql(f"DROP TOKEN '{one.access.list_tokens(by=ROOT)[0].token_id}'")
    end.close()
    assert find_address(one.home.path) is None
