"""Secrets are shown to nobody."""

from __future__ import annotations

import time

import pytest

from lading.errors import SqlError
from lading.sql.syntax.masking import drop_secrets, mask, mask_properties, without_secrets
from lading.sql.syntax.parse import parse_statement
from lading.sql.syntax.render import render
from lading.sql.syntax.spans import is_reference, is_secret, mask_text

SECRET = "sesame"


@pytest.mark.parametrize(
    "name",
    [
        "s3.access_key",
        "s3.secret_key",
        "s3.session_token",
        "aws.access_key",
        "aws.secret_key",
        "aws.session_key",
        "property.sasl.password",
        "property.ssl.key.password",
        "property.ssl.keystore.password",
        "property.sasl.jaas.config",
        "property.ssl.key.pem",
        "property.sasl.oauthbearer.client.secret",
        "S3.SECRET_KEY",
        "aws.session_token",
        "s3.access-key-id",
        "fs.s3a.access.key",
        "adls.account-key",
        "adls.connection-string",
        "credential",
        "property.schema.registry.basic.auth.user.info",
        "property.basic.auth.user.info",
        "property.sasl.oauthbearer.client.credentials.secret",
        "property.sasl.oauthbearer.config",
        "property.ssl.keystore.key",
        "property.ssl.key.passphrase",
        "property.delegation.token",
    ],
)
def test_these_are_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "uri",
        "s3.region",
        "aws.role_arn",
        "aws.external_id",
        "property.ssl.key.location",
        "property.sasl.username",
        "property.sasl.oauthbearer.token.endpoint.url",
        "property.basic.auth.credentials.source",
        "property.security.protocol",
        "aws.web_identity_token_file",
        "s3.credentials_provider_type",
        "kafka_topic",
        "format",
    ],
)
def test_these_are_none(name: str) -> None:
    assert not is_secret(name)


