"""REST catalogs with OAuth2: a credential is exchanged for tokens at a token server, which end while jobs run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lading.errors import StorageError, TableError
from lading.model.catalog import CatalogAccess, CatalogKind
from lading.service.scheduling.scheduler import Scheduler
from lading.tables.iceberg.file_io_properties import FILE_IO
from lading.tables.iceberg.rest import GuardedRest
from lading.testing.clock import ManualClock
from lading.testing.marked import MARK, secret
from tests.service.conftest import Desk
from tests.service.test_catalogs import Lake, create
from tests.service.test_rollbacks import LocalDesk
from tests.service.test_scheduler import until
from tests.support.maven import JarsMissingError
from tests.support.rest_catalog import TOKENS, Front, RestServer, serve_rest

CREDENTIAL = f"loader:{secret('client')}"
PAUSED, RESUME = "PAUSED", "RESUME JOB WHERE jobName = 'j'"


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    try:
        with serve_rest(tmp_path_factory.mktemp("rest")) as server:
            yield server
    except JarsMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def login(rest: RestServer) -> Iterator[Front]:
    """The token server, which is another one than the catalog."""
    made = Front(rest)
    made.credential, made.scope = CREDENTIAL, "PRINCIPAL_ROLE:loader"
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def front(rest: RestServer, login: Front) -> Iterator[Front]:
    made = Front(rest)
    made.credential, made.valid = "asked for elsewhere", login.valid
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = LocalDesk(tmp_path)
    yield made
    made.lading.close()


def with_login(login: Front, credential: str = CREDENTIAL, scope: str = "PRINCIPAL_ROLE:loader") -> str:
    return (
        f', "iceberg.rest.security.type" = "oauth2", "iceberg.rest.oauth2.credential" = "{credential}", '
        f'"iceberg.rest.oauth2.server-uri" = "{login.url}{TOKENS}", "iceberg.rest.oauth2.scope" = "{scope}"'
    )


@pytest.mark.java
def test_tokens_that_end_while_a_job_runs_are_renewed(desk: Desk, rest: RestServer, front: Front, login: Front) -> None:
    lake = Lake(rest, "renewed")
    lake.make("orders")
    create(desk, front, more=with_login(login))
    desk.create(target="lake.renewed.orders")
    desk.put_orders("a.csv", 0, 20)
    desk.run()
    before = login.issued
    for number in range(1, 4):
        front.end_tokens_at_commit = True
        desk.put_orders(f"b{number}.csv", 20 * number, 20)
        desk.run()
        login.valid.clear()  # And between two batches.
    assert (desk.show("Status"), lake.ids("orders")) == ("RUNNING", [-1, *range(80)]), desk.show("ErrorMsg")
    assert login.issued > before
    assert front.refused
    # The token server is shown the credential, and no token of the catalog, not even one that has ended.
    assert set(login.logins) == {""}
    shown = [desk.sql(text) for text in ("SHOW CREATE CATALOG lake", "SHOW CREATE JOB j", "SHOW CATALOGS")]
    assert MARK not in str(shown)
    assert desk.lading.verify("j").is_clean


@pytest.mark.java
def test_a_wrong_credential_is_said_at_create_and_pauses_a_job_later(
    desk: Desk, rest: RestServer, front: Front, login: Front
) -> None:
    lake = Lake(rest, "wrong")
    lake.make("orders")
    for more in (with_login(login, f"loader:{secret('stale')}"), with_login(login, scope="PRINCIPAL_ROLE:all")):
        with pytest.raises(TableError, match=r"(?s)catalog lake.*iceberg\.rest\.oauth2\.credential") as caught:
            create(desk, front, more=more)
        assert MARK not in str(caught.value)
    assert len(desk.sql("SHOW CATALOGS")) == 1
    create(desk, front, more=with_login(login))
    desk.create(target="lake.wrong.orders")
    login.credential = f"loader:{secret('next')}"
    login.valid.clear()
    desk.put_orders("a.csv", 0, 5)
    desk.run()
    assert desk.show("Status") == PAUSED
    assert "invalid_client" in desk.show("ErrorMsg")
    assert "iceberg.rest.oauth2.credential" in desk.show("ErrorMsg")
    assert MARK not in desk.show("ErrorMsg")
    desk.sql(f'ALTER CATALOG lake SET PROPERTIES ("iceberg.rest.oauth2.credential" = "{login.credential}")')
    desk.sql(RESUME)
    desk.run()
    assert lake.ids("orders") == [-1, *range(5)]


@pytest.mark.java
def test_a_token_server_that_is_away_is_asked_again(desk: Desk, rest: RestServer, front: Front, login: Front) -> None:
    lake = Lake(rest, "away")
    lake.make("orders")
    login.login_status = 503
    with pytest.raises(StorageError, match="did not answer as it should"):
        create(desk, front, more=with_login(login))
    login.login_status = 0
    create(desk, front, more=with_login(login))
    desk.create(target="lake.away.orders", properties='"max_interval"="1"')
    service = Scheduler(desk.lading)
    service.start()
    try:
        login.login_status = 503
        login.valid.clear()
        desk.put_orders("a.csv", 0, 5)
        until(lambda: "did not answer" in desk.show("ErrorMsg"), "the job says why it cannot go on")
        login.login_status = 0
        until(lambda: lake.ids("orders") == [-1, *range(5)], "the job goes on by itself")
    finally:
        service.close()


@pytest.mark.java
def test_a_catalog_that_gives_tokens_itself(desk: Desk, rest: RestServer) -> None:
    lake = Lake(rest, "itself")
    lake.make("orders")
    front = Front(rest)
    front.credential = CREDENTIAL
    own = ', "iceberg.rest.security.type" = "oauth2", "iceberg.rest.oauth2.credential" = "{}"'
    create(desk, front, more=own.format(CREDENTIAL))
    desk.create(target="lake.itself.orders")
    desk.put_orders("a.csv", 0, 5)
    desk.run()
    assert lake.ids("orders") == [-1, *range(5)]
    front.shutdown()
    front.server_close()


@pytest.mark.java
def test_a_token_is_renewed_before_its_end(rest: RestServer, front: Front, login: Front) -> None:
    access = CatalogAccess(
        name="lake",
        kind=CatalogKind.REST,
        properties={
            "uri": front.url,
            "credential": CREDENTIAL,
            "oauth2-server-uri": f"{login.url}{TOKENS}",
            "scope": login.scope,
            "py-io-impl": FILE_IO,
        },
    )
    clock = ManualClock()
    login.tokens_last_s = 3600
    catalog = GuardedRest(access, clock)
    made = login.issued
    clock.sleep(3000)
    catalog.list_namespaces()
    assert login.issued == made
    clock.sleep(570)
    catalog.list_namespaces()
    assert (login.issued - made, front.refused) == (1, 0)
    # The token server is away for a moment: the old token is good until its end, and nothing fails.
    login.login_status = 503
    clock.sleep(3570)
    catalog.list_namespaces()
    login.login_status = 0
    catalog.list_namespaces()
    assert (login.issued - made, front.refused) == (2, 0)
    # Without a time it is taken until the catalog refuses it.
    login.tokens_last_s = None
    silent = GuardedRest(replace(access, name="silent"), clock)
    made = login.issued
    clock.sleep(2 * 86_400)
    silent.list_namespaces()
    assert (login.issued - made, front.refused) == (0, 0)
    login.valid.clear()
    silent.list_namespaces()
    assert (login.issued - made, front.refused) == (1, 1)
