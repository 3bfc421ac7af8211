"""Pages of lists, which iterate over all following pages too."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

T = TypeVar("T")


class PageContent(BaseModel, Generic[T]):
    """One page as the server sends it."""

    items: list[T]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Page(Generic[T]):
    items: list[T]
    total: int
    """Items of all pages."""
    limit: int
    offset: int

    def _next_offset(self) -> int | None:
        following = self.offset + len(self.items)
        return following if self.items and following < self.total else None

    def _list_new(self, previous: "_Page[T] | None") -> list[T]:
        """Return the items that the previous page has not had: lists are newest first, so an item that is created
        meanwhile moves the others to later pages.
        """
        seen = {_get_id(item) for item in previous.items} - {None} if previous is not None else set()
        return [item for item in self.items if _get_id(item) not in seen]


@dataclass(frozen=True, slots=True)
class Page(_Page[T]):
    """One page: `items`, and `total` of all pages. Iterating a page yields its items and those of all later pages."""

    _fetch: "Callable[[int], Page[T]]"

    def __iter__(self) -> Iterator[T]:
        previous, page = None, self
        while True:
            yield from page._list_new(previous)
            offset = page._next_offset()
            if offset is None:
                return
            previous, page = page, self._fetch(offset)


@dataclass(frozen=True, slots=True)
class AsyncPage(_Page[T]):
    """One page: `items`, and `total` of all pages. Iterating a page yields its items and those of all later pages."""

    _fetch: "Callable[[int], Awaitable[AsyncPage[T]]]"

    async def __aiter__(self) -> AsyncIterator[T]:
        previous, page = None, self
        while True:
            for item in page._list_new(previous):
                yield item
            offset = page._next_offset()
            if offset is None:
                return
            previous, page = page, await self._fetch(offset)


def _get_id(item: object) -> object:
    return getattr(item, "id", None)
