"""A receiver of mail: a real SMTP server with STARTTLS and AUTH PLAIN that remembers what it took."""

from __future__ import annotations

import base64
import email
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path


class MailServer:
    """What came, and what is refused."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.recipients: list[str] = []
        self.logins: list[tuple[str, str]] = []
        self.was_encrypted: list[bool] = []
        """Of each mail."""
        self.refuses = False
        self.port = 0


@contextmanager
def mail_server(certificate: Path | None = None, key: Path | None = None) -> Iterator[MailServer]:
    """One that listens at a port of its own. Without a certificate it has no STARTTLS."""
    box = MailServer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate and key else None
    if context is not None and certificate and key:
        context.load_cert_chain(certificate, key)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.talk(_Line(self.request), is_encrypted=False)

        def talk(self, line: _Line, *, is_encrypted: bool) -> None:
            if not is_encrypted:
                line.say("220 here")
            with line:
                self.converse(line, is_encrypted=is_encrypted)

        def converse(self, line: _Line, *, is_encrypted: bool) -> None:
            while words := line.hear():
                verb = words.split()[0].upper()
                if verb == "STARTTLS" and context is not None:
                    line.say("220 go on")
                    line.close()
                    with context.wrap_socket(line.connection, server_side=True) as wrapped:
                        self.talk(_Line(wrapped), is_encrypted=True)
                    return
                if not self.answer(line, verb, words, is_encrypted=is_encrypted):
                    return

        def answer(self, line: _Line, verb: str, words: str, *, is_encrypted: bool) -> bool:
            if verb == "EHLO":
                offers = ["AUTH PLAIN"] if is_encrypted or context is None else ["STARTTLS"]
                line.say("\r\n".join(["250-here", *(f"250-{each}" for each in offers[:-1]), f"250 {offers[-1]}"]))
            elif verb == "AUTH":
                _, user, password = base64.b64decode(words.split()[2]).decode().split("\0")
                box.logins.append((user, password))
                line.say("235 welcome")
            elif verb == "RCPT":
                box.recipients.append(words.partition("<")[2].partition(">")[0])
                line.say("550 nobody" if box.refuses else "250 ok")
            elif verb == "DATA":
                line.say("354 go on")
                box.mails.append(email.message_from_string("\n".join(iter(line.hear, "."))))
                box.was_encrypted.append(is_encrypted)
                line.say("250 taken")
            else:
                line.say("221 bye" if verb == "QUIT" else "250 ok")
            return verb != "QUIT"

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # A client that does not trust the certificate hangs up.

    with Server(("127.0.0.1", 0), Handler) as server:
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()


class _Line:
    def __init__(self, connection: ssl.SSLSocket) -> None:
        self.connection = connection
        self._file = connection.makefile("rb")

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the reading side; the connection stays."""
        self._file.close()

    def say(self, text: str) -> None:
        self.connection.sendall(text.encode() + b"\r\n")

    def hear(self) -> str:
        """Without its end; empty when the other side has hung up."""
        return self._file.readline().decode().rstrip("\r\n")
