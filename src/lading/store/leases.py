"""Leases: who works for what, so that two services do not do the same work."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import case, select, update

from lading.clock import Clock
from lading.store.database import Database
from lading.store.records import Lease
from lading.store.schema import LEASES


class SqlLeases:
    """See `protocols.Leases`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def acquire_lease(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        """Take or renew a lease. None while somebody else has it."""
        now = self._clock.now()
        until = now + ttl
        is_free = (LEASES.c.owner == owner) | (LEASES.c.until <= now)
        fence = case((LEASES.c.owner == owner, LEASES.c.fence), else_=LEASES.c.fence + 1)
        take = update(LEASES).where(LEASES.c.name == name, is_free).values(owner=owner, until=until, fence=fence)
        with self._database.write(f"Taking the lease {name}") as connection:
            row = {"name": name, "owner": owner, "until": until, "fence": 1}
            if not self._database.insert_new(connection, LEASES, row) and connection.execute(take).rowcount != 1:
                return None
            number = connection.execute(select(LEASES.c.fence).where(LEASES.c.name == name)).scalar_one()
        return Lease(name=name, owner=owner, until=until, fence=number)

    def release_lease(self, name: str, owner: str) -> None:
        """Give a lease back, if it is still the owner's. The row stays, so that fences never repeat."""
        mine = (LEASES.c.name == name) & (LEASES.c.owner == owner)
        with self._database.write(f"Giving back the lease {name}") as connection:
            connection.execute(update(LEASES).where(mine).values(owner="", until=self._clock.now()))

    def list_leases(self) -> list[Lease]:
        """Leases that hold now."""
        query = select(LEASES).where(LEASES.c.until > self._clock.now()).order_by(LEASES.c.name)
        with self._database.read("Listing leases") as connection:
            rows = connection.execute(query).all()
        return [Lease(name=row.name, owner=row.owner, until=row.until, fence=row.fence) for row in rows]