STATEMENTS = [
    f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT a FROM S3("uri"="s3://b/k", "s3.secret_key"="{SECRET}")',
    f'ALTER JOB j INSERT INTO t SELECT a FROM S3("uri"="s3://b/k", "s3.access_key"="{SECRET}")',
    f'CREATE ROUTINE LOAD j ON t FROM KAFKA("kafka_topic"="t", "property.sasl.password"="{SECRET}")',
    f"ALTER ROUTINE LOAD FOR j FROM KINESIS(aws.session_key='{SECRET}')",
    f"CREATE TABLE t (a int) USING delta TBLPROPERTIES('fs.s3a.secret.key'='{SECRET}')",
    f'SELECT * FROM S3("uri"="s3://b/k", "s3.secret_key" = "{SECRET}")',
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_masked_statement_shows_no_secret(text: str) -> None:
    statement = parse_statement(text)
    assert SECRET in render(statement)
    assert SECRET not in render(mask(statement))
    assert "******" in render(mask(statement))
    assert SECRET not in render(without_secrets(statement))


def test_references_stay() -> None:
    text = (
        'CREATE ROUTINE LOAD j ON t FROM KAFKA("property.sasl.password"="env:P", "property.ssl.key.password"="file:/p")'
    )
    statement = parse_statement(text)
    assert mask(statement) == statement
    assert without_secrets(statement) == statement


@pytest.mark.parametrize(
    "value", ["env:MY_KEY_2", "file:/run/secrets/key", "file:/run/my secrets/key.txt", "file:///run/secrets/key"]
)
def test_these_are_references(value: str) -> None:
    assert is_reference(value)
    properties = {"s3.secret_key": value}
    assert mask_properties(properties) == drop_secrets(properties) == properties
    shown = f'"s3.secret_key"="{value}"'
    assert mask_text(shown) == shown


@pytest.mark.parametrize(
    "value", ["env:", "env:MY-KEY", "env:2", "file:relative", "ENV:X", f"env:X {SECRET}", "x env:X"]
)
def test_these_are_none_and_so_they_are_masked(value: str) -> None:
    assert not is_reference(value)
    assert mask_properties({"s3.secret_key": value}) == {"s3.secret_key": "******"}
    assert drop_secrets({"s3.secret_key": value}) == {}


def test_a_password_in_a_url_is_masked() -> None:
    properties = {"property.schema.registry.url": f"http://me:{SECRET}@registry:8081", "uri": "s3://bucket/a@b:c"}
    assert mask_properties(properties) == {"property.schema.registry.url": "******", "uri": "s3://bucket/a@b:c"}
    assert SECRET not in mask_text(f'"property.schema.registry.url"="http://me:{SECRET}@registry:8081"')


@pytest.mark.parametrize(
    "url",
    [
        f"jdbc:postgresql://h/db?user=u&password={SECRET}",
        f"jdbc:postgresql://h/db?sslmode=require;pass%77ord={SECRET}",
        f"https://catalog.example/v1?token={SECRET}",
        f"https://sign-in.example/token?client_secret={SECRET}&scope=all",
    ],
)
def test_a_password_in_the_query_of_a_url_is_masked(url: str) -> None:
    text = f'CREATE CATALOG lake PROPERTIES ("type"="iceberg", "uri"="{url}")'
    assert SECRET not in render(mask(parse_statement(text)))
    assert SECRET not in mask_text(text)
    assert drop_secrets({"uri": url}) == {}
    shown = {"uri": "https://catalog.example/v1?prefix=a&warehouse=b", "path": f"s3://b/k?token={SECRET}"[:8]}
    assert mask_properties(shown) == shown


PASSWORDS = [
    f"CREATE USER jack IDENTIFIED BY '{SECRET}'",
    f'create user if not exists jack@"%" identified by "{SECRET}"',
    f"ALTER USER jack IDENTIFIED\nBY\n'{SECRET}'",
    f"ALTER USER jack IDENTIFIED /* at last */ BY -- it's\n # \n'{SECRET}'",
]


@pytest.mark.parametrize("text", PASSWORDS)
def test_a_masked_statement_shows_no_password(text: str) -> None:
    statement = parse_statement(text)
    assert SECRET in render(statement)
    assert SECRET not in repr(statement)
    for shown in (mask(statement), without_secrets(statement)):
        assert render(shown).endswith("IDENTIFIED BY '******'")
    assert SECRET not in mask_text(text)
    assert "******" in mask_text(text)


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE USER jack IDENTIFIED BY {SECRET}",
        f"CREATE USER jack IDENTIFIED BY {SECRET} and 'more' {SECRET}",
        f"CREATE USER jack IDENTIFIED BY '{SECRET}",
        f"CREATE USER jack IDENTIFIED BY '{SECRET}' PASSWORD '{SECRET}'",
        f"CREATE USER jack IDENTIFIED BY 'a' '{SECRET}'",
        f"CREATE USER jack IDENTIFIED BY /* now */ '{SECRET}' NOW",
        f"CREATE USER jack IDENTIFIED BY PASSWORD '{SECRET}'",
        f"CREATE USER jack IDENTIFIED WITH mysql_native_password AS '{SECRET}'",
        f"CREATE USER jack IDENTIFIED '{SECRET}'",
        f"CREATE USER jack PASSWORD '{SECRET}'",
        f"CREATE USER jack '{SECRET}'",
        f"ALTER USER 'jack'@'%' '{SECRET}'",
        f"ALTER USER jack IDENTIFIED BY '{SECRET}' NOW",
        f"ALTER USER jack@'10.0.0.1' IDENTIFIED BY '{SECRET}'",
        f"CREATE USER 'a:b' IDENTIFIED BY '{SECRET}'",
        f"SET PASSWORD = '{SECRET}'",
        f"SET PASSWORD FOR jack = PASSWORD('{SECRET}')",
    ],
)
def test_an_error_shows_no_password(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(text)
    assert SECRET not in str(caught.value)
    assert SECRET not in caught.value.offending
    assert SECRET not in mask_text(text)


def test_bills_leave_secrets_out() -> None:
    statement = parse_statement(STATEMENTS[0])
    assert "secret_key" not in render(without_secrets(statement))


def test_an_error_shows_no_secret() -> None:
    text = f'ALTER ROUTINE LOAD FOR j FROM KAFKA("property.sasl.password"="{SECRET}", "kafka_topic" "t")'
    with pytest.raises(SqlError) as caught:
        parse_statement(text)
    assert SECRET not in str(caught.value)
    line, carets = caught.value.pretty().split("\n")
    assert line[carets.index("^") :].startswith('"t"')


def test_an_error_about_an_open_string_shows_no_secret() -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(f'ALTER JOB j PROPERTIES("s3.secret_key"="{SECRET}')
    assert SECRET not in str(caught.value)


def test_bare_and_single_quoted_secrets_are_masked_too() -> None:
    assert mask_text(f"s3.secret_key={SECRET}, x='1'") == "s3.secret_key=******, x='1'"
    assert mask_text(f"'aws.secret_key' = '{SECRET}'") == "'aws.secret_key' = '******'"


@pytest.mark.parametrize(
    "text",
    [
        f"PREPARE p FROM 'ALTER USER jack IDENTIFIED BY ''{SECRET}'''",
        f'PREPARE p FROM "ALTER USER jack IDENTIFIED BY ""{SECRET}"""',
        f"PREPARE p FROM 'ALTER JOB j FROM S3(''s3.secret_key''=''{SECRET}'', ''x''=''1'')'",
        f'PREPARE p FROM \'ALTER JOB j FROM S3("s3.secret_key"="{SECRET}")\'',
    ],
)
def test_a_secret_in_a_text_within_a_text_is_masked(text: str) -> None:
    assert SECRET not in mask_text(text)
    assert "******" in mask_text(text)


def test_an_empty_secret_hides_nothing_else() -> None:
    text = "'s3.secret_key'='', 'x'='', password = '' AND y = ''"
    assert mask_text(text) == text


def test_looking_for_secrets_takes_time_in_proportion_to_the_text() -> None:
    """A word of a megabyte once took hours, and held the interpreter all the while."""
    began = time.perf_counter()
    for text in ("a" * 1_000_000, "a." * 500_000, "SELECT '" + "b" * 1_000_000 + "'", "c= " * 300_000):
        mask_text(text)
    assert time.perf_counter() - began < 20
