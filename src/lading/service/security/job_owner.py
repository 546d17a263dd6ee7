"""Who a job reads other tables for: the user who wrote its join. Their rights are asked before each batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lading.errors import DeniedError, UnknownOutcomeError
from lading.ids import JobId
from lading.service.security.privileges import Identity, Rights
from lading.store.protocols import MetadataStore

if TYPE_CHECKING:
    from lading.service.security.users import Access

_PREFIX = "owner/"
_LEFT = "Nothing was read or committed."
_TODO = "Somebody who may SELECT from the table can write the join again with ALTER, which is theirs then."
_UNKNOWN_TODO = "RESUME it: it reads for you from then on, with your rights."


def keep_owner(store: MetadataStore, job_id: JobId, identity: Identity) -> None:
    """Remember who wrote the join of a job."""
    store.write_setting(_PREFIX + job_id, json.dumps(_kept(identity)))


def keep_first_owner(store: MetadataStore, job_id: JobId, identity: Identity) -> None:
    """The same for a join of which nobody is known: a store that was recovered from its tables knows no owners."""
    if not store.read_setting(_PREFIX + job_id):
        keep_owner(store, job_id, identity)


@contextmanager
def owned_by(store: MetadataStore, job_id: JobId, identity: Identity) -> Iterator[None]:
    """Within this a join is changed, which is the user's from then on; when that fails it stays whose it was.

    Dies within: the old join may be the new user's, who is asked from then on.
    """
    before = store.read_setting(_PREFIX + job_id)
    keep_owner(store, job_id, identity)
    try:
        yield
    except UnknownOutcomeError:
        raise  # It may have landed.
    except BaseException:
        store.write_setting(_PREFIX + job_id, before or "")
        raise


def owner_rights(store: MetadataStore, access: Access, job_id: JobId) -> Rights | None:
    """What that user may do now; None: everything. Raises DeniedError when there is no such user, or none is known."""
    kept = store.read_setting(_PREFIX + job_id)
    if not kept:
        # In a store that was recovered from its tables, until somebody resumes the job: it must not read for nobody.
        msg = "The job joins with a table, and it is not known for which user"
        raise DeniedError(msg, left=_LEFT, todo=_UNKNOWN_TODO, user="")
    body = json.loads(kept)
    if body["is_root"]:
        return None
    created_at = datetime.fromisoformat(body["created_at"]) if body["created_at"] else None
    identity = Identity(user=body["user"], created_at=created_at, is_from_directory=body["is_from_directory"])
    if (created_at is not None or identity.is_from_directory) and not access.is_current(identity):
        msg = f"The job joins with a table for user '{identity.user}', who was dropped"
        raise DeniedError(msg, left=_LEFT, todo=_TODO, user=identity.user)
    return access.rights(identity)


def _kept(identity: Identity) -> dict[str, Any]:
    """Without the roles that an identity provider gave at the login: it is not there to be asked whether it still does.
    A directory is asked again."""
    return {
        "is_root": identity.is_root,
        "user": identity.user,
        "created_at": identity.created_at.isoformat() if identity.created_at else None,
        "is_from_directory": identity.is_from_directory,
    }
