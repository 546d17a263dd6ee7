"""Settings of Kafka's client and of the schema registry that a statement may hand on: these, and no others.

librdkafka has settings that load code, run programs, read files, ask a cloud for the credentials of the machine and
write what it does to a log. A list of what is refused would have a hole with each of its releases.
"""

from __future__ import annotations

from collections.abc import Mapping

from lading.sql.properties.values import refuse
from lading.suggest import nearest

PREFIX = "property."
_READING = (
    *("client.id", "client.rack", "group.id", "group.instance.id", "session.timeout.ms", "heartbeat.interval.ms"),
    *("max.poll.interval.ms", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof"),
    *("auto.offset.reset", "isolation.level", "fetch.min.bytes", "fetch.max.bytes", "fetch.wait.max.ms"),
    *("fetch.message.max.bytes", "max.partition.fetch.bytes", "fetch.error.backoff.ms", "fetch.queue.backoff.ms"),
    *("queued.min.messages", "queued.max.messages.kbytes", "receive.message.max.bytes", "check.crcs"),
)
_CONNECTING = (
    *("socket.timeout.ms", "socket.keepalive.enable", "socket.nagle.disable", "socket.send.buffer.bytes"),
    *("socket.receive.buffer.bytes", "socket.max.fails", "socket.connection.setup.timeout.ms"),
    *("connections.max.idle.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms"),
    *("retry.backoff.max.ms", "metadata.max.age.ms", "topic.metadata.refresh.interval.ms", "broker.address.family"),
    *("broker.address.ttl", "api.version.request", "api.version.request.timeout.ms", "api.version.fallback.ms"),
    "broker.version.fallback",
)
_SIGNING_IN = (
    *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.pem"),
    *("ssl.certificate.pem", "ssl.key.pem", "ssl.key.password", "ssl.cipher.suites", "ssl.curves.list"),
    *("ssl.sigalgs.list", "ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"),
)
_REGISTRY = tuple(
    f"schema.registry.{name}"
    for name in (
        *("url", "basic.auth.user.info", "bearer.auth.credentials.source", "bearer.auth.token"),
        *("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id", "timeout", "cache.capacity"),
        *("cache.latest.ttl.sec", "max.retries", "retries.wait.ms", "retries.max.wait.ms"),
    )
)
FOR_EVERYBODY = frozenset((*_READING, *_CONNECTING, *_SIGNING_IN, *_REGISTRY))
"""Settings that LOAD is enough for."""
FOR_ADMINS = frozenset(
    (
        *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.crl.location"),
        *("ssl.keystore.location", "ssl.keystore.password", "sasl.kerberos.service.name", "sasl.kerberos.principal"),
        *("sasl.kerberos.keytab", "sasl.kerberos.min.time.before.relogin", "sasl.oauthbearer.method"),
        *("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope"),
        *("sasl.oauthbearer.extensions", "sasl.oauthbearer.token.endpoint.url", "https.ca.location"),
        *("schema.registry.ssl.ca.location", "schema.registry.ssl.key.location", "schema.registry.ssl.key.password"),
        "schema.registry.ssl.certificate.location",
    )
)
"""Settings that name files of the machine, or a token endpoint, whose redirects the library follows anywhere."""
_SAFE = {
    "enable.ssl.certificate.verification": ("true",),
    "ssl.endpoint.identification.algorithm": ("https",),
}
"""Other values of these give up what TLS is for, which is not for everybody to decide."""
_ONLY = {
    "sasl.oauthbearer.method": ("default", "oidc"),
    "schema.registry.bearer.auth.credentials.source": ("static_token",),
}
"""Other values have the credentials of the machine fetched from its cloud, or an address asked that is not checked."""


def check_settings(properties: Mapping[str, str]) -> None:
    """Refuse `property.…` that is not on the list. Raises SqlError."""
    for name, value in properties.items():
        setting = name.removeprefix(PREFIX)
        if setting not in FOR_EVERYBODY and setting not in FOR_ADMINS:
            raise _unknown(name, setting)
        if setting in _ONLY and value.strip().lower() not in _ONLY[setting]:
            msg = f"{name} can not be set to {value!r}"
            raise refuse(msg, property=name, todo=f"Allowed are: {', '.join(_ONLY[setting])}.")


def settings_for_admins(properties: Mapping[str, str]) -> list[str]:
    """Those properties that need ADMIN on everything."""
    return [name for name, value in properties.items() if _is_for_admins(name, value)]


def _is_for_admins(name: str, value: str) -> bool:
    if not name.startswith(PREFIX):
        return False
    setting = name.removeprefix(PREFIX)
    return setting in FOR_ADMINS or (setting in _SAFE and value.strip().lower() not in _SAFE[setting])


def _unknown(name: str, setting: str) -> Exception:
    allowed = sorted(FOR_EVERYBODY | FOR_ADMINS)
    close = nearest(setting, allowed)
    hint = f"Did you mean {PREFIX}{close}? " if close else ""
    msg = f"{name} is invalid kafka property or can not be set"
    return refuse(msg, property=name, todo=f"{hint}Allowed behind {PREFIX} are: {', '.join(allowed)}.")
