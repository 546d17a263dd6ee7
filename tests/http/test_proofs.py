"""Strangers who guess passwords keep nobody waiting, and headers make nobody somebody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from lading.errors import AuthError, ConfigError
from lading.http.authentication import MOST_PASSWORDS
from lading.http.proxies import SOMEWHERE, check_proxies
from lading.http.server import HttpServer
from lading.service.security.authentication import Refusal
from lading.service.security.users import ROOT, Access
from lading.settings import SecuritySettings
from lading.testing.marked import secret
from tests.http.rig import Rig, rules
from tests.logins import ROOT_LOGIN

PASSWORD = secret("ann")
WITHIN_S = 30.0


class Held:
    """Those who wait for the answer to a wrong password, until they are let go."""

    def __init__(self, wanted: int) -> None:
        self.delays: list[float] = []
        self.are_all_there = threading.Event()
        self.let_go = threading.Event()
        self._wanted = wanted

    async def sleep(self, delay_s: float) -> None:
        self.delays.append(delay_s)
        if len(self.delays) == self._wanted:
            self.are_all_there.set()
        while not self.let_go.is_set():
            await asyncio.sleep(0.01)


@pytest.fixture
def access(rig: Rig) -> Access:
    made = rig.access()
    made.create_user("ann", PASSWORD, by=ROOT)
    return made


def test_strangers_who_guess_delay_neither_tokens_nor_right_passwords(rig: Rig) -> None:
    access = rig.access(SecuritySettings(address_failures=0))
    access.create_user("ann", PASSWORD, by=ROOT)
    token = access.create_token("ann", by=ROOT).text
    held = Held(3 * MOST_PASSWORDS)
    with HttpServer(rig.app(access=access, under=rules(access=access, sleep=held.sleep))).start() as server:
        url, statuses = f"http://127.0.0.1:{server.port}/api/jobs", list[int]()

        def guess(number: int) -> None:
            statuses.append(httpx.get(url, auth=(f"stranger{number}", "wrong"), timeout=WITHIN_S).status_code)

        strangers = [threading.Thread(target=guess, args=(number,)) for number in range(3 * MOST_PASSWORDS)]
        for stranger in strangers:
            stranger.start()
        try:
            assert held.are_all_there.wait(WITHIN_S)
            assert httpx.get(url, headers={"authorization": f"Bearer {token}"}, timeout=5).status_code == 200
            assert httpx.get(url, auth=("ann", PASSWORD), timeout=5).status_code == 200
            assert statuses == []
        finally:
            held.let_go.set()
            for stranger in strangers:
                stranger.join(WITHIN_S)
    assert statuses == [401] * len(strangers)
    assert set(held.delays) == {0.25}


def test_delays_of_one_user_grow_over_http(rig: Rig, access: Access) -> None:
    held = Held(6)
    held.let_go.set()
    with serving(rig, access, held) as url:
        statuses = [httpx.get(url, auth=("ann", f"wrong{number}")).status_code for number in range(3)]
    assert statuses == [401, 401, 401]
    after = [0.25, 0.5, 1.0]
    assert [delay for delay in held.delays if delay in after] == after
    # Nobody waited here, so the next attempts had to wait for their turn first.
    assert len(held.delays) == 5


def test_a_refusal_says_what_the_waiting_one_says(rig: Rig, access: Access) -> None:
    settled = access.settle("ann", "10.0.0.5", None, used_password=True)
    assert isinstance(settled, Refusal)
    with pytest.raises(AuthError) as told:
        access.check_password("ann", "wrong", peer="10.0.0.5")
    assert (settled.error.what, settled.error.facts) == (told.value.what, told.value.facts)
    assert access.settle("root", "10.0.0.5", ROOT, used_password=True) == ROOT


@contextmanager
def serving(rig: Rig, access: Access, held: Held, *proxies: str) -> Iterator[str]:
    app = rig.app(access=access, under=rules(access=access, sleep=held.sleep))
    with HttpServer(app, trusted_proxies=proxies).start() as server:
        yield f"http://127.0.0.1:{server.port}/api/jobs"


@pytest.fixture
def held() -> Held:
    made = Held(1)
    made.let_go.set()
    return made


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "Forwarded"])
def test_headers_that_are_made_up_gain_no_attempt(rig: Rig, access: Access, held: Held, name: str) -> None:
    with serving(rig, access, held) as url:
        for number in range(3):
            httpx.get(url, auth=("ann", "wrong"), headers={name: f"10.0.0.{number}"})
    assert list(access.throttle.pairs) == [("ann", SOMEWHERE)]


def test_nobody_is_root_without_a_password_through_a_proxy(rig: Rig, access: Access, held: Held) -> None:
    with serving(rig, access, held) as url:
        assert httpx.get(url, auth=ROOT_LOGIN).status_code == 200
        assert httpx.get(url, auth=("root", "")).status_code == 401
        for said in ("10.0.0.5", "127.0.0.1", ""):
            assert httpx.get(url, auth=("root", ""), headers={"X-Forwarded-For": said}).status_code == 401
        assert httpx.get(url, auth=("ann", PASSWORD), headers={"X-Forwarded-For": "10.0.0.5"}).status_code == 200
    with serving(rig, access, held, "127.0.0.1") as url:
        for said in ("10.0.0.5", "127.0.0.1"):
            assert httpx.get(url, auth=("root", ""), headers={"X-Forwarded-For": said}).status_code == 401


def test_a_proxy_that_was_named_is_believed(rig: Rig, access: Access, held: Held) -> None:
    with serving(rig, access, held, "127.0.0.0/8") as url:
        for number in range(3):
            httpx.get(url, auth=("ann", "wrong"), headers={"X-Forwarded-For": f"9.9.9.9, 10.0.0.{number}"})
    assert list(access.throttle.pairs) == [("ann", f"10.0.0.{number}") for number in range(3)]
    with serving(rig, access, held, "192.0.2.1") as url:
        httpx.get(url, auth=("ann", "wrong"), headers={"X-Forwarded-For": "10.0.0.7"})
    assert ("ann", "10.0.0.7") not in access.throttle.pairs


def test_proxies_are_addresses() -> None:
    assert check_proxies(["10.0.0.5", " 10.1.0.0/16", "::1"]) == ("10.0.0.5", "10.1.0.0/16", "::1")
    for wrong in ("*", "proxy.example", "", "10.0.0.5/8"):
        with pytest.raises(ConfigError, match="not the address of a proxy"):
            check_proxies([wrong])
