"""Users as the MySQL face asks for them."""

from __future__ import annotations

from lading.errors import AuthError
from lading.service.security.authentication import Refusal
from lading.service.security.origin import Face
from lading.service.security.users import Access
from lading.sql.statements.users import Privilege


class MysqlUsers:
    """Answers from `Access`. The face waits by itself after a wrong password; everything else is decided there."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def native_verifier(self, user: str) -> bytes | None:
        """SHA1(SHA1(password)). Who has no password gets one that no password fits."""
        return self._access.native_verifier(user)

    def sha2_verifier(self, user: str) -> bytes | None:
        """SHA256(SHA256(password)); None: the password itself has to be asked for."""
        return self._access.sha2_verifier(user)

    def is_from_directory(self, user: str) -> bool:
        """Whether only the password itself can be checked, by a directory."""
        return self._access.is_from_directory(user)

    def check_password(self, user: str, password: str, peer: str) -> bool:
        """Whether this is the password, for clients that send it over TLS."""
        return self._access.prove(user, password, peer=peer) is not None

    def may_connect(self, user: str, peer: str) -> bool:
        """From everywhere: nobody gets in without a password."""
        return True

    def delay_s(self, user: str, peer: str) -> float | None:
        """Its turn after wrong passwords; None after too many."""
        try:
            return self._access.reserve(user, peer, face=Face.MYSQL)
        except AuthError:
            return None

    def succeeded(self, user: str, peer: str) -> None:
        """The password was right."""
        self._access.settle(user, peer, self._access.identity_for(user), used_password=True, face=Face.MYSQL)

    def failed(self, user: str, peer: str) -> float:
        """The password was wrong. Says for how many seconds the answer is to wait."""
        settled = self._access.settle(user, peer, None, used_password=True, face=Face.MYSQL)
        return settled.delay_s if isinstance(settled, Refusal) else 0.0

    def sees(self, user: str, database: str, table: str) -> bool:
        """Whether a user has any privilege on a table; with an empty table, in a database."""
        rights = self._access.rights(self._access.identity_for(user))
        return rights.see_table(database, table) if table else rights.see_database(database)

    def is_admin(self, user: str) -> bool:
        """Whether a user has ADMIN on everything."""
        return self._access.may(self._access.identity_for(user), Privilege.ADMIN)
