"""Long work on the event loop in steps, between which live calls go on."""

import asyncio
import time
from typing import Final

STEP_SECONDS: Final = 0.001


class Pace:
    """Pace of one piece of work: `pause` lets other tasks run once a millisecond of it is over."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Let other tasks run if the current step has taken its time."""
        if time.perf_counter() - self._began >= STEP_SECONDS:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
