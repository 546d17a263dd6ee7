"""From the variables LADING_NOTIFY_… to receivers. What cannot work is refused when the service starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import urlsplit

from lading.errors import ConfigError
from lading.net.addresses import EVERY_PRIVATE
from lading.net.outgoing import Outgoing
from lading.service.notify.receivers import Email, MailServer, Receiver, Slack, Webhook
from lading.service.notify.signals import EventKind, LagLimits
from lading.service.security.bind_policy import is_loopback
from lading.service.security.redaction import HIDDEN
from lading.settings_around import NotifyVariables
from lading.settings_file import read_secret_file

_PREFIX = "LADING_NOTIFY_"
_LEFT = "Nothing was started."
_TLS = ("starttls", "tls", "none")
TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """Who is told of what."""

    receivers: Mapping[str, Receiver]
    kinds: frozenset[EventKind]
    limits: LagLimits
    console_url: str = ""
    """Empty: where the service listens."""


def load_notify_settings(given: NotifyVariables) -> NotifySettings | None:
    """None when there is nobody to tell. Raises ConfigError."""
    # The owner of the service names these hosts: they may be in its own network, but not where clouds keep credentials.
    outgoing = Outgoing(rules=EVERY_PRIVATE, timeout_s=TIMEOUT_S)
    receivers: dict[str, Receiver] = {}
    if given.notify_webhook_url:
        url = check_url("WEBHOOK_URL", given.notify_webhook_url)
        receivers["webhook"] = Webhook(url=url, token=_token(given), outgoing=outgoing)
    if slack := _one("SLACK_URL", given.notify_slack_url, given.notify_slack_url_file):
        HIDDEN.learn([slack])
        receivers["slack"] = Slack(url=check_url("SLACK_URL", slack), outgoing=outgoing)
    if given.notify_email_to:
        receivers["email"] = _email(given, outgoing)
    if not receivers:
        return None
    limits = LagLimits(seconds=given.notify_lag_seconds, records=given.notify_lag_records, files=given.notify_lag_files)
    console = check_url("CONSOLE_URL", given.notify_console_url).rstrip("/") if given.notify_console_url else ""
    return NotifySettings(receivers=receivers, kinds=_kinds(given.notify_on), limits=limits, console_url=console)


def check_url(name: str, url: str, prefix: str = _PREFIX) -> str:
    """Raises ConfigError; the URL is not repeated, for it may be a secret."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or not url.isascii() or url.split() != [url]:
        msg = f"{prefix}{name} is not a URL of http or https"
        raise ConfigError(msg, left=_LEFT, todo="Write for example https://hooks.example.com/lading.")
    return url


def _kinds(text: str) -> frozenset[EventKind]:
    words = {word.strip().lower() for word in text.split(",") if word.strip()}
    known = {kind.value: kind for kind in EventKind}
    if unknown := sorted(words - known.keys()):
        msg = f"{_PREFIX}ON has a word that is not known: {unknown[0]}"
        raise ConfigError(msg, left=_LEFT, todo=f"Known are {', '.join(known)}.")
    return frozenset(known[word] for word in words)


def _token(given: NotifyVariables) -> str:
    token = _one("WEBHOOK_TOKEN", given.notify_webhook_token, given.notify_webhook_token_file)
    if not (token.isascii() and token.isprintable()):
        msg = f"{_PREFIX}WEBHOOK_TOKEN has letters that a header cannot carry"
        raise ConfigError(msg, left=_LEFT, todo="Use letters of ASCII.")
    HIDDEN.learn([token])
    return token


def _one(name: str, value: str, path: Path | None) -> str:
    """A secret by itself, or in a file."""
    if path is None:
        return value
    if value:
        msg = f"{_PREFIX}{name} and {_PREFIX}{name}_FILE are both set"
        raise ConfigError(msg, left=_LEFT, todo="Set one of them.")
    return read_secret_file(f"{_PREFIX}{name}_FILE", path)


def _email(given: NotifyVariables, outgoing: Outgoing) -> Email:
    host, port = _place(given.notify_smtp)
    tls = given.notify_smtp_tls.lower()
    if tls not in _TLS:
        msg = f"{_PREFIX}SMTP_TLS is not one of {', '.join(_TLS)}"
        raise ConfigError(msg, left=_LEFT, todo="Leave it out for STARTTLS.")
    password = _one("SMTP_PASSWORD", given.notify_smtp_password, given.notify_smtp_password_file)
    if password and tls == "none" and not is_loopback(host):
        msg = f"{_PREFIX}SMTP_TLS=none would send the password to {host} in the clear"
        raise ConfigError(msg, left=_LEFT, todo="Leave it out, or use tls.")
    if bool(password) != bool(given.notify_smtp_user):
        msg = f"{_PREFIX}SMTP_USER and {_PREFIX}SMTP_PASSWORD go together"
        raise ConfigError(msg, left=_LEFT, todo="Set both, or neither.")
    HIDDEN.learn([password])
    to = tuple(_address("EMAIL_TO", each) for each in given.notify_email_to.split(",") if each.strip())
    server = MailServer(
        host=host,
        port=port,
        tls=tls,
        ca_file=given.notify_smtp_ca_file,
        user=given.notify_smtp_user,
        password=password,
    )
    return Email(server=server, sender=_address("EMAIL_FROM", given.notify_email_from), to=to, outgoing=outgoing)


def _address(name: str, text: str) -> str:
    address = parseaddr(text.strip())[1]
    if "@" not in address or address != text.strip() or not address.isprintable():
        msg = f"{_PREFIX}{name} is not an address of e-mail: {text.strip()!r}"
        raise ConfigError(msg, left=_LEFT, todo="Write for example data-team@example.com.")
    return address


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if ":" in text else (text, "", "587")
    if not host or not host.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        msg = f"{_PREFIX}SMTP is not a mail server"
        raise ConfigError(msg, left=_LEFT, todo="Write for example smtp.example.com:587.")
    return host.removeprefix("[").removesuffix("]"), int(port)
