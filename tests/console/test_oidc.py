"""Sign-in with a real identity provider: people in the console, programs at the API, and those who attack both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from playwright.sync_api import Browser, expect

from lading.clock import SystemClock
from lading.console.visits import Visits
from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.service.oidc_open import open_oidc
from lading.service.security.privileges import Identity
from lading.settings import load_settings
from lading.testing.clock import ManualClock
from tests.console.oidc_rig import Rig, Signer, run_rig
from tests.support.oidc_server import AUDIENCE, CLIENT, CLIENT_SECRET, OTHER_CLIENT

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    try:
        with run_rig(tmp_path_factory.mktemp("oidc")) as made:
            made.sql("CREATE USER alice; CREATE DATABASE shop; GRANT SELECT ON shop TO alice")
            yield made
    except ConfigError as error:
        pytest.skip(f"NOT PROVED, no identity provider was tried: {error}")


def location(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


# People.


def test_a_person_signs_in_and_out_with_a_browser(rig: Rig, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{rig.url}/new")
    page.get_by_role("link", name="Sign in with Test SSO").click()
    page.get_by_placeholder("Enter any login").fill("alice")
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(f"{rig.url}/new")
    expect(page.locator("header")).to_contain_text("alice")
    page.locator(".ld-menu summary").click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    page.goto(rig.url)
    page.wait_for_url("**/login?next=*")
    context.close()


def test_the_browser_gets_a_new_id_and_a_dropped_user_is_out(rig: Rig) -> None:
    rig.sql("CREATE USER carol")
    with rig.visit() as browser:
        rig.begin(browser)
        before = dict(browser.cookies)
        assert location(rig.sign_in(browser, "carol", "/spark")) == "/spark"
        name = next(name for name in before if name.startswith("lading_"))
        assert browser.cookies[name] != before[name]
        assert browser.get(f"{rig.url}/spark").status_code == 200
        rig.sql("DROP USER carol; CREATE USER carol")
        assert location(browser.get(f"{rig.url}/spark")).startswith("/login")
        # A password ends a login through the provider, and further ones.
        assert location(rig.sign_in(browser, "carol")) == "/"
        rig.sql("ALTER USER carol IDENTIFIED BY 'a password of her own'")
        assert location(browser.get(f"{rig.url}/spark")).startswith("/login")
        assert location(rig.sign_in(browser, "carol")) == "/login"


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ("bob", "is not a user of this service"),
        ("jack", "has a password here"),
        ("root", "never signs in"),
        ("Root", "never signs in"),
        ("white space", "cannot be the name of a user"),
    ],
)
def test_not_everybody_of_the_provider_comes_in(rig: Rig, user: str, told: str) -> None:
    with rig.visit() as browser:
        assert location(rig.sign_in(browser, user)) == "/login"
        assert told in rig.told(browser)
        assert told not in rig.told(browser)  # It is said once.
        assert location(browser.get(rig.url)).startswith("/login")


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/\\evil.example", "/login/oidc", "evil"])
def test_nobody_is_sent_to_another_site(rig: Rig, back: str) -> None:
    with rig.visit() as browser:
        assert location(rig.sign_in(browser, "alice", back)) == "/"


def test_a_login_lasts_as_long_as_the_setting_says() -> None:
    clock = ManualClock()
    visits = Visits(clock)
    visit = visits.redeem(visits.issue_ticket(Identity(user="alice"), "browser", life_s=600), "browser")
    assert visit is not None
    clock.sleep(599)
    assert visits.find(visit) is not None
    clock.sleep(2)
    assert visits.find(visit) is None


# Attacks on the way there and back.


def refused(rig: Rig, browser: httpx.Client, callback: str) -> str:
    """The words of the login page, for a browser that must not have been signed in."""
    assert location(browser.get(callback)) == "/login"
    told = rig.told(browser)
    assert location(browser.get(rig.url)).startswith("/login")
    return told


def test_a_callback_counts_once_and_in_its_own_browser(rig: Rig) -> None:
    with rig.visit() as browser, rig.visit() as victim:
        callback = rig.log_in_there(browser, rig.begin(browser), "alice")
        rig.begin(victim)
        assert "did not begin in this browser" in refused(rig, victim, callback)
        # Once tried, it is used up, also in its own browser.
        assert "finished already" in refused(rig, browser, callback)
        callback = rig.log_in_there(browser, rig.begin(browser), "alice")
        assert location(browser.get(callback)) == "/"
        with rig.visit() as thief:
            assert "finished already" in refused(rig, thief, callback)


def test_a_state_that_was_made_up_is_refused(rig: Rig) -> None:
    with rig.visit() as browser:
        callback = rig.log_in_there(browser, rig.begin(browser, state="guessed"), "alice")
        assert "did not begin in this browser" in refused(rig, browser, callback)


def test_a_token_for_another_nonce_is_refused(rig: Rig) -> None:
    with rig.visit() as browser:
        callback = rig.log_in_there(browser, rig.begin(browser, nonce="of another sign-in"), "alice")
        assert "made for another sign-in" in refused(rig, browser, callback)


def test_a_stolen_code_does_not_work_with_another_state(rig: Rig) -> None:
    with rig.visit() as browser, rig.visit() as thief:
        stolen = parse_qs(urlsplit(rig.log_in_there(browser, rig.begin(browser), "alice")).query)["code"][0]
        own = parse_qs(urlsplit(rig.begin(thief)).query)["state"][0]
        callback = f"{rig.url}/login/oidc/callback?code={stolen}&state={own}"
        assert "refused the sign-in" in refused(rig, thief, callback)  # PKCE: the thief has another verifier.


@pytest.mark.parametrize("query", ["", "state=", "code=x", "error=access_denied", "state=%00&code=%F0%9F"])
def test_a_callback_out_of_nowhere_is_refused(rig: Rig, query: str) -> None:
    with rig.visit() as browser:
        refused(rig, browser, f"{rig.url}/login/oidc/callback?{query}")


def test_a_refusal_of_the_provider_and_another_issuer_sign_nobody_in(rig: Rig) -> None:
    for wrong in ("error=access_denied", "code=x&iss=https%3A%2F%2Fevil.example"):
        with rig.visit() as browser:
            state = parse_qs(urlsplit(rig.begin(browser)).query)["state"][0]
            told = refused(rig, browser, f"{rig.url}/login/oidc/callback?state={state}&{wrong}")
            assert "did not sign you in" in told


# Programs.


def api_token(rig: Rig, user: str, client: str = CLIENT, resource: str = AUDIENCE) -> dict[str, Any]:
    """Tokens that a program gets of the provider for a user, by its own sign-in."""
    back = f"{rig.url}/for-programs/callback"
    verifier = "v" * 43
    with rig.visit() as browser:
        place = rig.begin(
            browser,
            client_id=client,
            redirect_uri=back,
            resource=resource,
            code_challenge="7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM",
        )
        code = parse_qs(urlsplit(rig.log_in_there(browser, place, user)).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
    answer = httpx.post(f"{rig.provider.issuer}/token", data=form, auth=(client, CLIENT_SECRET))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ask(rig: Rig, token: str) -> httpx.Response:
    return httpx.post(
        f"{rig.url}/api/sql", json={"sql": "SHOW DATABASES"}, headers={"authorization": f"Bearer {token}"}, timeout=30
    )


def test_an_access_token_of_the_provider_stands_for_its_user(rig: Rig) -> None:
    answer = ask(rig, api_token(rig, "alice")["access_token"])
    assert answer.status_code == 200, answer.text
    assert "shop" in answer.text
    for user in ("bob", "jack", "root"):
        assert ask(rig, api_token(rig, user)["access_token"]).status_code == 401


def test_groups_of_the_provider_give_roles(rig: Rig) -> None:
    rig.sql("CREATE USER dave; CREATE ROLE loaders; CREATE ROLE administrators; CREATE DATABASE depot")
    rig.sql("GRANT SELECT, LOAD ON depot.* TO ROLE loaders; GRANT ADMIN ON *.* TO ROLE administrators")
    token = api_token(rig, "dave")["access_token"]
    assert "depot" in ask(rig, token).text
    assert "depot" not in ask(rig, api_token(rig, "alice")["access_token"]).text
    rig.sql("DROP ROLE loaders")
    assert "depot" not in ask(rig, token).text


def test_groups_that_are_not_in_the_token_of_a_browser_are_asked_for(rig: Rig, tmp_path: Path) -> None:
    variables = {
        "LADING_OIDC_ISSUER": rig.provider.issuer,
        "LADING_OIDC_CLIENT_ID": CLIENT,
        "LADING_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "LADING_OIDC_BASE_URL": rig.url,
        "LADING_OIDC_CREATE_USERS": "yes",
        "LADING_OIDC_ROLES": "friends of erin=loaders",
    }
    with Lading(tmp_path / "home") as lading, rig.visit() as browser:
        oidc = open_oidc(load_settings(variables).oidc, lading)
        assert oidc is not None
        callback = rig.log_in_there(browser, oidc.begin("a browser", "/new"), "erin")
        signed_in = oidc.finish("a browser", dict(parse_qsl(urlsplit(callback).query)))
        assert (signed_in.back, signed_in.identity.user, signed_in.identity.roles) == ("/new", "erin", ("loaders",))


def test_tokens_that_were_made_for_somebody_else_are_refused(rig: Rig) -> None:
    for_another = api_token(rig, "alice", OTHER_CLIENT, "urn:another:api")["access_token"]
    identity = api_token(rig, "alice")["id_token"]
    for token in (for_another, identity):
        answer = ask(rig, token)
        assert answer.status_code == 401
        assert "made for somebody else" in answer.text


def claims(rig: Rig, **changes: Any) -> dict[str, Any]:
    now = SystemClock().now()
    made = {
        "iss": rig.provider.issuer,
        "aud": AUDIENCE,
        "sub": "alice",
        "preferred_username": "alice",
        "iat": now,
        "exp": now + timedelta(minutes=5),
    }
    return {name: value for name, value in {**made, **changes}.items() if value is not None}


def signed(rig: Rig, algorithm: str = "RS256", key_id: str = "one", **changes: Any) -> str:
    return jwt.encode(claims(rig, **changes), rig.signer.private, algorithm=algorithm, headers={"kid": key_id})


def test_a_token_is_valid_with_a_minute_of_difference_between_clocks(rig: Rig) -> None:
    now = SystemClock().now()
    assert ask(rig, signed(rig)).status_code == 200
    assert ask(rig, signed(rig, "PS256")).status_code == 200
    assert ask(rig, signed(rig, aud=["x", AUDIENCE])).status_code == 200
    assert ask(rig, signed(rig, exp=now - timedelta(seconds=30), nbf=now + timedelta(seconds=30))).status_code == 200


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"exp": SystemClock().now() - timedelta(seconds=120)}, "has expired"),
        ({"nbf": SystemClock().now() + timedelta(hours=2)}, "not valid yet"),
        ({"iat": SystemClock().now() + timedelta(hours=2)}, "not valid yet"),
        ({"exp": None}, "lacks exp"),
        ({"exp": "tomorrow"}, "not a time"),
        ({"exp": True}, "not a time"),
        ({"iss": "https://evil.example"}, "another provider"),
        ({"iss": None}, "lacks"),
        ({"aud": "somebody"}, "somebody else"),
        ({"aud": CLIENT}, "somebody else"),
        ({"aud": None}, "lacks"),
        ({"sub": None}, "lacks"),
        ({"preferred_username": None}, "lacks the claim"),
        ({"preferred_username": ["alice"]}, "lacks the claim"),
        ({"preferred_username": "root"}, "never signs in"),
        ({"preferred_username": "jack"}, "has a password here"),
        ({"preferred_username": "bob"}, "is not a user"),
        ({"algorithm": "RS384"}, "only RS256"),
        ({"key_id": "unknown"}, "no such key"),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(given),  # The same in every process.
)
def test_a_token_with_one_thing_wrong_is_refused(rig: Rig, changes: dict[str, Any], told: str) -> None:
    answer = ask(rig, signed(rig, **changes))
    assert answer.status_code == 401
    assert told in answer.text


def test_tokens_that_the_provider_did_not_sign_are_refused(rig: Rig) -> None:
    public = rig.signer.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = {"kid": "one"}
    nothing = jwt.encode(claims(rig), "", algorithm="none", headers=head)
    # As an attacker makes it: HS256 with the text of the public key as the secret. PyJWT refuses to make it.
    hashed = jwt.api_jws.PyJWS()
    hashed.unregister_algorithm("HS256")
    hashed.register_algorithm("HS256", _Careless(jwt.algorithms.HMACAlgorithm.SHA256))
    body = {
        name: int(value.timestamp()) if hasattr(value, "timestamp") else value for name, value in claims(rig).items()
    }
    confused = hashed.encode(json.dumps(body).encode(), public, algorithm="HS256", headers=head)
    forged = jwt.encode(claims(rig), Signer.make("one").private, algorithm="RS256", headers=head)
    whole = signed(rig)
    start, _, _ = whole.rpartition(".")
    other = jwt.encode(claims(rig, preferred_username="x"), rig.signer.private, algorithm="RS256", headers=head)
    swapped = f"{whole.split('.')[0]}.{other.split('.')[1]}.{whole.split('.')[2]}"
    for token in (nothing, confused, forged, f"{start}.", f"{start}.AAAA", swapped, "a.b.c", "..", f"{whole}.x"):
        assert ask(rig, token).status_code == 401, token[:40]


class _Careless(jwt.algorithms.HMACAlgorithm):
    """Takes a public key for a secret."""

    def prepare_key(self, key: Any) -> bytes:
        return bytes(key)
