"""Sign-in with LDAP, against a real OpenLDAP server."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from fastapi.testclient import TestClient

from lading.clock import Clock, SystemClock
from lading.errors import AuthError, ConfigError, UnavailableError
from lading.http.app import create_app
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.server import MysqlServer
from lading.service.facade import Lading
from lading.service.security.certificates import CertificateFiles
from lading.service.security.ldap_directory import LdapDirectory, open_ldap
from lading.service.security.ldap_settings import LdapSettings, load_ldap_settings
from lading.service.security.mysql_users import MysqlUsers
from lading.service.security.users import ROOT, Access
from lading.settings import load_settings
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from tests.http.rig import rules
from tests.service.slapd import SERVICE_DN, SUFFIX, Slapd, run_slapd
from tests.support.certificates import Certificate, self_signed

LOCAL = secret("a password of ours")
PREFIX = "LADING_LDAP_"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("ldap-certificate"))


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Slapd]:
    with run_slapd(tmp_path_factory.mktemp("slapd"), certificate) as running:
        yield running


def by_search(slapd: Slapd) -> dict[str, str]:
    """Settings with a service account, over ldap:// and StartTLS."""
    return {
        "URL": f"ldap://127.0.0.1:{slapd.port}",
        "CA_FILE": str(slapd.ca_file),
        "SEARCH_BASE": f"ou=people,{SUFFIX}",
        "SERVICE_DN": SERVICE_DN,
        "SERVICE_PASSWORD": secret("service"),
        "GROUP_BASE": f"ou=groups,{SUFFIX}",
        "ROLES": "loaders=loader, dbas=admins, dbas=loader",
        "TIMEOUT_S": "3",
    }


