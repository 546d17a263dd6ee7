"""What a statement makes the service connect to, and with whose identity."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lading.errors import ConfigError, DeniedError, LadingError, SqlError
from lading.service.facade import Lading
from lading.sources.kafka import kind as kafka_kind
from lading.sources.kafka.settings import FOR_ADMINS, FOR_EVERYBODY
from lading.sources.kinesis import kind as kinesis_kind
from lading.store.records import CatalogEntry
from lading.testing.marked import secret
from tests.service.routine_fakes import FakeKafka, FakeKinesis, World

OWN = secret("own")
KEYS = f'"s3.access_key"="{OWN}", "s3.secret_key"="{secret("s3")}"'
AWS_KEYS = f'"aws.access_key"="{OWN}", "aws.secret_key"="{secret("aws")}"'
EMPTY = b"<ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>"


class Names:
    """A resolver whose answers change."""

    def __init__(self) -> None:
        self.known: dict[str, Sequence[str]] = {}

    def __call__(self, host: str) -> Sequence[str]:
        return self.known.get(host, ("93.184.216.34",))


@pytest.fixture
def names() -> Names:
    return Names()


@contextmanager
def opened(path: Path, names: Names, monkeypatch: pytest.MonkeyPatch, networks: str) -> Iterator[Lading]:
    world = World()
    monkeypatch.setattr(kafka_kind, "make_source", lambda spec, clock: FakeKafka(world, spec))
    monkeypatch.setattr(kinesis_kind, "make_source", lambda spec, clock: FakeKinesis(world, spec))
    with Lading(path / "home", resolver=names, allow_private_endpoints=networks) as lading:
        lading.sql(
            """CREATE DATABASE shop; CREATE DATABASE hr; USE shop;
            CREATE TABLE orders (id BIGINT) USING delta; CREATE TABLE hr.wages (id BIGINT) USING delta;
            CREATE USER ann; CREATE USER ada;
            GRANT LOAD ON shop.orders TO ann; GRANT ADMIN ON hr TO ann; GRANT ADMIN ON *.* TO ada"""
        )
        yield lading


@pytest.fixture
def home(tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    with opened(tmp_path, names, monkeypatch, "") as lading:
        yield lading


@pytest.fixture
def open_home(tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lading]:
    """All private addresses are allowed: the bucket is on this machine."""
    with opened(tmp_path, names, monkeypatch, "true") as lading:
        yield lading


def s3(more: str, uri: str = "s3://b/in/*.json") -> str:
    source = f'S3("uri"="{uri}", "format"="json", "s3.region"="eu-west-1", {more})'
    return f"CREATE JOB j ON STREAMING DO INSERT INTO shop.orders SELECT id FROM {source}"


def kafka(brokers: str = "kafka.example:9092", more: str = "") -> str:
    return f'CREATE ROUTINE LOAD r ON orders FROM KAFKA("kafka_broker_list"="{brokers}", "kafka_topic"="clicks"{more})'


def kinesis(more: str) -> str:
    return f'CREATE ROUTINE LOAD r ON orders FROM KINESIS("aws.region"="eu-west-1", "kinesis_stream"="s", {more})'


def every_form(host: str) -> list[str]:
    registry = f', "property.schema.registry.url"="http://{host}:8081"'
    return [
        s3(f'{KEYS}, "s3.endpoint"="http://{host}/"'),
        s3(f'{KEYS}, "s3.endpoint"="{host}:9000"'),
        s3(f'{KEYS}, "s3.role_arn"="arn:aws:iam::1:role/r", "s3.sts_endpoint"="http://{host}"'),
        kinesis(f'{AWS_KEYS}, "aws.endpoint"="http://{host}"'),
        kinesis(f'{AWS_KEYS}, "kinesis_endpoint"="http://{host}"'),
        kafka(f"{host}:9092"),
        kafka(f"kafka.example:9092,{host}:9092"),
        kafka(f"PLAINTEXT://{host}:9092"),
        kafka(more=registry),
        'CREATE JOB j ON STREAMING DO INSERT INTO shop.orders SELECT id FROM KAFKA("kafka_topic"="c", "format"="json", '
        f'"kafka_broker_list"="{host}:9092")',
        "CREATE TABLE hr.x (id BIGINT) USING delta LOCATION 's3://b/x' TBLPROPERTIES("
        f'{KEYS}, "s3.endpoint"="http://{host}")',
    ]


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "2852039166", "[::ffff:169.254.169.254]", "metadata.google.internal", "rebound.example"],
)
def test_metadata_addresses_are_refused_for_everybody(home: Lading, names: Names, host: str) -> None:
    names.known["rebound.example"] = ("8.8.8.8", "169.254.169.254")
    for text in every_form(host):
        for user in ("ann", "root"):
            with pytest.raises(SqlError, match="always refused"):
                home.session(user, "shop").sql(text)
    assert home.store.list_jobs() == []


def test_private_addresses_need_admin_or_the_setting(home: Lading, names: Names) -> None:
    names.known |= {"inside.example": ("10.0.0.9",), "localhost": ("127.0.0.1",)}
    for host in ("127.0.0.1", "localhost", "10.0.0.1", "[::1]", "0", "inside.example"):
        for text in every_form(host):
            with pytest.raises(DeniedError, match="private network of the service"):
                home.session("ann", "shop").sql(text)


def test_an_endpoint_that_is_no_host_is_refused(home: Lading) -> None:
    for odd in ("http://a\\@127.0.0.1", "http://x@y@127.0.0.1", "http://a b", "http://", "ⓔxample.com/@x"):
        with pytest.raises(SqlError, match="is not a host"):
            home.session("ann", "shop").sql(s3(f'{KEYS}, "s3.endpoint"="{odd}"'.replace("\\", "\\\\")))


def test_an_admin_and_the_setting_open_private_addresses(home: Lading, names: Names, tmp_path: Path) -> None:
    home.session("ada", "shop").sql(kafka("127.0.0.1:9092"))
    home.session("ann", "shop").sql("EXPLAIN ROUTINE LOAD r; STOP ROUTINE LOAD FOR r")
    home.close()
    for networks in ("true", "10.0.0.0/8, 127.0.0.1"):
        with Lading(tmp_path / "home", resolver=names, allow_private_endpoints=networks) as lading:
            lading.session("ann", "shop").sql(f"{kafka('127.0.0.1:9092')}; STOP ROUTINE LOAD FOR r")
            with pytest.raises(SqlError, match="always refused"):
                lading.session("ann", "shop").sql(kafka("169.254.1.1:9092"))
    with (
        Lading(tmp_path / "home", resolver=names, allow_private_endpoints="10.0.0.0/8") as lading,
        pytest.raises(DeniedError, match=r"kafka_broker_list = 127\.0\.0\.1"),
    ):
        lading.session("ann", "shop").sql(kafka("127.0.0.1:9092"))
    with pytest.raises(ConfigError, match="LADING_ALLOW_PRIVATE_ENDPOINTS"):
        Lading(tmp_path / "other", allow_private_endpoints="everything")


def test_a_name_that_leads_elsewhere_later_is_refused_when_the_job_is_opened(
    home: Lading, names: Names, tmp_path: Path
) -> None:
    home.session("ann", "shop").sql(kafka("evil.example:9092"))
    home.session("ada", "shop").sql(kafka("ours.example:9092").replace("LOAD r", "LOAD own"))
    names.known |= {"evil.example": ("10.0.0.1",), "ours.example": ("10.0.0.2",)}
    home.close()
    with Lading(tmp_path / "home", resolver=names) as lading:
        lading.run()
        bad, good = (lading.any_job(name) for name in ("shop.r", "shop.own"))
        assert bad.state.value == "PAUSED"
        assert "private network" in (bad.reason.message if bad.reason else "")
        assert good.reason is None


def test_alter_and_undo_cannot_lead_to_a_private_address(home: Lading, names: Names) -> None:
    ann, ada = home.session("ann", "shop"), home.session("ada", "shop")
    ann.sql(f"{kafka()}; PAUSE ROUTINE LOAD FOR r")
    moved = 'ALTER ROUTINE LOAD FOR r FROM KAFKA("kafka_broker_list"="127.0.0.1:9092")'
    for text in (moved, f"EXPLAIN {moved}"):
        with pytest.raises(DeniedError, match="private network"):
            ann.sql(text)
    ada.sql(moved)
    ann.sql('ALTER ROUTINE LOAD FOR r PROPERTIES("max_batch_interval"="7")')
    ann.sql('ALTER ROUTINE LOAD FOR r FROM KAFKA("kafka_broker_list"="kafka.example:9092")')
    with pytest.raises(DeniedError, match="private network"):
        ann.sql("UNDO ALTER ROUTINE LOAD FOR r")


# Settings of Kafka's client.


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("sasl.oauthbearer.method", "azure_imds"),
        ("debug", "all"),
        ("statistics.interval.ms", "1"),
        ("log_level", "7"),
        ("plugin.library.paths", "x"),
        ("metadata.broker.list", "169.254.169.254"),
        ("bootstrap.servers", "169.254.169.254"),
        ("schema.registry.proxy", "http://169.254.169.254"),
        ("schema.registry.bearer.auth.issuer.endpoint.url", "http://169.254.169.254"),
        ("sasl.oauthbearer.metadata.authentication.type", "azure_imds"),
        ("DEBUG", "all"),
    ],
)
def test_a_setting_that_is_not_on_the_list_is_refused_for_everybody(home: Lading, setting: str, value: str) -> None:
    text = kafka(more=f', "property.{setting}"="{value}"')
    with pytest.raises((SqlError, DeniedError)):
        home.session("ann", "shop").sql(text)
    with pytest.raises(SqlError):
        home.session("root", "shop").sql(text)


def test_a_refusal_says_what_was_meant_and_what_is_allowed(home: Lading) -> None:
    with pytest.raises(SqlError, match=r"Did you mean property\.sasl\.username\?.*security\.protocol"):
        home.sql("USE shop;" + kafka(more=', "property.sasl.usrname"="x"'))


@pytest.mark.parametrize(
    "setting",
    [
        '"property.ssl.ca.location"="/etc/ca.pem"',
        '"property.ssl.key.location"="/etc/key.pem"',
        '"property.sasl.kerberos.keytab"="/etc/krb5.keytab"',
        '"property.sasl.oauthbearer.token.endpoint.url"="https://login.example"',
        '"property.enable.ssl.certificate.verification"="false"',
        '"property.ssl.endpoint.identification.algorithm"="none"',
    ],
)
def test_files_of_the_machine_and_weaker_tls_need_admin(home: Lading, setting: str) -> None:
    with pytest.raises(DeniedError, match=r"ADMIN command denied to user 'ann' for '\*\.\*'"):
        home.session("ann", "shop").sql(kafka(more=f", {setting}"))
    home.session("ada", "shop").sql(kafka(more=f", {setting}"))
    home.sql("PAUSE ROUTINE LOAD FOR r")
    home.session("ann", "shop").sql('ALTER ROUTINE LOAD FOR r FROM KAFKA("property.client.rack"="a")')


def test_values_that_keep_tls_whole_are_for_everybody(home: Lading) -> None:
    home.session("ann", "shop").sql(kafka(more=', "property.enable.ssl.certificate.verification"="true"'))


def test_the_page_lists_every_setting_that_is_allowed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "routine-load.md").read_text()
    everybody = page.partition("<!-- for everybody -->")[2].partition("<!-- end -->")[0]
    admins = page.partition("<!-- for admins -->")[2].partition("<!-- end -->")[0]
    assert set(everybody.replace("`", "").replace(",", " ").split()) == FOR_EVERYBODY
    assert set(admins.replace("`", "").replace(",", " ").split()) == FOR_ADMINS


# Identity.


class _Store(http.server.BaseHTTPRequestHandler):
    """A bucket that is empty for everybody, and remembers how requests were signed."""

    signed: list[str]

    def do_GET(self) -> None:
        type(self).signed.append(self.headers.get("Authorization", ""))
        self.send_response(200)
        self.send_header("Content-Length", str(len(EMPTY)))
        self.end_headers()
        self.wfile.write(EMPTY)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """How statements reach it, and how requests were signed."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-service")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret("of-the-service"))
    signed: list[str] = []
    handler = type("Handler", (_Store,), {"signed": signed})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f'"s3.endpoint"="http://127.0.0.1:{server.server_port}", "use_path_style"="true"', signed
        server.shutdown()


