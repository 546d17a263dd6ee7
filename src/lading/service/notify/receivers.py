"""Who can be told, and how: a webhook, Slack, e-mail. Each raises UnavailableError when nobody took the message."""

from __future__ import annotations

import json
import smtplib
import socket
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Protocol

from lading.errors import UnavailableError
from lading.net.outgoing import Outgoing
from lading.service.notify.signals import JobEvent

_JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An event with what a receiver needs to know of its job."""

    event: JobEvent
    job: str
    job_id: str
    table: str
    link: str
    """To the page of the job."""

    @property
    def key(self) -> str:
        """The same for the same event, however often it is told."""
        return f"{self.job_id}/{self.event.number}"


class Receiver(Protocol):
    """One place that is told. Every call ends within the time of its `Outgoing`, or a few of them."""

    def tell(self, message: Message) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A POST with JSON."""

    url: str
    token: str = field(default="", repr=False)
    outgoing: Outgoing

    def tell(self, message: Message) -> None:
        event = message.event
        body = {
            "id": message.key,
            "kind": event.kind.value,
            "job": message.job,
            "job_id": message.job_id,
            "table": message.table,
            "text": event.text,
            "value": event.value,
            "link": message.link,
            "at": event.at.isoformat(),
        }
        headers = {"Content-Type": _JSON, "Idempotency-Key": message.key}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        check_taken(self.outgoing.post(self.url, json.dumps(body).encode(), headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """An incoming webhook: one line of text, with a link."""

    url: str = field(repr=False)
    outgoing: Outgoing

    def tell(self, message: Message) -> None:
        text = f"{_for_slack(message.event.text)} <{message.link}|Open the job>"
        check_taken(self.outgoing.post(self.url, json.dumps({"text": text}).encode(), {"Content-Type": _JSON}))


def _for_slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def check_taken(status: int) -> None:
    """Any status of 200 to 299 takes a message. Raises UnavailableError."""
    if not 200 <= status < 300:
        said = f"{status}, a redirect, which is not followed" if 300 <= status < 400 else str(status)
        msg = f"The answer had status {said}"
        raise UnavailableError(msg, left="The event stays pending.", todo="Check the receiver.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """How mail is handed over."""

    host: str
    port: int
    tls: str = "starttls"
    """starttls, tls or none."""
    ca_file: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Email:
    """One mail for all who are to know."""

    server: MailServer
    sender: str
    to: tuple[str, ...]
    outgoing: Outgoing

    def tell(self, message: Message) -> None:
        event = message.event
        mail = EmailMessage()
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Subject"] = f"Lading: {message.job}: {event.kind.value.replace('_', ' ')}"
        mail["Date"] = format_datetime(event.at)
        # The same for the same event: mail programs show one that comes twice once.
        mail["Message-ID"] = f"<{message.job_id}.{event.number}@lading>"
        mail.set_content(f"{event.text}\n\n{message.link}\n")
        try:
            with _open(self.server, self.outgoing) as smtp:
                if self.server.tls == "starttls":
                    smtp.starttls(context=_context(self.server))
                if self.server.user:
                    smtp.login(self.server.user, self.server.password)
                smtp.send_message(mail)
        except (OSError, smtplib.SMTPException) as error:
            msg = f"{self.server.host} did not take the mail: {type(error).__name__}: {str(error)[:200]}"
            raise UnavailableError(
                msg, left="The event stays pending.", todo="Check the mail server and the settings."
            ) from error


def _context(server: MailServer) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(server.ca_file) if server.ca_file else None)


def _open(server: MailServer, outgoing: Outgoing) -> smtplib.SMTP:
    made = _CheckedTls if server.tls == "tls" else _Checked
    return made(server, outgoing)


class _Checked(smtplib.SMTP):
    """Connects to an address that was checked."""

    def __init__(self, server: MailServer, outgoing: Outgoing) -> None:
        self._server = server
        self._outgoing = outgoing
        super().__init__(server.host, server.port, timeout=outgoing.timeout_s)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        clock = self._outgoing.clock
        return self._outgoing.connect(host, port, clock.monotonic_s() + self._outgoing.timeout_s)


class _CheckedTls(_Checked):
    """With TLS from the first byte."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = super()._get_socket(host, port, timeout)
        return _context(self._server).wrap_socket(plain, server_hostname=host)
