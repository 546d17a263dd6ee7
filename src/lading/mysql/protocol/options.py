"""How the MySQL face is run."""

from __future__ import annotations

from dataclasses import dataclass

from lading.service.security.certificates import CertificateFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions:
    """Limits and places. Each limit is there so that one client cannot take what the others need."""

    host: str = "127.0.0.1"
    port: int = 9030
    """0: any that is free."""
    max_connections: int = 600
    workers: int = 16
    """Statements that run at once; others wait for their turn."""
    workers_each: int = 8
    """Of those, the statements of one user."""
    login_workers: int = 16
    """Clients whose password is looked at at once; those that wait because it was wrong need none."""
    login_workers_each: int = 4
    """Of those, the clients of one address."""
    handshake_timeout_s: float = 10.0
    """A client that has not proven who it is after so long is dropped."""
    idle_timeout_s: float = 28_800.0
    """A client that says nothing for so long is dropped."""
    write_timeout_s: float = 600.0
    """A client that takes nothing of its rows for so long is dropped."""
    max_packet_bytes: int = 16 * 1024 * 1024
    max_prepared: int = 1000
    """Prepared statements of one connection."""
    close_grace_s: float = 10.0
    """How long running statements may take when the server is closed."""
    tls: CertificateFiles | None = None
    """With it, connections from other machines must be encrypted."""
    require_tls: bool = False
    """Those from this machine, too."""
