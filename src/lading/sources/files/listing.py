"""What a store lists for a job, and its faults in the words of jobs."""

from __future__ import annotations

from collections.abc import Container, Iterator

from lading.errors import ListingError, StorageError
from lading.sources.files.errors import listing_failed, listing_unsorted, place_missing
from lading.storage.errors import DENIED, MISSING, ROLE, UNSORTED, cause_of, fault_of
from lading.storage.store import ObjectInfo, ReadStore


def list_files(
    store: ReadStore, prefix: str, start_after: str, max_slashes: int | None, known: Container[str] = ()
) -> Iterator[ObjectInfo]:
    """What the store lists. Raises ListingError."""
    try:
        yield from store.list(prefix, start_after, max_slashes=max_slashes, known=known)
    except StorageError as error:
        raise _in_words_of_jobs(error, str(error.facts["place"])) from error


def _in_words_of_jobs(error: StorageError, place: str) -> ListingError:
    why, fault = cause_of(error), fault_of(error)
    if fault == MISSING:
        return place_missing(place)
    if fault == UNSORTED:
        return listing_unsorted(place)
    if fault == ROLE:
        todo = "Check s3.role_arn and s3.external_id, the role's trust policy, and that the keys may assume it."
        role = error.facts["role"]
        return listing_failed(place, f"Can not build s3: the role {role} cannot be assumed: {why}", todo)
    if fault == DENIED:
        todo = "Check s3.access_key, s3.secret_key and s3.region, and that they may list the bucket."
        return listing_failed(place, f"Can not build s3: {why}", todo)
    return listing_failed(place, why)