def test_a_job_without_keys_needs_the_identity_of_the_service(open_home: Lading, bucket: tuple[str, list[str]]) -> None:
    place, signed = bucket
    ann = open_home.session("ann", "shop")
    for more in (place, f'{place}, "s3.role_arn"="arn:aws:iam::1:role/r"'):
        with pytest.raises(DeniedError, match="USAGE command denied to user 'ann' for IDENTITY service"):
            ann.sql(s3(more))
    for text in (
        kinesis('"property.kpl"="ON"'),
        kinesis('"property.aws.credentials.provider"="env"'),
        kinesis('"aws.role_arn"="arn:aws:iam::1:role/r"'),
        kafka(
            more=', "aws.region"="eu-west-1", "property.security.protocol"="SASL_SSL", '
            '"property.sasl.mechanism"="OAUTHBEARER"'
        ),
        "CREATE TABLE hr.x (id BIGINT) USING delta LOCATION 's3://b/x'",
    ):
        with pytest.raises(DeniedError, match="for IDENTITY service"):
            ann.sql(text)
    assert signed == []
    open_home.sql("GRANT USAGE ON IDENTITY service TO ann")
    assert ("GRANT USAGE ON IDENTITY service TO 'ann'",) in ann.sql("SHOW GRANTS")[0].rows
    ann.sql(s3(place))
    assert "Credential=the-service/" in signed[-1]
    open_home.sql("REVOKE USAGE ON IDENTITY service FROM ann; DROP JOB WHERE jobName='j'")
    with pytest.raises(DeniedError, match="for IDENTITY service"):
        ann.sql(s3(place))


