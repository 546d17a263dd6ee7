"""Users, grants and access tokens, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from lading.errors import ConflictError, NotFoundError
from lading.store.protocols import Users
from lading.store.records import AccessTokenEntry, AuditEntry, GrantEntry, UserEntry
from lading.store.store import Store
from tests.jobs.story import START
from tests.store.conftest import OpenStore
from tests.store.samples import HARD_TEXT

JACK = UserEntry(name="jack", password_hash="hash", native_verifier="sealed", created_at=START)
AUDIT = AuditEntry(at=START, user="root", action="GRANT", subject="jack", statement="GRANT …")


def token(number: int, user: str = "jack") -> AccessTokenEntry:
    at = START + timedelta(seconds=-number)
    return AccessTokenEntry(token_id=f"t{number}", user=user, digest="digest", comment=HARD_TEXT, created_at=at)


def grant(privilege: str, database: str = "", table: str = "", user: str = "jack") -> GrantEntry:
    return GrantEntry(user=user, privilege=privilege, database=database, table=table)


def test_the_store_keeps_users(store: Store) -> None:
    users: Users = store
    assert users.list_users() == []
    users.create_user(JACK)
    users.create_user(replace(JACK, name="anna"))
    with pytest.raises(ConflictError, match="User 'jack' exists already"):
        users.create_user(JACK)
    assert users.find_user("jack") == JACK
    assert users.find_user("Jack") is None
    assert [user.name for user in users.list_users()] == ["anna", "jack"]


def test_nothing_secret_is_in_what_python_shows() -> None:
    assert "hash" not in repr(JACK).replace("password_hash", "")
    assert "sealed" not in repr(JACK)
    assert "'digest'" not in repr(token(1))


def test_a_user_can_be_changed(store: Store) -> None:
    changed = replace(JACK, password_hash="other", password_changed_at=START)
    with pytest.raises(NotFoundError, match="There is no user 'jack'"):
        store.save_user(changed)
    store.create_user(JACK)
    store.save_user(changed)
    assert store.find_user("jack") == changed


def test_grants_are_a_set(store: Store) -> None:
    store.create_user(JACK)
    given = [grant("SELECT"), grant("LOAD", "sales", "orders"), grant("LOAD", "sales"), grant("LOAD", "Zoo")]
    store.grant(given)
    store.grant(given[:2])
    assert store.list_grants("jack") == sorted(given)
    assert store.list_grants() == sorted(given)
    assert store.list_grants("anna") == []
    store.revoke([grant("LOAD", "sales"), grant("LOAD", "nowhere")])
    assert store.list_grants("jack") == sorted([given[0], given[1], given[3]])


def test_a_grant_to_nobody_grants_nothing(store: Store) -> None:
    store.create_user(JACK)
    with pytest.raises(NotFoundError):
        store.grant([grant("LOAD"), grant("LOAD", user="nobody")])
    with pytest.raises(NotFoundError):
        store.revoke([grant("LOAD", user="nobody")])
    assert store.list_grants() == []


def test_tokens_are_found_by_id(store: Store) -> None:
    store.create_user(JACK)
    with pytest.raises(NotFoundError):
        store.create_access_token(token(1, "nobody"))
    store.create_access_token(token(1))
    store.create_access_token(token(2))
    with pytest.raises(ConflictError):
        store.create_access_token(token(2))
    assert store.find_access_token("t1") == token(1)
    assert store.find_access_token("t3") is None
    assert store.list_access_tokens() == store.list_access_tokens("jack") == [token(2), token(1)]
    assert store.list_access_tokens("anna") == []
    store.drop_access_token("t1")
    assert store.find_access_token("t1") is None
    with pytest.raises(NotFoundError, match="There is no token 't1'"):
        store.drop_access_token("t1")


def test_grants_and_tokens_go_with_their_user(store: Store) -> None:
    store.create_user(JACK)
    store.grant([grant("ADMIN")])
    store.create_access_token(token(1))
    store.drop_user("jack")
    assert (store.list_users(), store.list_grants(), store.list_access_tokens()) == ([], [], [])
    store.create_user(JACK)
    assert (store.list_grants(), store.list_access_tokens()) == ([], [])
    with pytest.raises(NotFoundError):
        store.drop_user("nobody")


def test_the_audit_tells_of_changes_that_were_made_and_of_no_others(store: Store) -> None:
    changes: list[Callable[[], None]] = [
        lambda: store.create_user(JACK, audit=AUDIT),
        lambda: store.save_user(JACK, audit=AUDIT),
        lambda: store.grant([grant("LOAD")], audit=AUDIT),
        lambda: store.revoke([grant("LOAD")], audit=AUDIT),
        lambda: store.create_access_token(token(1), audit=AUDIT),
        lambda: store.drop_access_token("t1", audit=AUDIT),
        lambda: store.drop_user("jack", audit=AUDIT),
    ]
    for number, change in enumerate(changes, start=1):
        change()
        assert store.list_audit() == [AUDIT] * number
    for change in changes[1:]:
        with pytest.raises(NotFoundError):
            change()
    assert len(store.list_audit()) == len(changes)


def test_of_two_users_with_one_name_one_is_made(open_another: OpenStore) -> None:
    stores = [open_another() for _ in range(4)]

    def attempt(store: Store) -> bool:
        try:
            store.create_user(JACK)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(len(stores)) as pool:
        assert sorted(pool.map(attempt, stores)) == [False, False, False, True]
