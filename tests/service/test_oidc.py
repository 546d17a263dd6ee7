"""Settings of the identity provider, and its keys that change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from lading.errors import AuthError, ConfigError, UnavailableError
from lading.service.facade import Lading
from lading.service.oidc_open import open_oidc
from lading.service.security.oidc import OpenIdConnect, roles_of
from lading.service.security.oidc_settings import load_oidc_settings
from lading.service.security.oidc_tokens import check_signed
from lading.service.security.users import ROOT, Access
from lading.settings import load_settings
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from lading.testing.npm import free_port
from tests.console.oidc_rig import Signer
from tests.support.oidc_server import AUDIENCE, serve_oidc

GIVEN = {
    "LADING_OIDC_ISSUER": "https://id.example/realms/x",
    "LADING_OIDC_CLIENT_ID": "lading",
    "LADING_OIDC_BASE_URL": "https://lading.example/",
}


def test_without_settings_there_is_no_provider() -> None:
    assert load_oidc_settings(load_settings({"PATH": "/bin", "LADING_OIDC_NAME": ""}).oidc) is None


def test_settings_have_defaults(tmp_path: Path) -> None:
    settings = load_oidc_settings(load_settings(GIVEN).oidc)
    assert settings is not None
    assert settings.redirect_uri == "https://lading.example/login/oidc/callback"
    assert (settings.scopes, settings.user_claim, settings.audiences) == (
        ("openid", "profile"),
        "preferred_username",
        (),
    )
    assert (settings.name, settings.session_minutes, settings.create_users) == ("single sign-on", 720, False)
    kept = secret("client")
    given = {**GIVEN, "LADING_OIDC_CLIENT_SECRET": kept, "LADING_OIDC_SCOPES": "email, groups"}
    more = load_oidc_settings(load_settings(given).oidc)
    assert more is not None
    assert (more.client_secret, more.scopes) == (kept, ("openid", "email", "groups"))
    assert kept not in repr(more)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ISSUER", "http://id.example", "LADING_OIDC_ISSUER is not an https URL"),
        ("ISSUER", "http://127.0.0.1.evil.example", "not an https URL"),
        ("ISSUER", "https://user@id.example", "not an https URL"),
        ("ISSUER", "ftp://id.example", "not an https URL"),
        ("ISSUER", "https://[", "not an https URL"),
        ("ISSUER", "", "needs LADING_OIDC_ISSUER"),
        ("BASE_URL", "http://lading.example", "LADING_OIDC_BASE_URL is not an https URL"),
        ("BASE_URL", "", "needs LADING_OIDC_BASE_URL"),
        ("SESSION_MINUTES", "0", "SESSION_MINUTES is not a whole number"),
        ("CREATE_USERS", "maybe", "neither yes nor no"),
        ("CLIENT_SECRET_FILE", "/nowhere/at/all", "cannot be read"),
        ("ROLES", "=reader", "ROLES names no group"),
        ("ROLES", "group=not a role", "LADING_OIDC_ROLES"),
        ("AUDIENCE", "x", "There is no setting LADING_OIDC_AUDIENCE"),
    ],
)
def test_wrong_settings_are_told(name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_oidc_settings(load_settings({**GIVEN, f"LADING_OIDC_{name}": value}).oidc)


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[Lading]:
    with Lading(tmp_path / "home", clock=ManualClock()) as made:
        made.access.create_user("alice", by=ROOT)
        yield made


def connect(lading: Lading, port: int, **more: str) -> OpenIdConnect:
    settings = {"ISSUER": f"http://127.0.0.1:{port}", "BASE_URL": "http://127.0.0.1:1", "AUDIENCES": AUDIENCE, **more}
    variables = {**GIVEN, **{f"LADING_OIDC_{name}": value for name, value in settings.items()}}
    made = open_oidc(load_settings(variables).oidc, lading)
    assert made is not None
    return made


def claims(lading: Lading, port: int, **changes: Any) -> dict[str, Any]:
    now_s = int(lading.clock.now().timestamp())
    made = {"iss": f"http://127.0.0.1:{port}", "aud": AUDIENCE, "sub": "s", "preferred_username": "alice"}
    return {**made, "exp": now_s + 600, **changes}


@pytest.mark.node
def test_new_keys_are_read_but_not_for_every_key_that_somebody_makes_up(lading: Lading) -> None:
    port, first, second = free_port(), Signer.make("first"), Signer.make("second")
    clock = lading.clock
    assert isinstance(clock, ManualClock)
    oidc = connect(lading, port)

    def signed(signer: Signer) -> str:
        head = {"kid": signer.jwk["kid"]}
        return jwt.encode(claims(lading, port), signer.private, algorithm="RS256", headers=head)

    with pytest.raises(UnavailableError, match="cannot be used"):
        oidc.check_bearer(signed(first))
    clock.sleep(31)
    try:
        with serve_oidc([first.jwk], [], port):
            assert oidc.check_bearer(signed(first)).user == "alice"
            clock.sleep(31)
            with pytest.raises(AuthError, match="no such key"):
                oidc.check_bearer(signed(second))  # It was asked for now, and is not there.
    except ConfigError as error:
        pytest.skip(f"NOT PROVED, no identity provider was tried: {error}")
    with serve_oidc([second.jwk], [], port):
        with pytest.raises(AuthError, match="no such key"):
            oidc.check_bearer(signed(second))  # Not asked for again so soon.
        assert oidc.check_bearer(signed(first)).user == "alice"
        clock.sleep(31)
        assert oidc.check_bearer(signed(second)).user == "alice"
        with pytest.raises(AuthError, match="no such key"):
            oidc.check_bearer(signed(first))  # A key that was taken back signs no more.
    # What is known outlives the provider for a while.
    assert oidc.check_bearer(signed(second)).user == "alice"
    logins = [(event.user, event.result.value) for event in lading.audit.newest_first()]
    assert set(logins) == {("alice", "ok"), ("(unknown)", "denied"), ("(unknown)", "error")}


@pytest.mark.node
def test_a_provider_that_says_another_name_is_not_used(lading: Lading) -> None:
    try:
        with serve_oidc([Signer.make("one").jwk], []) as provider:
            oidc = connect(lading, provider.port, ISSUER=f"http://localhost:{provider.port}")
            with pytest.raises(UnavailableError, match="says that it is"):
                oidc.begin("browser", "/")
    except ConfigError as error:
        pytest.skip(f"NOT PROVED, no identity provider was tried: {error}")


def test_tokens_are_refused_until_an_audience_is_set(lading: Lading) -> None:
    with pytest.raises(AuthError, match="LADING_OIDC_AUDIENCES is not set"):
        connect(lading, 1, AUDIENCES="").check_bearer("a.b.c", peer="10.0.0.5")
    event = next(lading.audit.newest_first())
    assert (event.kind.value, event.result.value, event.user, event.what, event.origin.peer) == (
        *("login", "denied", "(unknown)", "identity provider", "10.0.0.5"),
    )


def test_keys_of_elliptic_curves_fit_their_own_signatures_alone(lading: Lading) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    key = jwt.PyJWK.from_json(jwt.algorithms.ECAlgorithm.to_jwk(private.public_key()))
    body = claims(lading, 1)

    def check(text: str) -> dict[str, Any]:
        now = lading.clock.now()
        return check_signed(text, lambda _: key, issuer=body["iss"], audiences=[AUDIENCE], now=now)

    assert check(jwt.encode(body, private, algorithm="ES256"))["sub"] == "s"
    with pytest.raises(AuthError, match="another kind of signature"):
        check(jwt.encode(body, Signer.make("x").private, algorithm="RS256"))


def test_groups_are_read_in_the_forms_that_providers_write(lading: Lading) -> None:
    settings = connect(lading, 1, ROLES="a=one, b = two,a=three, /x/y=four").settings
    for said, roles in (
        (["a"], ("one", "three")),
        ("b", ("two",)),
        (["/x/y", "b", "a"], ("one", "two", "three", "four")),
        ([["a"], 7, None], ()),
        ({"a": 1}, ()),
        (None, ()),
    ):
        assert roles_of({"groups": said}, settings) == roles
    assert roles_of({}, settings) == ()


def test_names_of_the_provider_get_a_prefix_and_users_are_made_when_asked_for(lading: Lading) -> None:
    access: Access = lading.access
    claimed = {"sub": "s", "preferred_username": "dora", "email": "dora@example.com"}
    strict = connect(lading, 1, USER_PREFIX="sso.")
    with pytest.raises(AuthError, match=r"'sso\.dora' of the identity provider is not a user"):
        strict._identity(claimed, may_create=strict.settings.create_users)
    open_house = connect(lading, 1, USER_PREFIX="sso.", CREATE_USERS="yes")
    made = open_house._identity(claimed, may_create=open_house.settings.create_users)
    assert (made.user, made.is_root, access.rights(made).grants) == ("sso.dora", False, ())
    by_mail = connect(lading, 1, USER_CLAIM="email", CREATE_USERS="yes")
    with pytest.raises(AuthError, match="not verified"):
        by_mail._identity(claimed, may_create=True)
    assert by_mail._identity({**claimed, "email_verified": True}, may_create=True).user == "dora@example.com"


def test_a_missing_library_is_refused_by_the_name_of_the_extra(tmp_path: Path) -> None:
    """As on a machine where `lading[oidc]` was not installed."""
    code = "import sys; sys.modules['jwt'] = None; from lading.cli.main import main; main()"
    arguments = ["serve", "--init", "--home", str(tmp_path / "home"), "--mysql-port", "0", "--http-port", "0"]
    environment = {**os.environ, **GIVEN}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "pip install 'lading[oidc]'" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
