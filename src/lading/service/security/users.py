"""Users, and what they may do: the same for every face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from argon2 import PasswordHasher

from lading.clock import Clock
from lading.errors import ConfigError, ConflictError, DeniedError
from lading.service.security.audit_log import AuditLog
from lading.service.security.authentication import Directory, Login
from lading.service.security.bind_policy import check_listening
from lading.service.security.password_rules import check_new_password
from lading.service.security.passwords import native_digest, sha2_digest
from lading.service.security.privileges import ROOT, ROOT_NAME, Identity, Rights, grant_entries
from lading.service.security.roles import Roles, RoleView, refuse_root
from lading.service.security.tokens import (
    NewAccessToken,
    check_token_may_manage,
    draw_token,
    end_of_life,
    new_entry,
)
from lading.service.security.vault import Vault
from lading.settings import SecuritySettings
from lading.sql.statements.users import (
    NO_LIMITS,
    AlterUser,
    CreateRole,
    CreateToken,
    CreateUser,
    DropRole,
    DropToken,
    DropUser,
    Grant,
    GrantRole,
    Privilege,
    Revoke,
    RevokeRole,
    Scope,
    TokenLimits,
    UserStatement,
)
from lading.sql.syntax.masking import mask
from lading.sql.syntax.names import check_user_name
from lading.sql.syntax.render import render
from lading.store.protocols import MetadataStore
from lading.store.records import AccessTokenEntry, AuditEntry, GrantEntry, UserEntry
from lading.store.users import no_token, no_user

__all__ = ["ROOT", "Access", "Identity", "NewAccessToken", "Privilege", "Rights", "Scope", "check_listening"]

_LEFT = "Nothing was changed."
_ALL_OF_ROOT = GrantEntry(user=ROOT_NAME, privilege=Privilege.ADMIN.value)


class Access(Login):
    """Who somebody is, and whether they may. Every change says who asks for it, and is refused or audited.

    Laws: root is always there, may everything, and cannot be dropped; nobody else touches its password or tokens.
    Managing users needs ADMIN on everything; one's own password and tokens are one's own. A change counts from the
    next question on, also in other processes.
    """

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        vault: Vault,
        *,
        wait: Callable[[float], None] | None = None,
        hasher: PasswordHasher | None = None,
        security: SecuritySettings | None = None,
        directory: Directory | None = None,
        on_root_password: Callable[[], None] | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        super().__init__(
            store, clock, vault, wait=wait, hasher=hasher, security=security, audit=audit, directory=directory
        )
        self._on_root_password = on_root_password
        """Called after root's password was changed by somebody."""
        self._roles = Roles(store, clock, self._audit)
        self._ensure_root()

    # What somebody may do.

    def rights(self, identity: Identity) -> Rights:
        """All privileges of a user, for asking often."""
        if identity.is_root:
            return Rights(identity=identity)
        if identity.user == ROOT_NAME:  # By a token with a scope.
            return Rights(identity=identity, grants=(_ALL_OF_ROOT,))
        own = self._store.list_grants(identity.user)
        through = self._store.list_grants_through(identity.user, self.directory_roles(identity))
        return Rights(identity=identity, grants=(*own, *through))

    def may(
        self, identity: Identity, privilege: Privilege, database: str | None = None, table: str | None = None
    ) -> bool:
        """Whether a user has a privilege on a table, a database (no table) or everything (neither)."""
        return self.rights(identity).allow(privilege, database, table)

    def require(
        self, identity: Identity, privilege: Privilege, database: str | None = None, table: str | None = None
    ) -> None:
        """Raise DeniedError unless the user has the privilege."""
        self.rights(identity).require(privilege, database, table)

    # Changes.

    def create_user(self, name: str, password: str | None = None, *, by: Identity, if_not_exists: bool = False) -> bool:
        """Make a user; without a password, one that has only tokens. Says whether the user is new."""
        self._require_account_admin(by)
        check_user_name(name)
        entry = UserEntry(name=name, created_at=self._clock.now())
        if password is not None:
            entry = self._with_password(entry, password)
        statement = CreateUser(name=name, password=password, if_not_exists=if_not_exists)
        try:
            self._store.create_user(entry, audit=self._audit(by, name, statement))
        except ConflictError:
            if not if_not_exists:
                raise
            return False
        return True

    def set_password(self, name: str, password: str, *, by: Identity) -> None:
        """Set a password. Tokens stay valid."""
        self._require_own(by, name)
        check_token_may_manage(by, password_of=name)
        if by.is_from_directory and by.user == name:
            msg = f"The password of user '{name}' is in the directory"
            raise DeniedError(msg, left=_LEFT, todo="Change it there.", user=name)
        self._save_password(name, password, by=by)
        if name == ROOT_NAME and self._on_root_password is not None:
            self._on_root_password()

    def set_first_password(self, password: str) -> None:
        """Set the password of root at the first start. See `security.root_password`."""
        self._save_password(ROOT_NAME, password, by=ROOT)

    def drop_user(self, name: str, *, by: Identity, if_exists: bool = False) -> bool:
        """Forget a user with all grants and tokens. Says whether there was one."""
        self._require_account_admin(by)
        if name == ROOT_NAME:
            msg = f"User '{ROOT_NAME}' cannot be dropped"
            raise ConfigError(msg, left=_LEFT, todo="Set another password if somebody knows it.")
        if if_exists and self._find(name) is None:
            return False
        self._store.drop_user(name, audit=self._audit(by, name, DropUser(name=name)))
        return True

    def grant(self, user: str, privileges: Sequence[Privilege], scope: Scope, *, by: Identity) -> None:
        self._require_account_admin(by)
        refuse_root(user)
        statement = Grant(privileges=tuple(privileges), scope=scope, user=user)
        self._store.grant(grant_entries(user, privileges, scope), audit=self._audit(by, user, statement))

    def revoke(self, user: str, privileges: Sequence[Privilege], scope: Scope, *, by: Identity) -> None:
        """Take privileges back. Raises ConfigError when one of them was not given for exactly this scope."""
        self._require_account_admin(by)
        refuse_root(user)
        self._load(user)
        statement = Revoke(privileges=tuple(privileges), scope=scope, user=user)
        entries = grant_entries(user, privileges, scope)
        # Silence would let somebody believe that a privilege is gone which a wider grant still gives.
        if missing := set(entries) - set(self._store.list_grants(user)):
            what = ", ".join(sorted(entry.privilege for entry in missing))
            msg = f"User '{user}' was not granted {what} on exactly this: {render(statement)}"
            raise ConfigError(msg, left=_LEFT, todo=f"See SHOW GRANTS FOR '{user}'.")
        self._store.revoke(entries, audit=self._audit(by, user, statement))

    def create_token(
        self, user: str, *, by: Identity, comment: str = "", limits: TokenLimits = NO_LIMITS
    ) -> NewAccessToken:
        """Make a bearer token. Its text is returned and not kept."""
        self._require_own(by, user)
        check_token_may_manage(by)
        now = self._clock.now()
        expires_at = end_of_life(limits, by=by, now=now, default_days=self._security.token_days)
        token_id, text = draw_token()
        entry = new_entry(token_id, text, user=user, comment=comment, limits=limits, lifetime=(now, expires_at))
        statement = CreateToken(user=user, comment=comment or None, limits=limits)
        self._store.create_access_token(entry, audit=self._audit(by, user, statement))
        return NewAccessToken(token_id=token_id, text=text, expires_at=expires_at)

    def drop_token(self, token_id: str, *, by: Identity) -> None:
        """Make a token invalid. Raises NotFoundError, also for a token that is none of one's business."""
        if token_id not in {entry.token_id for entry in self.list_tokens(by=by)}:
            raise no_token(token_id)
        if by.token is None or by.token.token_id != token_id:
            check_token_may_manage(by)
        self._store.drop_access_token(token_id, audit=self._audit(by, token_id, DropToken(token_id=token_id)))

    def change_roles(self, statement: CreateRole | DropRole | GrantRole | RevokeRole, *, by: Identity) -> bool:
        """Make, drop, give or take roles. Says whether anything changed."""
        self._require_account_admin(by)
        match statement:
            case CreateRole():
                return self._roles.create(statement, by=by)
            case DropRole():
                return self._roles.drop(statement, by=by)
            case GrantRole():
                self._roles.give(statement, by=by)
            case RevokeRole():
                self._load(statement.user)
                self._roles.take(statement, by=by)
            case _:
                assert_never(statement)
        return True

    def change_role_grants(self, statement: Grant | Revoke, *, by: Identity) -> None:
        """Give privileges to a role, or take them back."""
        self._require_account_admin(by)
        if isinstance(statement, Grant):
            self._roles.grant(statement, by=by)
        else:
            self._roles.revoke(statement, by=by)

    # Lists.

    def has_password(self, name: str) -> bool:
        """Whether a password is set."""
        return bool(self._load(name).password_hash)

    def list_users(self, *, by: Identity) -> list[UserEntry]:
        self._require_admin(by)
        return self._store.list_users()

    def list_grants(self, user: str, *, by: Identity) -> list[GrantEntry]:
        """What a user was granted. Everybody may see their own."""
        if user != by.user:
            self._require_admin(by)
        if user != by.user or not by.is_from_directory:
            self._load(user)
        if user == ROOT_NAME:
            return [_ALL_OF_ROOT]
        return self._store.list_grants(user)

    def list_roles(self, *, by: Identity) -> list[RoleView]:
        """All roles, who has them, and what they give."""
        self._require_admin(by)
        return self._roles.views()

    def roles_of(self, user: str, *, by: Identity) -> list[RoleView]:
        """The roles of a user. Everybody may see their own."""
        if user != by.user:
            self._require_admin(by)
        from_directory = self.directory_roles(by) if user == by.user else ()
        return [role for role in self._roles.views() if user in role.users or role.name in from_directory]

    def list_tokens(self, *, by: Identity) -> list[AccessTokenEntry]:
        """Tokens that somebody may drop: their own; those of others with ADMIN on everything; root's only as root."""
        if not self.may(by, Privilege.ADMIN):
            return self._store.list_access_tokens(by.user)
        return [entry for entry in self._store.list_access_tokens() if by.is_root or entry.user != ROOT_NAME]

    # Inside.

    def _ensure_root(self) -> None:
        """The first process makes it. Dies before: the next start does."""
        if self._store.find_user(ROOT_NAME) is None:
            try:
                self._store.create_user(UserEntry(name=ROOT_NAME, created_at=self._clock.now()))
            except ConflictError:
                return

    def _load(self, name: str) -> UserEntry:
        found = self._find(name)
        if found is None:
            raise no_user(name)
        return found

    def _save_password(self, name: str, password: str, *, by: Identity) -> None:
        statement = AlterUser(name=name, password=password)
        changed = self._with_password(self._load(name), password)
        self._store.save_user(changed, audit=self._audit(by, name, statement))

    def _with_password(self, entry: UserEntry, password: str) -> UserEntry:
        check_new_password(password, user=entry.name, rules=self._security)
        return replace(
            entry,
            password_hash=self._passwords.hash(password),
            native_verifier=self._vault.seal(native_digest(password).hex()),
            sha2_verifier=self._vault.seal(sha2_digest(password).hex()),
            password_changed_at=self._clock.now(),
        )

    def _require_admin(self, by: Identity) -> None:
        self.require(by, Privilege.ADMIN)

    def _require_account_admin(self, by: Identity) -> None:
        """ADMIN on everything, and no token with a scope: accounts and grants would outlive it, and reach further."""
        self._require_admin(by)
        check_token_may_manage(by)

    def _require_own(self, by: Identity, name: str) -> None:
        """One's own, or ADMIN on everything; what is root's own, only root."""
        if by.user == name:
            return
        self._require_admin(by)
        if name == ROOT_NAME and not by.is_root:
            msg = f"ADMIN command denied to user '{by.user}': only '{ROOT_NAME}' may change '{ROOT_NAME}'"
            raise DeniedError(msg, left=_LEFT, todo=f"Log in as '{ROOT_NAME}'.", user=by.user)

    def _audit(self, by: Identity, subject: str, statement: UserStatement) -> AuditEntry:
        text = render(mask(statement))
        action = " ".join(text.split()[: 1 if text.startswith(("GRANT", "REVOKE")) else 2])
        return AuditEntry(at=self._clock.now(), user=by.user, action=action, subject=subject, statement=text)
