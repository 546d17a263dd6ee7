"""For whom a job joins: what counts is what that user may do now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lading.service.facade import Lading
from lading.service.security.job_owner import keep_owner, owner_rights
from lading.service.security.privileges import Identity
from lading.sql.statements.users import Privilege
from tests.jobs.story import JOB_ID


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