def test_the_warehouse_of_a_catalog_is_read_by_its_readers_alone(
    open_home: Lading, bucket: tuple[str, list[str]]
) -> None:
    """Files of its tables, with the identity of the service: only for who may read all of them."""
    place, signed = bucket
    at = datetime(2026, 1, 1, tzinfo=UTC)
    properties = {"type": "iceberg", "iceberg.catalog.type": "glue", "warehouse": "s3://b/lake"}
    open_home.store.create_catalog(
        CatalogEntry(name="lake", catalog_id=7, properties=properties, created_at=at, changed_at=at)
    )
    open_home.sql("GRANT USAGE ON IDENTITY service TO ann; GRANT SELECT ON lake.sales.* TO ann")
    ann = open_home.session("ann", "shop")
    with pytest.raises(DeniedError, match="files of a table are at"):
        ann.sql(s3(place, "s3://b/lake/sales/orders/data/*.csv"))
    assert signed == []
    open_home.sql("GRANT SELECT ON lake.*.* TO ann")
    ann.sql(s3(place, "s3://b/lake/sales/orders/data/*.csv"))
    assert "Credential=the-service/" in signed[-1]


def test_own_keys_and_open_buckets_need_no_identity(open_home: Lading, bucket: tuple[str, list[str]]) -> None:
    place, signed = bucket
    ann = open_home.session("ann", "shop")
    ann.sql(s3(f"{place}, {KEYS}"))
    assert f"Credential={OWN}/" in signed[-1]
    ann.sql(s3(f'{place}, "s3.anonymous"="true"').replace("JOB j", "JOB k"))
    assert signed[-1] == ""
    ann.sql(kinesis(AWS_KEYS))


