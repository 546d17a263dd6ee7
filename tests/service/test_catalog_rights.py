"""Who may do what in a catalog. Without Spark, in PostgreSQL, as in `test_catalog_statements`."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lading.errors import (
    DeniedError,
    LadingError,
    NotFoundError,
    TableError,
    TableNotFoundError,
)
from lading.service.facade import Lading
from tests.service.conftest import Desk
from tests.service.test_catalog_statements import desk as desk
from tests.service.test_catalog_statements import properties
from tests.service.test_catalog_statements import theirs as theirs
from tests.service.test_catalog_statements import uri as uri


def test_who_may_not_come_in_or_may_only_read_is_told_so(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    with psycopg.connect(uri, autocommit=True) as database:
        database.execute("CREATE ROLE reader LOGIN")
        database.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        database.execute("CREATE ROLE locked_out NOLOGIN")
    said = '"iceberg.jdbc.catalog_name" = "lake", "iceberg.jdbc.user" = '
    as_user = properties(uri.replace("lading@", ""), tmp_path)[:-1]
    with pytest.raises(TableError, match=r"may not be read or written.*not permitted to log in"):
        desk.sql(f'CREATE CATALOG pond {as_user}, {said} "locked_out")')
    assert len(desk.sql("SHOW CATALOGS")) == 1
    desk.sql(f'CREATE CATALOG pond {as_user}, {said} "reader")')
    desk.put_orders("a.csv", 0, 3)
    for statement in ("CREATE DATABASE pond.x", "CREATE TABLE pond.sales.x (id BIGINT) USING iceberg"):
        with pytest.raises(TableError, match="permission denied for table") as caught:
            desk.sql(statement)
        assert "INSERT INTO" not in caught.value.what
    with pytest.raises(LadingError, match=r"database refused it: permission denied for table iceberg_tables\."):
        desk.create(target="pond.sales.orders")
    assert desk.sql('SELECT Name FROM jobs("type"="insert")') == []
    assert theirs.load_table("sales.orders").properties == {"owner": "them"}
    # A role that loses a right later: the job stops and says why, and goes on after it is granted again.
    with psycopg.connect(uri, autocommit=True) as database:
        database.execute("GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO reader")
        desk.create(target="pond.sales.orders")
        database.execute("REVOKE SELECT ON ALL TABLES IN SCHEMA public FROM reader")
        desk.run()
        assert (desk.show("Status"), "permission denied" in desk.show("ErrorMsg")) == ("PAUSED", True)
        database.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert theirs.load_table("sales.orders").scan().to_arrow().num_rows == 3


def test_privileges_hold_for_a_catalog_or_a_part_of_it(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    lading: Lading = desk.lading
    desk.sql(f"CREATE CATALOG lake {properties(uri, tmp_path)}")
    desk.sql("CREATE USER 'ann'; CREATE USER 'bob'; GRANT SELECT ON lake.*.* TO 'ann'")
    ann, bob = lading.session("ann"), lading.session("bob")
    assert list(ann.sql("SHOW DATABASES FROM lake")[-1].rows) == [("sales",)]
    with pytest.raises(TableNotFoundError, match=r"lake is a catalog: SWITCH lake, or USE lake\.database\."):
        desk.sql("USE lake")
    with pytest.raises(DeniedError):
        bob.sql("USE lake")
    assert len(ann.sql("DESCRIBE lake.sales.orders")[-1].rows) == 3
    assert [row[1] for row in bob.sql("SHOW CATALOGS")[-1].rows] == ["internal"]
    with pytest.raises(NotFoundError):
        bob.sql("SWITCH lake")
    with pytest.raises(DeniedError):
        bob.sql("DESCRIBE lake.sales.orders")
    for statement in ("DROP CATALOG lake", "DROP TABLE lake.sales.orders", "CREATE DATABASE lake.x"):
        with pytest.raises(DeniedError):
            ann.sql(statement)
    with pytest.raises(DeniedError):
        ann.sql("USE default; SELECT * FROM shop.orders")
    desk.sql("GRANT SELECT ON lake.sales.orders TO 'bob'")
    assert ("GRANT SELECT ON lake.sales.orders TO 'bob'",) in bob.sql("SHOW GRANTS")[-1].rows
    bob.sql("SWITCH lake")
    assert len(bob.sql("DESCRIBE sales.orders")[-1].rows) == 3
    with pytest.raises(DeniedError):
        bob.sql("DESCRIBE sales.others")
    desk.sql("REVOKE SELECT ON lake.*.* FROM 'ann'")
    with pytest.raises(DeniedError):
        ann.sql("DESCRIBE lake.sales.orders")


def test_grants_on_a_catalog_that_is_dropped_are_named_and_so_for_the_next_of_its_name(
    desk: Desk, theirs: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    def answer(text: str) -> str:
        return desk.lading.sql(text)[-1].message

    made = f"CREATE CATALOG lake {properties(uri, tmp_path)}"
    assert answer(made) == "OK"
    desk.sql("CREATE USER 'ann'; CREATE ROLE 'readers'; GRANT SELECT ON lake.*.* TO 'ann'")
    desk.sql("GRANT LOAD ON lake.sales.orders TO ROLE 'readers'; GRANT SELECT ON shop.* TO 'ann'")
    named = "GRANT SELECT ON lake.*.* TO 'ann'; GRANT LOAD ON lake.sales.orders TO ROLE 'readers'"
    assert answer(made.replace("CATALOG lake", "CATALOG IF NOT EXISTS lake")) == "OK"
    revoke = "REVOKE those that shall not."
    stay = f"OK. Warning: grants on lake stay, and hold for another catalog of that name: {named}. {revoke}"
    assert answer("DROP CATALOG lake") == stay
    assert answer(made) == f"OK. Warning: grants on lake hold for it: {named}. {revoke}"
    assert answer("ALTER CATALOG lake RENAME pond") == stay
    held = f"OK. Warning: grants on lake hold for it under its new name: {named}. {revoke}"
    assert answer("ALTER CATALOG pond RENAME lake") == held
    desk.sql("REVOKE SELECT ON lake.*.* FROM 'ann'; REVOKE LOAD ON lake.sales.orders FROM ROLE 'readers'")
    assert answer("DROP CATALOG lake") == "OK"
