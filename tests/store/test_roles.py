"""Roles, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lading.errors import ConflictError, NotFoundError
from lading.store.records import AuditEntry, GrantEntry, RoleEntry, UserEntry
from lading.store.store import Store
from tests.jobs.story import START

LOAD = GrantEntry(user="loader", privilege="LOAD", database="shop", table="orders")
READ = GrantEntry(user="reader", privilege="SELECT")


def test_roles_their_grants_and_their_users_go_together(store: Store) -> None:
    for name in ("jack", "anna"):
        store.create_user(UserEntry(name=name, created_at=START))
    roles = [RoleEntry(name=name, created_at=START) for name in ("loader", "reader")]
    for role in roles:
        store.create_role(role)
    assert store.list_roles() == roles
    with pytest.raises(ConflictError):
        store.create_role(roles[0])
    store.grant_to_role([LOAD, READ])
    store.grant_to_role([LOAD])
    assert store.list_role_grants() == [LOAD, READ]
    store.give_roles(["loader", "reader"], "jack")
    store.give_roles(["reader"], "anna")
    assert store.list_members() == [("anna", "reader"), ("jack", "loader"), ("jack", "reader")]
    assert store.list_grants_through("jack") == [LOAD, READ]
    assert store.list_grants_through("anna") == [READ]
    assert store.list_grants_through("nobody", ["loader", "nothing"]) == [LOAD]
    assert store.list_grants_through("nobody") == []
    store.take_roles(["reader"], "jack")
    store.revoke_from_role([READ])
    assert (store.list_grants_through("jack"), store.list_grants_through("anna")) == ([LOAD], [])
    store.drop_user("jack")
    store.drop_role("reader")
    assert (store.list_members(), store.list_roles(), store.list_role_grants()) == ([], roles[:1], [LOAD])
    store.drop_role("loader")
    assert store.list_role_grants() == []


def test_what_is_not_there_is_told_and_nothing_is_half_done(store: Store) -> None:
    store.create_user(UserEntry(name="jack", created_at=START))
    store.create_role(RoleEntry(name="loader", created_at=START))
    entry = AuditEntry(at=START, user="root", action="GRANT")
    missing = GrantEntry(user="nothing", privilege="LOAD")
    attempts: list[Callable[[], None]] = [
        lambda: store.give_roles(["loader", "nothing"], "jack", audit=entry),
        lambda: store.give_roles(["loader"], "nobody", audit=entry),
        lambda: store.take_roles(["loader"], "nobody", audit=entry),
        lambda: store.drop_role("nothing", audit=entry),
        lambda: store.grant_to_role([LOAD, missing], audit=entry),
        lambda: store.revoke_from_role([missing], audit=entry),
    ]
    for attempt in attempts:
        with pytest.raises(NotFoundError):
            attempt()
    assert (store.list_members(), store.list_role_grants(), store.list_audit()) == ([], [], [])
