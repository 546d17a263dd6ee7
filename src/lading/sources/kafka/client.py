"""From a spec to the settings of librdkafka's clients. Secrets stay in them."""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lading.sources.kafka.errors import bad_setting, closed_setting, owned_setting
from lading.sources.kafka.spec import KafkaSpec
from lading.storage.homes import home_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

_OWNED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}
"""A user who sets one of these otherwise would get other rows than Lading promises."""

_CODE, _PROGRAM = "it loads code into the service", "it runs a program on the machine of the service"
_FILE = "it has a file of the machine of the service read or written"
_CLOSED = {
    "plugin.library.paths": _CODE,
    "ssl.engine.location": _CODE,
    "ssl.engine.id": _CODE,
    "ssl.providers": _CODE,
    "sasl.kerberos.kinit.cmd": _PROGRAM,
    "offset.store.method": _FILE,
    "offset.store.path": _FILE,
    "sasl.oauthbearer.assertion.file": _FILE,
    "sasl.oauthbearer.assertion.jwt.template.file": _FILE,
    "on_commit": _CODE,
    "logger": _CODE,
    "default.topic.config": _CODE,
    "opaque": _CODE,
    "interceptors": _CODE,
}
"""A user who may create a job is not the owner of the machine that runs it. Files of assertions are sent elsewhere."""

_KERBEROS = re.compile(r"[\w./@:-]*")
"""librdkafka has a shell run kinit with the names of Kerberos in it."""

_PATHS = (".location", ".keytab", ".file", ".path", ".paths")
"""Names of settings that end so name a file or a folder."""

_TUNED = {
    # Fetching of a partition goes on at once when there is room again; the default is to wait a second.
    "fetch.queue.backoff.ms": "10",
    # A request that waits for new records holds up the next partition that is read over the same connection.
    "fetch.wait.max.ms": "20",
    "fetch.error.backoff.ms": "100",
    "reconnect.backoff.max.ms": "1000",
    "max.partition.fetch.bytes": str(8 * 1024 * 1024),
    "queued.max.messages.kbytes": str(64 * 1024),
    "check.crcs": "true",
}
"""For readers that live for one batch. Memory is bounded by the queue and one fetch; a larger record still comes."""

_QUIET = {"log_level": "2"}
"""librdkafka writes to stderr; what matters is in the errors that are raised."""

_SECRET_WORDS = ("password", "secret", "key", "token", "credential", "jaas", "oauthbearer.config", "pem", "auth")


class Complaints:
    """The last thing that librdkafka said while it kept trying: the reason when it gives up."""

    def __init__(self, spec: KafkaSpec) -> None:
        self._spec = spec
        self.last = ""

    def __call__(self, error: Any) -> None:
        self.last = without_secrets(self._spec, error.str())

    def explain(self, what: str) -> str:
        """What happened, and why if that was said."""
        return f"{what}; the client said: {self.last}" if self.last and self.last not in what else what


_ADMINS: dict[tuple[frozenset[tuple[str, str]], ...], tuple[AdminClient, Complaints]] = {}
_ADMINS_LOCK = threading.Lock()
MOST_ADMINS = 256


def open_admin(spec: KafkaSpec) -> tuple[AdminClient, Complaints]:
    """A client that asks, and what it complains about. It connects when it is first used.

    One for all jobs with the same brokers and settings, and it lives as long as the process. librdkafka aborts the
    process when a client is destroyed by a thread of its own, and that is where Python may let go of one: answers are
    delivered there, an exception keeps the frames that hold the client, and garbage is collected wherever it is found.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    shared = {name: value for name, value in spec.client.items() if name != "group.id"}
    key = (frozenset(shared.items()), frozenset({("brokers", spec.brokers)}), frozenset(spec.aws.items()))
    with _ADMINS_LOCK:
        if key not in _ADMINS:
            complaints = Complaints(spec)
            settings = {name: value for name, value in _common(spec).items() if name != "group.id"}
            if len(_ADMINS) >= MOST_ADMINS:
                _ADMINS.pop(next(iter(_ADMINS)))  # The oldest; who uses it keeps it alive.
            try:
                settings["error_cb"] = complaints
                _ADMINS[key] = AdminClient(settings), complaints
            except KafkaException as error:
                raise bad_setting(without_secrets(spec, error.args[0].str())) from error
        return _ADMINS[key]


@atexit.register
def _close_admins() -> None:
    _ADMINS.clear()


def open_consumer(spec: KafkaSpec, complaints: Complaints, **calls: Callable[[Any, Any], None]) -> Consumer:
    """A client that reads what it is assigned, or tells its group positions. It never joins the group."""
    from confluent_kafka import Consumer, KafkaException

    settings = {"group.id": "lading", **_TUNED, **_common(spec), **_OWNED, **calls, "error_cb": complaints}
    try:
        return Consumer(settings)
    except KafkaException as error:
        raise bad_setting(without_secrets(spec, error.args[0].str())) from error


def check_settings(spec: KafkaSpec) -> None:
    """Refuse settings that would make Lading read other rows than it promises, or the machine do more than read."""
    registry = spec.format.registry.settings if spec.format.registry else {}
    for written, value in (*spec.client.items(), *registry.items()):
        name = written.strip().lower()
        if name in _CLOSED or name.endswith("_cb"):
            raise closed_setting(written, _CLOSED.get(name, "it names code of the service"))
        if name.startswith("sasl.kerberos.") and not _KERBEROS.fullmatch(value):
            raise closed_setting(written, "the client writes it into a command, where it would mean something else")
        if name.endswith(_PATHS) and (home := home_of(value)) is not None:
            raise closed_setting(written, f"{value} is in the home folder {home} of Lading itself")
    for name, ours in _OWNED.items():
        given = spec.client.get(name, ours)
        if given.strip().lower() != ours:
            raise owned_setting(name, given, ours)


def group_of(spec: KafkaSpec) -> str:
    """The consumer group that is told how far the job is; empty when the user named none."""
    return spec.client.get("group.id", "")


def without_secrets(spec: KafkaSpec, text: str) -> str:
    """The text, with every secret of the spec made unreadable."""
    told = text
    for value in (*_secrets(spec.client), *_secrets(spec.aws)):
        told = told.replace(value, "******")
    return told


def _secrets(settings: Mapping[str, str]) -> list[str]:
    return [value for name, value in settings.items() if value and any(word in name for word in _SECRET_WORDS)]


def _common(spec: KafkaSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {**_QUIET, **spec.client, "bootstrap.servers": spec.brokers}
    if spec.aws:
        from lading.sources.kafka.msk import token_call

        settings["oauth_cb"] = token_call(spec.aws)
    return settings
