"""Shares of a process's connections: what one organization waits for takes no connection that others need."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

from sqlalchemy.exc import TimeoutError as PoolTimeout

WAIT_SECONDS: Final = 10.0
"""Time that a transaction waits for its organization's share, as long as for a connection of the pool."""


@dataclass(slots=True, eq=False)
class _Place:
    """A transaction's place in the share of an organization."""

    share: asyncio.Semaphore
    is_held: bool = True


_PLACES: Final[ContextVar[tuple[_Place, ...]]] = ContextVar("places", default=())
"""The places that the running task has, or had."""


class ConnectionShares:
    """Lets each organization have half of a pool's connections at once. Its other transactions wait in their order,
    without a connection.
    """

    def __init__(self, pool_size: int) -> None:
        self._most = max(1, pool_size // 2)
        self._shares: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._turns: WeakValueDictionary[tuple[UUID, str], asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def take_turn(self, organization_id: UUID, name: str) -> AsyncIterator[None]:
        """Hold the organization's turn of this name for the block. Other blocks of the process wait in order; they must
        not be nested.

        Raises SQLAlchemy's `TimeoutError` after `WAIT_SECONDS`.
        """
        turn = self._turns.get((organization_id, name))
        if turn is None:
            turn = self._turns[organization_id, name] = asyncio.Semaphore(1)
        await _acquire(turn, f"the organization's turn of {name} has not come within {WAIT_SECONDS:g} s")
        try:
            yield
        finally:
            turn.release()

    @asynccontextmanager
    async def take_place(self, organization_id: UUID) -> AsyncIterator[None]:
        """Take a place in the organization's share for the block. A block within a block of the same share needs none:
        it could wait for itself.

        Raises SQLAlchemy's `TimeoutError`, as the pool does, after `WAIT_SECONDS`.
        """
        share = self._shares.get(organization_id)
        if share is None:
            share = self._shares[organization_id] = asyncio.Semaphore(self._most)
        outer = _PLACES.get()
        if any(place.is_held and place.share is share for place in outer):
            yield
            return
        await _acquire(share, f"the organization has had {self._most} transactions for {WAIT_SECONDS:g} s")
        place = _Place(share)
        _PLACES.set((place,))
        try:
            yield
        finally:
            place.is_held = False
            share.release()
            _PLACES.set(outer)


async def _acquire(semaphore: asyncio.Semaphore, reason: str) -> None:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await semaphore.acquire()
    except TimeoutError as error:
        raise PoolTimeout(reason) from error
