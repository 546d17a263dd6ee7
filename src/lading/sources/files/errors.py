"""What can be wrong with a file or a listing, said so that a person knows what to do.

    StageError     listed, and deleted or replaced before it was read
    StorageError   the disk or the store did not give it
    SourceError    FileUnreadable: cut off, of another format, or not what the job expects, until somebody changes it
    ListingError   PlaceMissing: the folder is not there; UnsortedListing: the next listing is sorted here

What pyarrow, the disk and the store say is put into the words of jobs here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lading.errors import (
    FILE_FOUND,
    LINES_FOUND,
    LINES_IN_FIELDS,
    ListingError,
    SourceError,
    StageError,
    StorageError,
)
from lading.storage.errors import CHANGED, GONE, cause_of, fault_of

_NO_THREAD = "Failed to launch worker thread"
_NOTHING = "Nothing of this batch was committed; the position is unchanged."


def file_gone(uri: str) -> StageError:
    """The file is no longer where it was listed."""
    msg = f"File {uri} was deleted between listing and reading"
    todo = "The next attempt lists again and goes on without it; put it back under a new name to have it loaded."
    return StageError(msg, left=_NOTHING, todo=todo, file=uri)


def file_changed(uri: str, was: str, now: str) -> StageError:
    """The file is not the one that was listed."""
    msg = f"File {uri} was replaced between listing and reading: it was {was} and is {now}"
    todo = "The next batch reads it as it is then. Write files under another name and rename them when they are whole."
    return StageError(msg, left=_NOTHING, todo=todo, file=uri)


def file_unreadable(uri: str, why: str) -> SourceError:
    """The file cannot be read to its end, for what is in it: trying again does not help."""
    msg = f"File {uri}{FILE_FOUND}{why}"
    todo = "Replace the file and RESUME, or leave it out with SKIP FILE 'name' FOR JOB j."
    return SourceError(msg, code="FileUnreadable", left=_NOTHING, todo=todo, file=uri)


def file_readable(uri: str) -> StageError:
    """It was to be put aside, and nothing is wrong with it."""
    msg = f"File {uri} could not be read before, and can be read now"
    return StageError(msg, left=_NOTHING, todo="It is loaded like any other.", file=uri)


def file_unknown(uri: str, why: object) -> SourceError:
    """The libraries here cannot read such files; others may. That is not the fault of the file."""
    msg = f"File {uri} cannot be read by the libraries of this machine: {why}"
    return SourceError(msg, left=_NOTHING, todo="Write it in another way, then RESUME the job.", file=uri)


def no_thread(uri: str) -> StageError:
    """The machine gives a worker no thread more; nothing is wrong with the file."""
    msg = f"File {uri} could not be read now: its worker has too little memory, or too many threads, to begin another"
    return StageError(msg, left=_NOTHING, todo="It is tried again; give workers more memory.", file=uri)


def lines_in_field(uri: str) -> StageError:
    """The file was planned in parts, and a record begins in one that may end in the next."""
    msg = f"File {uri} {LINES_FOUND}"
    return StageError(msg, code=LINES_IN_FIELDS, left=_NOTHING, todo="It is read by one task from now on.", file=uri)


def file_not_fetched(uri: str, why: object) -> StorageError:
    """The store did not answer, or refused."""
    msg = f"File {uri} could not be fetched: {why}"
    return StorageError(msg, left=_NOTHING, todo="Check the network, the endpoint and the credentials.", file=uri)


def listing_failed(uri: str, why: object, todo: str = "Check that it exists and may be listed.") -> ListingError:
    """A listing ended before its end."""
    msg = f"Failed to fetch meta: the files under {uri} could not all be listed: {why}"
    return ListingError(msg, left="Nothing was read; the position is unchanged.", todo=todo, prefix=uri)


def place_missing(folder: str) -> ListingError:
    """The folder of the files is not there."""
    msg = f"Failed to fetch meta: the folder {folder} does not exist"
    todo = "Create the folder, or mount what it is on."
    return ListingError(
        msg, code="PlaceMissing", left="Nothing was read; the position is unchanged.", todo=todo, prefix=folder
    )


def listing_unsorted(uri: str) -> ListingError:
    """A key came after one that it sorts before."""
    msg = f"Failed to fetch meta: the files under {uri} are not listed in the order of their keys"
    todo = "They are listed again and sorted here."
    return ListingError(
        msg, code="UnsortedListing", left="Nothing was read; the position is unchanged.", todo=todo, prefix=uri
    )


@contextmanager
def translating(uri: str) -> Iterator[None]:
    """Errors of pyarrow, disk and store become errors about a file. Arrow raises OSError for bad content too."""
    try:
        yield
    except StorageError as error:
        raise _file_failed(uri, error) from error
    except pa.ArrowMemoryError:
        raise  # Nothing is wrong with the file: the batch is cut.
    except (pa.ArrowException, OSError, EOFError) as error:
        if _NO_THREAD in str(error):
            raise no_thread(uri) from error
        if isinstance(error, pa.ArrowNotImplementedError):
            raise file_unknown(uri, error) from error
        raise file_unreadable(uri, " ".join(str(error).split())) from error


def _file_failed(uri: str, error: StorageError) -> SourceError | StorageError:
    fault = fault_of(error)
    if fault == GONE:
        return file_gone(uri)
    if fault == CHANGED:
        return file_changed(uri, error.facts["was"], error.facts["now"])
    return file_not_fetched(uri, cause_of(error))
