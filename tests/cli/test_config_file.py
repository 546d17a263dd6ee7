"""`lading.toml`: option over environment over file over default, names that are not known, secrets, Spark, catalogs."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lading
from lading.cli.main import app, main
from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.settings import about, groups, load_settings, spark_settings_of
from lading.testing.marked import MARK, secret

CATALOG = """
[catalogs.lake]
comment = "theirs"
type = "iceberg"
iceberg.catalog.type = "rest"
uri = "http://127.0.0.1:1"
"iceberg.rest.security.type" = "oauth2"
iceberg.rest.oauth2.credential = "env:LAKE_CREDENTIAL"
"""


def run(*words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, [*words])
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return answer.exit_code, answer.output


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    run("init", "--home", str(made))
    return made


def write(home: Path, text: str, mode: int = 0o644) -> Path:
    file = home / "lading.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(home: Path) -> None:
    write(
        home,
        "[service]\nhttp_port = 0\ngrace = 7\nmetrics = true\nhost = '0.0.0.0'\n[compaction]\ncompaction_seconds = 9\n",
    )
    found = load_settings({}, home=home)
    assert (found.service.http_port, found.service.grace, found.service.metrics) == (0, 7.0, True)
    assert (found.service.mysql_port, found.compaction.compaction_seconds) == (9030, 9)
    over = load_settings(
        {"LADING_HTTP_PORT": "8031", "LADING_METRICS": "no", "LADING_COMPACTION_SECONDS": "0", "LADING_HOST": ""},
        home=home,
    )
    assert (over.service.http_port, over.service.metrics, over.compaction.compaction_seconds) == (8031, False, 0)
    assert (over.service.grace, over.service.host) == (7.0, "127.0.0.1"), "an empty variable is the default"


def test_every_setting_can_be_in_the_file(home: Path, tmp_path: Path) -> None:
    """In its own table, into its own field."""
    words = tmp_path / "words"
    words.write_text("swordfish\n")
    values = {"int": "7", "float": "7.5", "Path | None": f"'{words}'", "Path": f"'{words}'"}
    values |= {"frozenset[str]": f"'{words}'", "tuple[str, ...]": '["a", "b"]', "str": "'x'"}
    for name, group in groups().items():
        for each in fields(group):
            if not about(each).in_file or each.name == "home":
                continue
            text = {"log_format": "'json'"}.get(each.name) or values.get(str(each.type), "true")
            text = "false" if each.default is True else text
            file = write(home, f"[{name}]\n{each.name} = {text}\n", 0o600)
            found = getattr(getattr(load_settings({"LADING_CONFIG": str(file)}), name), each.name)
            assert found != each.default, each.name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[service]\nhttp_prot = 1", "There is no setting http_prot in [service]"),
        ("[service]\nhttp_prot = 1", "did you mean http_port?"),
        ("[compaction]\nseconds = 1", "did you mean compaction_seconds?"),
        ("[audit]\ntoken_days = 1", "did you mean token_days of [security]?"),
        ("[sevice]\nhost = 'x'", "did you mean [service]?"),
        ("host = 'x'", "it is host of [service]"),
        ("[service]\nhttp_port = 'many'", "http_port in [service] of"),
        ("[service]\nhttp_port = 99999", "is not a whole number from 0 to 65535"),
        ("[service]\nmetrics = 1", "is not true or false"),
        ("[service]\nhome = 'x'", "home cannot be set in"),
        ("[service]\nfailpoints = 'x'", "failpoints cannot be set in"),
        ("[service\n", "is not TOML"),
        ("[ldap]\nldap_service_password = 'x'", "is a secret, and others than its owner can read the file"),
        ("[ldap]\nldap_service_password = 'env:NOT_THERE'", "is in the variable NOT_THERE, which is not set"),
        ("[ldap]\nldap_service_password = 'file:/nowhere'", "cannot be read"),
        ("[catalogs.lake]\ntype = 'hive'", "[catalogs.lake] in"),
        ("[catalogs.internal]\ntype = 'iceberg'", "cannot have this name"),
        (CATALOG.replace("env:LAKE_CREDENTIAL", "a:b"), "credential of [catalogs.lake]"),
        ("[spark]\nmaster = [1]", "spark.master in [spark]"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_by_name_and_nothing_is_started(
    text: str, told: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(home, text)
    monkeypatch.setattr(sys, "argv", ["lading", "sql", "-e", "SHOW DATABASES", "--home", str(home)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = " ".join(capsys.readouterr().err.split())
    assert told in said
    assert str(file) in said
    assert ended.value.code == ConfigError.exit_code


def test_secrets_are_references_or_the_file_is_private(home: Path, tmp_path: Path) -> None:
    write(home, f"[oidc]\noidc_client_secret = '{secret('plain')}'\n", 0o600)
    assert load_settings({}, home=home).oidc.oidc_client_secret == secret("plain")
    kept = tmp_path / "kept"
    kept.write_text(secret("kept") + "\n")
    write(home, f"[oidc]\noidc_client_secret = 'file:{kept}'\n[ldap]\nldap_service_password = 'env:PASS'\n")
    found = load_settings({"PASS": secret("variable")}, home=home)
    assert (found.oidc.oidc_client_secret, found.ldap.ldap_service_password) == (secret("kept"), secret("variable"))
    assert MARK not in repr(found)
    kept.unlink()


def test_config_names_another_file_and_an_option_wins(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--config` may name the home; relative paths begin at its folder."""
    monkeypatch.setenv("LADING_CONFIG", "")  # It is set in the process, and is to be as before.
    other = tmp_path / "other.toml"
    other.write_text(f"[service]\nhome = '{home.name}'\nstore = 'wrong://x'\n")
    other.chmod(0o600)
    code, said = run("sql", "--config", str(other), "--store", "", "-e", "SHOW DATABASES")
    assert (code, "default" in said) == (0, True)
    with pytest.raises(ConfigError, match="cannot be read"):
        run("sql", "--config", str(tmp_path / "none.toml"), "-e", "SHOW DATABASES")
    assert home.exists()