def test_a_grant_on_the_identity_shows_no_database(home: Lading) -> None:
    home.sql("CREATE USER eve; GRANT USAGE ON IDENTITY service TO eve")
    eve = home.session("eve")
    assert list(eve.sql("SHOW DATABASES")[0].rows) == [("default",)]
    with pytest.raises(DeniedError):
        eve.sql("SELECT * FROM shop.orders")


def test_alter_cannot_send_the_identity_elsewhere(home: Lading) -> None:
    """The job of an admin uses it for one stream. A user with LOAD could have named another."""
    home.sql("USE shop;" + kinesis('"property.kpl"="ON"') + "; PAUSE ROUTINE LOAD FOR r")
    ann = home.session("ann", "shop")
    for other in ('"kinesis_stream"="wages"', '"aws.endpoint"="https://x.example"', '"aws.role_arn"="arn:r"'):
        with pytest.raises(DeniedError, match="for IDENTITY service"):
            ann.sql(f"ALTER ROUTINE LOAD FOR r FROM KINESIS({other})")
    ann.sql('ALTER ROUTINE LOAD FOR r PROPERTIES("max_batch_interval"="7")')
    ann.sql('ALTER ROUTINE LOAD FOR r FROM KINESIS("property.kinesis_default_pos"="TRIM_HORIZON")')


