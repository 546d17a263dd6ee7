"""Keys and rights stay with those they were given to and for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lading.errors import AuthError, DeniedError, JobNotFoundError, LadingError, SqlError
from lading.service.facade import Lading
from lading.service.session import Session
from lading.testing.marked import secret
from tests.service.routine_fakes import Desk, bench
from tests.service.routine_words import SECRET1, SECRET2, paused

__all__ = ["bench"]

S3 = (
    'S3("uri"="s3://shop/in/*.json", "format"="json", "s3.endpoint"="http://127.0.0.1:9", "s3.region"="us-east-1", '
    '"s3.access_key"="{}", "s3.secret_key"="{}")'
)
ENVIRONMENT, FILE = "env:SHOP_KEY", "file:/run/secrets/shop"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Lading]:
    with Lading(tmp_path / "home", allow_private_endpoints="127.0.0.1") as lading:
        lading.sql(
            f"""CREATE DATABASE shop; CREATE DATABASE hr; USE shop;
            CREATE TABLE orders (id BIGINT) USING delta; CREATE TABLE hr.wages (id BIGINT) USING delta;
            CREATE USER ann IDENTIFIED BY '{secret("ann")}';
            GRANT LOAD ON shop.orders TO ann; GRANT ADMIN ON hr TO ann"""
        )
        yield lading


@pytest.mark.parametrize("reference", [ENVIRONMENT, FILE])
@pytest.mark.parametrize(
    "text",
    [
        f"CREATE JOB j ON STREAMING DO INSERT INTO shop.orders SELECT id FROM {S3}",
        f"ALTER JOB j INSERT INTO shop.orders SELECT id FROM {S3}",
        f"EXPLAIN ALTER JOB j INSERT INTO shop.orders SELECT id FROM {S3}",
        # Those who may are refused for the format, and not after a broker has been waited for.
        'CREATE ROUTINE LOAD r ON orders PROPERTIES("format"="none") FROM KAFKA("kafka_broker_list"="b:1", '
        '"kafka_topic"="t", '
        '"property.sasl.username"="shop", "property.sasl.password"="{1}")',
        'ALTER ROUTINE LOAD FOR r FROM KAFKA("property.sasl.username"="{}", "property.sasl.password"="{}")',
        "CREATE TABLE hr.t (id BIGINT) USING delta LOCATION 's3://shop/t' "
        'TBLPROPERTIES("s3.access_key"="{}", "s3.secret_key"="{}")',
    ],
)
def test_what_the_machine_keeps_is_not_everybodys_to_send(home: Lading, text: str, reference: str) -> None:
    """The maker of a job also says where its keys are sent: LOAD could read any file and variable of the service."""
    with pytest.raises(DeniedError, match=r"ADMIN command denied to user 'ann' for '\*\.\*': env:… and file:…"):
        home.session("ann", "shop").sql(text.format(secret("x"), reference))
    for session in (home.session("root", "shop"), home.session("ann", "shop")):
        with pytest.raises(LadingError) as caught:  # Nothing is there to be reached, or there is no such job.
            session.sql(text.format(secret("x"), reference if session.user == "root" else secret("own")))
        assert not isinstance(caught.value, DeniedError)


@pytest.mark.parametrize(
    "moved",
    [
        '"kafka_broker_list"="evil:9092"',
        '"property.schema.registry.url"="http://evil:8081"',
    ],
)
@pytest.mark.parametrize("kept", [SECRET1, "env:SHOP_KEY"])
def test_keys_are_not_sent_to_another_address(
    bench: Desk, monkeypatch: pytest.MonkeyPatch, moved: str, kept: str
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET1)
    ann = _ann(bench)
    paused(bench, f', "property.sasl.password"="{kept}"')
    before = bench.sql("SHOW CREATE ROUTINE LOAD FOR j")
    for verb in ("ALTER", "EXPLAIN ALTER"):
        with pytest.raises(SqlError, match="would be sent or used elsewhere") as caught:
            ann.sql(f"{verb} ROUTINE LOAD FOR j FROM KAFKA({moved})")
        assert "property.sasl.password" in caught.value.todo
    assert bench.sql("SHOW CREATE ROUTINE LOAD FOR j") == before
    ann.sql(f'ALTER ROUTINE LOAD FOR j FROM KAFKA({moved}, "property.sasl.password"="{SECRET2}")')
    assert bench.sql("SHOW CREATE ROUTINE LOAD FOR j") != before
    bench.sql(f"ALTER ROUTINE LOAD FOR j FROM KAFKA({moved.replace('evil', 'other')})")  # root may do everything


@pytest.mark.parametrize("moved", ['"kafka_topic"="salaries"', '"property.security.protocol"="SASL_PLAINTEXT"'])
def test_keys_are_not_used_for_another_topic_or_sent_in_the_clear(bench: Desk, moved: str) -> None:
    ann = _ann(bench)
    paused(bench, f', "property.sasl.password"="{SECRET1}", "property.security.protocol"="SASL_SSL"')
    before = bench.sql("SHOW CREATE ROUTINE LOAD FOR j")
    for verb in ("ALTER", "EXPLAIN ALTER"):
        with pytest.raises(SqlError, match="would be sent or used elsewhere"):
            ann.sql(f"{verb} ROUTINE LOAD FOR j FROM KAFKA({moved})")
    assert bench.sql("SHOW CREATE ROUTINE LOAD FOR j") == before


def _ann(bench: Desk) -> Session:
    bench.sql(f"CREATE USER ann IDENTIFIED BY '{secret('ann')}'; GRANT LOAD ON shop TO ann")
    return bench.lading.session("ann", "shop")


def test_an_address_without_keys_can_be_changed_alone(bench: Desk) -> None:
    paused(bench)
    _ann(bench).sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_broker_list"="c:1")')
    assert '"c:1"' in str(bench.sql("SHOW CREATE ROUTINE LOAD FOR j"))


def test_the_same_address_again_is_no_change(bench: Desk) -> None:
    paused(bench, f', "property.sasl.password"="{SECRET1}"')
    _ann(bench).sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_broker_list"="b:1", "property.client.id"="x")')


def test_a_session_is_not_inherited_by_another_user_of_the_name(home: Lading) -> None:
    session = home.session("ann", "shop")
    session.sql("SHOW TABLES")
    home.sql(f"DROP USER ann; CREATE USER ann IDENTIFIED BY '{secret('other')}'; GRANT ADMIN ON *.* TO ann")
    with pytest.raises(AuthError, match="The login of user 'ann' has ended"):
        session.sql("SHOW USERS")
    assert home.session("ann").sql("SHOW USERS")[-1].rows


def test_a_database_in_the_name_of_a_job_means_routine_loads(home: Lading, tmp_path: Path) -> None:
    """The table of somebody else's streaming job was named in the error."""
    home.sql(
        f'CREATE JOB hidden ON STREAMING DO INSERT INTO hr.wages SELECT id FROM FILE("uri"="{tmp_path}/*.json", '
        '"format"="json")'
    )
    home.sql("REVOKE ADMIN ON hr FROM ann")
    for text in ("SHOW LOAD ERRORS FOR shop.hidden", "SHOW LOAD AUDIT FOR shop.hidden"):
        with pytest.raises(JobNotFoundError) as caught:
            home.session("ann", "shop").sql(text)
        assert "wages" not in str(caught.value)
