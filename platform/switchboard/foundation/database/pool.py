"""Pool of connections to PostgreSQL that counts who waits for one."""

from typing import Any

from sqlalchemy import AsyncAdaptedQueuePool
from sqlalchemy.pool import ConnectionPoolEntry


class CountingPool(AsyncAdaptedQueuePool):
    """SQLAlchemy's pool for asyncio. `waiting` is the number of tasks that wait for a connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waiting = 0

    def _do_get(self) -> ConnectionPoolEntry:
        self.waiting += 1
        try:
            return super()._do_get()
        finally:
            self.waiting -= 1
