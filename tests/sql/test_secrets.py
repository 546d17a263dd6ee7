"""Secrets are shown to nobody."""

from __future__ import annotations

import pytest

from lading.errors import ParseError
from lading.sql.masking import mask, without_secrets
from lading.sql.parse import parse_statement
from lading.sql.render import render
from lading.sql.spans import is_secret, mask_text

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
    ],
)
def test_these_are_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["uri", "s3.region", "aws.role_arn", "property.ssl.key.location", "kafka_topic", "format"]
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


def test_bills_leave_secrets_out() -> None:
    statement = parse_statement(STATEMENTS[0])
    assert "secret_key" not in render(without_secrets(statement))


def test_an_error_shows_no_secret() -> None:
    text = f'ALTER ROUTINE LOAD FOR j FROM KAFKA("property.sasl.password"="{SECRET}", "kafka_topic" "t")'
    with pytest.raises(ParseError) as caught:
        parse_statement(text)
    assert SECRET not in str(caught.value)
    line, carets = caught.value.pretty().split("\n")
    assert line[carets.index("^") :].startswith('"t"')


def test_an_error_about_an_open_string_shows_no_secret() -> None:
    with pytest.raises(ParseError) as caught:
        parse_statement(f'ALTER JOB j PROPERTIES("s3.secret_key"="{SECRET}')
    assert SECRET not in str(caught.value)


def test_bare_and_single_quoted_secrets_are_masked_too() -> None:
    assert mask_text(f"s3.secret_key={SECRET}, x='1'") == "s3.secret_key=******, x='1'"
    assert mask_text(f"'aws.secret_key' = '{SECRET}'") == "'aws.secret_key' = '******'"