def by_template(slapd: Slapd) -> dict[str, str]:
    """Settings without a service account, over ldaps://."""
    return {
        "URL": f"ldaps://127.0.0.1:{slapd.tls_port}",
        "CA_FILE": str(slapd.ca_file),
        "BIND_DN": f"uid={{user}},ou=people,{SUFFIX}",
        "GROUP_BASE": f"ou=groups,{SUFFIX}",
        "ROLES": "loaders=loader, dbas=admins",
        "SESSION_MINUTES": "30",
        "TIMEOUT_S": "3",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    lading: Lading
    client: TestClient

    def ask(self, text: str, user: str, password: str) -> Any:
        return self.client.post("/api/sql", json={"sql": text}, auth=(user, password))


@pytest.fixture
def open_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def opened(settings: Mapping[str, str], clock: Clock | None = None) -> Iterator[ServerContext]:
        for name, value in settings.items():
            monkeypatch.setenv(f"{PREFIX}{name}", value)
        with Lading(tmp_path / "home", clock=clock) as lading:
            lading.access.set_password("root", LOCAL, by=ROOT)
            lading.sql(
                "CREATE DATABASE shop; CREATE ROLE loader; "
                "CREATE ROLE admins; GRANT LOAD, SELECT ON shop.* TO ROLE loader; GRANT ADMIN ON *.* TO ROLE admins; "
                f"CREATE USER taken IDENTIFIED BY '{LOCAL}'; CREATE USER etl; GRANT SELECT ON shop.orders TO etl"
            )
            app = create_app(lading, access=lading.access, rules=rules(access=lading.access))
            yield ServerContext(lading=lading, client=TestClient(app, raise_server_exceptions=False))

    return opened


@pytest.mark.parametrize("settings", [by_search, by_template])
def test_people_of_the_directory_log_in_with_the_roles_of_their_groups(
    slapd: Slapd, open_house: Any, settings: Any
) -> None:
    with open_house(settings(slapd)) as house:
        assert house.ask("SHOW TABLES FROM shop", "alice", secret("alice")).status_code == 200
        assert house.ask("SHOW USERS", "alice", secret("alice")).status_code == 403
        shown = house.ask("SHOW GRANTS", "alice", secret("alice")).json()["results"][0]["rows"]
        assert ["GRANT 'loader' TO 'alice'"] in shown
        assert ["GRANT LOAD, SELECT ON shop.* TO ROLE 'loader'"] not in shown
        assert ["GRANT LOAD ON shop.* TO ROLE 'loader'"] in shown
        assert house.ask("SHOW USERS", "bob", secret("bob")).status_code == 200
        # A user without a password here logs in there, and keeps what was granted here.
        assert house.ask("SHOW TABLES FROM shop", "etl", secret("etl")).status_code == 200
        for user, password in (
            ("alice", secret("bob")),
            ("alice", ""),
            ("nobody", secret("alice")),
            ("ALICE", secret("alice")),
            ("root", secret("root")),
            ("taken", secret("taken")),
            ("*", secret("alice")),
            ("alice)(uid=*", secret("alice")),
            (f"alice,ou=people,{SUFFIX}", secret("alice")),
        ):
            assert house.ask("SHOW GRANTS", user, password).status_code == 401, user
        assert house.ask("SHOW USERS", "root", LOCAL).status_code == 200
        assert house.ask("SHOW GRANTS", "taken", LOCAL).status_code == 200


def test_the_password_of_the_directory_is_not_set_here(slapd: Slapd, open_house: Any) -> None:
    with open_house(by_search(slapd)) as house:
        for user in ("alice", "etl"):
            refused = house.ask(f"ALTER USER {user} IDENTIFIED BY '{LOCAL}'", user, secret(user))
            assert (refused.status_code, "is in the directory" in refused.text) == (403, True)
        assert house.ask("CREATE TOKEN FOR alice", "alice", secret("alice")).status_code == 404
        assert house.ask("CREATE TOKEN FOR etl", "etl", secret("etl")).status_code == 200
        # A password that is set here counts from then on, and the one of the directory no longer.
        house.ask(f"ALTER USER etl IDENTIFIED BY '{LOCAL}'", "root", LOCAL)
        assert house.ask("SHOW GRANTS", "etl", secret("etl")).status_code == 401
        assert house.ask("SHOW GRANTS", "etl", LOCAL).status_code == 200


def test_who_leaves_the_directory_or_a_group_is_out_within_a_minute(slapd: Slapd, open_house: Any) -> None:
    clock = ManualClock()
    slapd.change(
        f"dn: uid=carol,ou=people,{SUFFIX}\nchangetype: add\nobjectClass: inetOrgPerson\nuid: carol\ncn: c\nsn: c\n"
        f"userPassword: {secret('carol')}\n\n"
        f"dn: cn=loaders,ou=groups,{SUFFIX}\nchangetype: modify\nadd: member\nmember: uid=carol,ou=people,{SUFFIX}\n"
    )
    with open_house(by_search(slapd), clock) as house:
        access = house.lading.access
        session = house.lading.session_of(access.check_password("carol", secret("carol"), peer="192.0.2.1"))
        assert session.sql("SHOW TABLES FROM shop")[0].rows == ()
        slapd.change(
            f"dn: cn=loaders,ou=groups,{SUFFIX}\nchangetype: modify\ndelete: member\n"
            f"member: uid=carol,ou=people,{SUFFIX}\n"
        )
        clock.sleep(61)
        assert session.sql("SHOW GRANTS")[0].rows == ()
        slapd.change(f"dn: uid=carol,ou=people,{SUFFIX}\nchangetype: delete\n")
        clock.sleep(30)
        assert session.sql("SHOW GRANTS")[0].rows == ()
        clock.sleep(31)
        with pytest.raises(AuthError, match="The login of user 'carol' has ended"):
            session.sql("SHOW GRANTS")
        assert house.ask("SHOW GRANTS", "carol", secret("carol")).status_code == 401


def test_without_a_service_account_a_login_ends_after_its_time(slapd: Slapd, open_house: Any) -> None:
    clock = ManualClock()
    with open_house(by_template(slapd), clock) as house:
        session = house.lading.session_of(house.lading.access.check_password("alice", secret("alice")))
        clock.sleep(29 * 60)
        assert session.sql("SHOW TABLES FROM shop")[0].rows == ()
        clock.sleep(2 * 60)
        with pytest.raises(AuthError, match="has ended"):
            session.sql("SHOW TABLES FROM shop")


def test_a_password_that_was_changed_there_counts_for_a_minute_at_most(slapd: Slapd, open_house: Any) -> None:
    def change(password: str) -> None:
        slapd.change(
            f"dn: uid=bob,ou=people,{SUFFIX}\nchangetype: modify\nreplace: userPassword\nuserPassword: {password}\n"
        )

    clock = ManualClock()
    with open_house(by_search(slapd), clock) as house:
        access: Access = house.lading.access
        access.check_password("bob", secret("bob"))
        change(secret("new bob"))
        try:
            clock.sleep(45)
            access.rights(access.identity_for("bob"))  # Looking up roles does not make it last longer.
            clock.sleep(16)
            with pytest.raises(AuthError):
                access.check_password("bob", secret("bob"))
            assert access.check_password("bob", secret("new bob")).user == "bob"
        finally:
            change(secret("bob"))


@pytest.mark.parametrize("with_tls", [True, False])
@pytest.mark.parametrize("plugin", ["caching_sha2_password", "mysql_native_password"])
def test_mysql_clients_log_in_as_people_of_the_directory(
    slapd: Slapd, open_house: Any, certificate: Certificate, plugin: str, with_tls: bool
) -> None:
    tls = CertificateFiles(certificate.certificate, certificate.key)
    with open_house(by_search(slapd)) as house:
        users = MysqlUsers(house.lading.access)
        options = MysqlOptions(port=0, close_grace_s=2, tls=tls if with_tls else None)
        with MysqlServer(house.lading, authenticator=users, options=options) as server:

            def connect(user: str, password: str) -> Any:
                ssl = {"ssl": {"ca": str(certificate.certificate)}} if with_tls else {"ssl_disabled": True}
                made = pymysql.connections.Connection(
                    host="127.0.0.1", port=server.port, user=user, password=password, defer_connect=True, **ssl
                )
                made._auth_plugin_name = plugin
                made.connect()
                return made

            with connect("alice", secret("alice")) as alice, alice.cursor() as cursor:
                cursor.execute("SHOW TABLES FROM shop")
                cursor.execute("SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'shop'")
                assert cursor.fetchall() == (("shop",),)
            with connect("taken", LOCAL) as taken, taken.cursor() as cursor:
                cursor.execute("SELECT CURRENT_USER()")
            for user, password in (("alice", secret("bob")), ("alice", ""), ("taken", secret("taken"))):
                with pytest.raises(pymysql.OperationalError) as caught:
                    connect(user, password)
                assert caught.value.args[0] == 1045


def test_a_directory_that_is_down_is_told_and_keeps_nobody_else_out(slapd: Slapd, open_house: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {**by_search(slapd), "URL": f"ldap://127.0.0.1:{silent.getsockname()[1]}", "TIMEOUT_S": "1"}
        with open_house(settings) as house:
            for _ in range(2):
                refused = house.ask("SHOW GRANTS", "alice", secret("alice"))
                assert refused.status_code == 503
                assert "The directory ldap://127.0.0.1" in refused.json()["error"]["message"]
            assert house.ask("SHOW USERS", "root", LOCAL).status_code == 200
            assert house.ask("SHOW GRANTS", "taken", LOCAL).status_code == 200
            users = MysqlUsers(house.lading.access)
            options = MysqlOptions(port=0, close_grace_s=2)
            with (
                MysqlServer(house.lading, authenticator=users, options=options) as server,
                pytest.raises(pymysql.MySQLError, match=r"The directory ldap://127\.0\.0\.1"),
            ):
                pymysql.connect(host="127.0.0.1", port=server.port, user="alice", password=secret("alice"))


@pytest.mark.parametrize("settings", [by_search, by_template])
def test_a_directory_that_cannot_prove_its_name_gets_no_password(slapd: Slapd, tmp_path: Path, settings: Any) -> None:
    given = settings(slapd)
    for change, why in (
        ({"CA_FILE": str(self_signed(tmp_path).certificate)}, "CERTIFICATE_VERIFY_FAILED"),
        ({"URL": given["URL"].replace("127.0.0.1", "127.0.0.2")}, "127.0.0.2"),
    ):
        directory = directory_of({**given, **change})
        with pytest.raises(UnavailableError, match=why):
            directory.check("alice", secret("alice"))


def test_a_wrong_service_account_is_told(slapd: Slapd) -> None:
    directory = directory_of({**by_search(slapd), "SERVICE_PASSWORD": secret("wrong")})
    with pytest.raises(UnavailableError, match="refuses LADING_LDAP_SERVICE_DN"):
        directory.check("alice", secret("alice"))


def test_a_name_is_never_a_part_of_a_filter_or_of_a_name(slapd: Slapd) -> None:
    for settings in (by_search(slapd), by_template(slapd)):
        directory = directory_of(settings)
        for name in ("*", "a*", "alice)(uid=*", f"alice,ou=people,{SUFFIX}", "alice\\2a", "\0", "alice+cn=alice", ""):
            assert not directory.check(name, secret("alice")), name
        assert not directory.check("alice", "")
        assert directory.check("alice", secret("alice"))


def test_filters_find_what_ldapsearch_finds(slapd: Slapd) -> None:
    for text, is_found in (
        ("(&(objectClass=inetOrgPerson)(|(uid={user})(mail={user})))", True),
        ("(&(uid={user})(!(cn=alice)))", False),
        ("(&(uid={user})(cn=a*i*e))", True),
        ("(&(uid={user})(cn=*b))", False),
        ("(&(uid={user})(cn:caseExactMatch:=alice))", True),
        ("(&(uid={user})(sn>=b))", False),
        ("(&(uid={user})(cn=\\61lice))", True),
        ("(&(uid={user})(userPassword=*))", False),
    ):
        directory = directory_of({**by_search(slapd), "SEARCH_FILTER": text})
        assert directory.check("alice", secret("alice")) is is_found, text


def directory_of(given: Mapping[str, str]) -> LdapDirectory:
    made = open_ldap(load_settings({f"{PREFIX}{name}": value for name, value in given.items()}).ldap, SystemClock())
    assert made is not None
    return made


def settings_of(**given: str) -> LdapSettings | None:
    return load_ldap_settings(load_settings({f"{PREFIX}{name}": value for name, value in given.items()}).ldap)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"URL": "http://x", "BIND_DN": "uid={user}"}, "URL is not the address"),
        ({"URL": "ldap://x", "BIND_DN": "uid={user}", "START_TLS": "no"}, "in the clear"),
        ({"URL": "ldaps://x"}, "needs either"),
        ({"URL": "ldaps://x", "BIND_DN": "uid=user"}, "BIND_DN does not say where"),
        ({"URL": "ldaps://x", "SEARCH_BASE": "dc=x"}, "needs LADING_LDAP_SERVICE_DN"),
        ({"URL": "ldaps://x", "SEARCH_BASE": "dc=x", "SERVICE_DN": "cn=x"}, "SERVICE_DN needs a password"),
        ({"URL": "ldaps://x", "BIND_DN": "uid={user}", "ROLES": "a=b"}, "go together"),
        ({"URL": "ldaps://x", "BIND_DN": "uid={user}", "ROLES": "a", "GROUP_BASE": "x"}, "is not group=role"),
        ({"URL": "ldaps://x", "BIND_DN": "uid={user}", "GROUP_FILTER": "(member={dn}"}, "GROUP_FILTER is not a filter"),
        ({"URL": "ldaps://x", "BIND_DN": "uid={user}", "TIMEOUT_S": "0"}, "TIMEOUT_S is not"),
        ({"URL": "ldaps://x", "BIND_DN": "uid={user}", "BIND_PASSWORD": "x"}, "no setting LADING_LDAP_BIND_PASSWORD"),
    ],
)
def test_settings_that_cannot_be_used_stop_the_start(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        settings_of(**given)


def test_without_settings_there_is_no_directory(tmp_path: Path) -> None:
    assert settings_of() is None
    (tmp_path / "password").write_text("of the service\n")
    given = {"SERVICE_DN": "cn=x", "SERVICE_PASSWORD_FILE": str(tmp_path / "password")}
    made = settings_of(URL="ldaps://x", SEARCH_BASE="dc=x", **given)
    assert made is not None
    assert (made.port, made.service_password, "of the service" in repr(made)) == (636, "of the service", False)
