"""For whom a job joins: what counts is what that user may do now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.service.facade import Lading
from lading.service.security.job_owner import keep_owner, owner_rights
from lading.service.security.privileges import Identity
from lading.sql.statements.users import Privilege
from tests.jobs.story import JOB_ID


def test_a_join_with_a_table_that_is_not_there_is_refused_also_while_there_is_no_file(tmp_path: Path) -> None:
    with Lading(tmp_path / "home") as lading:
        lading.sql("CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT) USING delta")
        (tmp_path / "in").mkdir()
        source = f'FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names")'
        select = f"SELECT s.id FROM {source} AS s JOIN shop.no AS d ON s.id = d.id"
        text = f"CREATE JOB j ON STREAMING DO INSERT INTO shop.t {select}"
        with pytest.raises(ConfigError, match=r"joins with shop\.no, and this table is gone"):
            lading.sql(text)
        assert lading.live_jobs() == []


def test_roles_that_a_provider_gave_at_a_login_do_not_count_for_ever(tmp_path: Path) -> None:
    with Lading(tmp_path / "home") as lading:
        lading.sql("CREATE DATABASE shop; CREATE TABLE shop.pages (id BIGINT) USING delta; CREATE USER ann")
        lading.sql("CREATE ROLE readers; GRANT SELECT ON shop.pages TO ROLE readers")
        identity = replace(lading.access.bind(Identity(user="ann")), roles=("readers",))
        assert lading.access.rights(identity).allow(Privilege.SELECT, "shop", "pages")
        keep_owner(lading.store, JOB_ID, identity)
        rights = owner_rights(lading.store, lading.access, JOB_ID)
        assert rights is not None
        assert not rights.allow(Privilege.SELECT, "shop", "pages")
        lading.sql("GRANT SELECT ON shop.pages TO ann")
        rights = owner_rights(lading.store, lading.access, JOB_ID)
        assert rights is not None
        assert rights.allow(Privilege.SELECT, "shop", "pages")