@pytest.mark.parametrize(
    ("uri", "is_touched"),
    [
        ("s3://lake/wages/*.parquet", True),
        ("s3://lake/*", True),
        ("s3://lake/wag*", True),
        ("s3a://lake/wages/_delta_log/*", True),
        ("s3://lake/{wages,x}/*", True),
        ("s3://lake/wages2/*", False),
        ("s3://other/wages/*", False),
    ],
)
def test_the_identity_reads_no_table_that_its_user_may_not(
    open_home: Lading, bucket: tuple[str, list[str]], uri: str, is_touched: bool
) -> None:
    place, signed = bucket
    entry = open_home.catalog.entry("hr", "wages")
    open_home.store.drop_table("hr", "wages")
    open_home.store.create_table(replace(entry, location="s3://lake/wages"))
    open_home.sql("REVOKE ADMIN ON hr FROM ann; GRANT USAGE ON IDENTITY service TO ann")
    ann = open_home.session("ann", "shop")
    text = s3(place, uri)
    if is_touched:
        with pytest.raises(DeniedError, match="files of a table are at") as caught:
            ann.sql(text)
        assert "hr" not in str(caught.value)
        assert signed == []
        open_home.sql("GRANT SELECT ON hr.wages TO ann")
    ann.sql(text)
    assert signed


def test_a_table_in_the_folder_of_another_needs_select_on_it(home: Lading) -> None:
    entry = home.catalog.entry("shop", "orders")
    home.store.drop_table("shop", "orders")
    home.store.create_table(replace(entry, location="s3://lake/orders"))
    home.sql("GRANT USAGE ON IDENTITY service TO ann")
    with pytest.raises(DeniedError, match="files of a table are at"):
        home.session("ann", "hr").sql("CREATE TABLE x (id BIGINT) USING delta LOCATION 's3://lake/orders/part'")


def test_profiles_of_the_machine_cannot_be_chosen(home: Lading) -> None:
    with pytest.raises(LadingError, match=r"aws\.profile_name is not supported"):
        home.sql("USE shop;" + kafka(more=', "aws.region"="eu-west-1", "aws.profile_name"="prod"'))
