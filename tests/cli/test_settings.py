"""Settings from the environment: what is not known or cannot be used is refused by name, before anything is started."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import pytest

from lading.cli.main import command_of, main
from lading.errors import ConfigError
from lading.service.telemetry.logs import LogFormat
from lading.settings import ServiceSettings, Settings, about, groups, load_settings, variable_of
from lading.testing.marked import secret


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("LADING_TOKEN_DAY", "3", "There is no setting LADING_TOKEN_DAY; did you mean LADING_TOKEN_DAYS?"),
        ("LADING_KEY", "x", "There is no setting LADING_KEY"),
        ("LADING_PORT", "8030", "There is no setting LADING_PORT"),
        ("LADING_HTTP_PORT", "80300", "The variable LADING_HTTP_PORT is not a whole number from 0 to 65535"),
        ("LADING_LOG_FORMAT", "xml", "The variable LADING_LOG_FORMAT is not text or json"),
        ("LADING_GRACE", "long", "The variable LADING_GRACE is not a number from 0 to"),
        ("LADING_TOKEN_DAYS", "soon", "The variable LADING_TOKEN_DAYS is not a whole number from 0 to 1000000"),
        ("LADING_AUDIT_FILES", "0", "The variable LADING_AUDIT_FILES is not a whole number from 1 to 1000000"),
        ("LADING_PASSWORD_LIST", "/nowhere", "The file that LADING_PASSWORD_LIST names cannot be read"),
        ("LADING_OIDC_CREATE_USERS", "perhaps", "The variable LADING_OIDC_CREATE_USERS is neither yes nor no"),
        ("LADING_FAILPOINTS", "here", "LADING_FAILPOINTS has an item that is not name=kill"),
    ],
)
def test_a_command_refuses_a_setting_that_it_cannot_use_and_starts_nothing(
    variable: str,
    value: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "argv", ["lading", "sql", "-e", "SHOW DATABASES", "--home", str(home)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = " ".join(capsys.readouterr().err.split())
    assert told in said
    assert "Nothing was started." in said
    assert ended.value.code == ConfigError.exit_code
    assert not home.exists()


def test_what_kubernetes_sets_for_a_service_of_that_name_is_left_alone() -> None:
    given = {
        "LADING_SERVICE_HOST": "10.0.0.7",
        "LADING_SERVICE_PORT": "8030",
        "LADING_SERVICE_PORT_HTTP": "8030",
        "LADING_PORT": "tcp://10.0.0.7:8030",
        "LADING_PORT_8030_TCP": "tcp://10.0.0.7:8030",
        "LADING_PORT_8030_TCP_ADDR": "10.0.0.7",
        "LADING_HTTP_PORT": "tcp://10.0.0.7:8030",
    }
    assert load_settings(given) == Settings()


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert load_settings({"LADING_TOKEN_DAYS": " ", "LADING_PASSWORD_LIST": "", "PATH": "x"}) == Settings()


def test_every_variable_is_read(tmp_path: Path) -> None:
    """Into its own field, and into no other."""
    file = tmp_path / "file"
    file.write_text("swordfish")
    (file.parent / "lading.toml").touch()
    values = {
        "int": "7",
        "float": "7",
        "bool": "yes",
        "Path": str(file),
        "Path | None": str(file),
        "frozenset[str]": str(file),
    }
    for name, group in groups().items():
        for each in fields(group):
            if variable := variable_of(each):
                text = "no" if each.default is True else values.get(str(each.type), "x")
                text = "json" if each.name == "log_format" else text
                text = str(file.parent / "lading.toml") if each.name == "config" else text
                changed = load_settings({variable: text})
                wrong = [
                    f
                    for f in fields(group)
                    if (f.name == each.name) == (getattr(getattr(changed, name), f.name) == f.default)
                ]
                assert wrong == [], variable


def test_secrets_among_the_settings_are_not_shown() -> None:
    names = ("SECRET_KEY", "STORE", "LDAP_SERVICE_PASSWORD", "OIDC_CLIENT_SECRET")
    settings = load_settings({f"LADING_{name}": secret(name) for name in names})
    assert settings.oidc.oidc_client_secret == secret("OIDC_CLIENT_SECRET")
    assert not any(secret(name) in repr(settings) for name in names)


def test_the_options_of_serve_are_settings_with_the_same_defaults() -> None:
    options = {each.opts[0]: each.default for each in command_of("serve").params}
    known = {about(each).option: each.default for each in fields(ServiceSettings) if about(each).option}
    assert options.keys() == known.keys()
    assert {name for name in known if str(options[name] or "") != str(known[name] or "")} == {"--log-format"}
    assert ServiceSettings().log_format == LogFormat.TEXT.value