def test_settings_of_spark_are_joined(home: Path, tmp_path: Path) -> None:
    write(home, "[spark]\nmaster = 'local[1]'\nsql.ansi.enabled = true\n'spark.executor.cores' = 3\nui.port = 1\n")
    file = tmp_path / "spark.conf"
    file.write_text("spark.executor.cores 4\n")
    variables = {"LADING_SPARK_SETTINGS": str(file), "LADING_SPARK_CONF": "spark.ui.port=2 spark.x=a,b"}
    assert spark_settings_of(load_settings(variables, home=home)) == {
        "spark.master": "local[1]",
        "spark.sql.ansi.enabled": "true",
        "spark.executor.cores": "4",
        "spark.ui.port": "2",
        "spark.x": "a,b",
    }
    with pytest.raises(ConfigError, match="no setting of Spark"):
        run("sql", "--home", str(home), "--spark-conf", "master=local", "-e", "SHOW DATABASES")


def test_a_catalog_of_the_file_is_shown_and_no_statement_changes_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_CREDENTIAL", secret("lake"))
    file = write(home, CATALOG)
    with Lading(home) as opened:
        rows = opened.sql("SHOW CATALOGS")[0].rows
        assert [(row[1], row[6]) for row in rows][1:] == [("lake", "theirs")]
        [[_, shown]] = opened.sql("SHOW CREATE CATALOG lake")[0].rows
        assert "env:LAKE_CREDENTIAL" in shown
        assert MARK not in shown
        for text in (
            'ALTER CATALOG lake SET PROPERTIES ("uri" = "http://x")',
            "ALTER CATALOG lake RENAME pond",
            "DROP CATALOG lake",
            'CREATE CATALOG lake PROPERTIES ("type"="iceberg", "iceberg.catalog.type"="glue")',
        ):
            with pytest.raises(ConfigError, match=r"\[catalogs.lake\]") as caught:
                opened.sql(text)
            assert str(file) in str(caught.value)
        with pytest.raises(lading.LadingError, match="did not answer"):
            opened.sql("SHOW DATABASES FROM lake")
    file.unlink()
    with Lading(home) as opened:
        assert len(opened.sql("SHOW CATALOGS")[0].rows) == 1


def test_a_home_that_is_not_there_is_said_and_not_made(tmp_path: Path) -> None:
    typo = tmp_path / "tpyo"
    with pytest.raises(ConfigError, match=r"There is no home at .*create=True"):
        lading.connect(typo)
    with pytest.raises(ConfigError, match=r"There is no home at .*--init"):
        run("serve", "--home", str(typo))
    assert not typo.exists()
    with lading.connect(typo, create=True) as made:
        assert made.sql("SHOW DATABASES")[0].rows
    with lading.connect(typo) as again:
        assert again.sql("SHOW DATABASES")[0].rows


def test_recover_makes_a_home_only_for_tables_that_are_named(tmp_path: Path) -> None:
    typo = tmp_path / "tpyo"
    for words in ((), ("--dry-run", str(tmp_path))):
        with pytest.raises(ConfigError, match="There is no home at"):
            run("recover", *words, "--home", str(typo))
        assert not typo.exists()
    _, said = run("recover", str(tmp_path / "table"), "--home", str(typo))
    assert f"There is no home at {typo}: it is made now" in said
    assert typo.exists()
