"""Work on many items of several organizations, in which one organization's failures do not delay the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

AT_ONCE: Final = 8
ITEM_SECONDS: Final = 60.0


async def work_on_each(items: Sequence[Item], work: Callable[[Item], Awaitable[object]]) -> int:
    """Work on every item, eight at a time and each for a minute at most; return how many there are.

    An item that fails does not end the others. Raises `ExceptionGroup` with the failures when all are done.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def work_on(item: Item) -> None:
        async with places, asyncio.timeout(ITEM_SECONDS):
            await work(item)

    results = await asyncio.gather(*(work_on(item) for item in items), return_exceptions=True)
    if errors := [result for result in results if isinstance(result, Exception)]:
        raise ExceptionGroup(f"{len(errors)} of {len(items)} items failed", errors)
    return len(items)
