"""What can be wrong with a topic or its brokers, said so that a person knows what to do.

Foreign errors of librdkafka are translated here, nowhere else.
"""

from __future__ import annotations

from lading.errors import ConfigError, ListingError, SourceError, SqlError, StageError, TrimmedError

_STANDS = "Nothing was read; the position is unchanged."


def unreachable(topic: str, brokers: str, why: object, reason: str = "") -> ListingError:
    """No broker answered in time, or the one that must did not."""
    msg = f"Kafka at {brokers} did not tell about topic {topic}: {why}"
    todo = "It is tried again. Check that the brokers run and can be reached, and the settings to sign in."
    return ListingError(msg, left=_STANDS, todo=todo, topic=topic, reason=reason)


def topic_missing(topic: str, brokers: str) -> ListingError:
    """The brokers answered, and know no such topic."""
    msg = f"Kafka at {brokers} has no topic {topic}, or does not show it to this user"
    return ListingError(msg, left=_STANDS, todo="Make the topic, or ALTER the job to another.", topic=topic)


def partition_missing(topic: str, number: int) -> SqlError:
    """The user named a partition that is not there."""
    msg = f"There is a custom kafka partition {number} which is invalid for topic {topic}"
    return SqlError(msg, todo="Name partitions that the topic has.", partition=str(number), topic=topic)


def not_an_offset(partition: str, at: str) -> SqlError:
    """A position that Kafka cannot have."""
    msg = f"Partition {partition} cannot be at {at!r}: a position in Kafka must be an integer"
    return SqlError(msg, left=_STANDS, todo="Move it with ALTER to an offset.", partition=partition, at=at)


def trimmed(topic: str, partition: int, at: int, horizon: int) -> TrimmedError:
    """Retention was faster than the job."""
    msg = (
        f"Offset out of range: consume partition {partition} of topic {topic}, consume offset {at}, but the first "
        f"offset that is left is {horizon}; {horizon - at} offsets are gone"
    )
    todo = "Move the partition with ALTER to go on behind the gap, or set property.on_data_loss to CONTINUE."
    return TrimmedError(msg, left=_STANDS, todo=todo, partition=str(partition), at=str(at), horizon=str(horizon))


def cut_while_reading(topic: str, partition: int, at: int, why: str) -> TrimmedError:
    """The broker refused an offset that was there when the batch was planned."""
    msg = f"Offset out of range: consume partition {partition} of topic {topic}, consume offset {at}: {why}"
    todo = "The next plan says how large the gap is."
    return TrimmedError(
        msg, left="Nothing was committed; the position is unchanged.", todo=todo, partition=str(partition), at=str(at)
    )


def beyond_end(topic: str, partition: int, at: int, latest: int) -> SourceError:
    """Records that were read, or that the user counted on, are not in the log."""
    msg = f"Offset {at} of partition {partition} of topic {topic} is greater than kafka latest offset {latest}"
    todo = "Find out whether the log was cut; then move the partition with ALTER."
    return SourceError(msg, left=_STANDS, todo=todo, partition=str(partition), at=str(at), latest=str(latest))


def log_cut(topic: str, partition: int, at: int, why: str) -> SourceError:
    """Records up to the position were read from a log that is no longer there."""
    msg = (
        f"The log of partition {partition} of topic {topic} was cut before offset {at}, up to which it was read; "
        f"records that came since then may have offsets before it and were not loaded ({why})"
    )
    todo = "Move the partition with ALTER to where the log was cut; rows that were loaded before stay in the table."
    return SourceError(msg, left=_STANDS, todo=todo, partition=str(partition), at=str(at))


def replaced_while_reading(topic: str, was: str, now: str) -> SourceError:
    """The records may be those of another topic."""
    msg = f"Topic {topic} was deleted and made again while it was read: its incarnation was {was!r} and is {now!r}"
    todo = "Move the job to the new topic with ALTER, or make a new job."
    return SourceError(msg, left="Nothing was committed; the position is unchanged.", todo=todo)


def read_failed(topic: str, partition: int, at: int, why: object) -> StageError:
    """The records of a range could not all be read."""
    msg = f"Partition {partition} of topic {topic} could not be read from offset {at}: {why}"
    todo = "The batch is planned again. Check that the brokers run and can be reached."
    return StageError(
        msg, left="Nothing was committed; the position is unchanged.", todo=todo, partition=str(partition)
    )


def closed_broker(topic: str, host: str) -> ConfigError:
    """The brokers send their clients to where a statement must not send the service."""
    msg = f"The brokers of topic {topic} say that it is read from {host}, an address that this job must not reach"
    todo = "Correct advertised.listeners of the brokers, or see LADING_ALLOW_PRIVATE_ENDPOINTS."
    return ConfigError(msg, left=_STANDS, todo=todo, topic=topic)


def bad_setting(why: str) -> ConfigError:
    """The client library does not take a setting."""
    msg = f"The Kafka client cannot be made: {why}"
    return ConfigError(msg, left="Nothing was read.", todo="Correct the property.… that is named.")


def owned_setting(name: str, given: str, ours: str) -> ConfigError:
    """A setting that would break what Lading promises."""
    msg = f"property.{name} cannot be {given!r}: Lading keeps positions itself and reads with {ours!r}"
    return ConfigError(msg, left="Nothing was read.", todo=f"Leave property.{name} out.")


def closed_setting(name: str, why: str) -> ConfigError:
    """A setting that would do more on the machine of the service than read a topic."""
    msg = f"property.{name} cannot be set in a job: {why}"
    return ConfigError(msg, left="Nothing was read.", todo=f"Leave property.{name} out.")
