"""Requests to the server, repeated where that helps, and their responses as models."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import count
from typing import TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx2
from pydantic import TypeAdapter, ValidationError

from switchboard_client.errors import ConnectionFailed, InvalidResponse, create_error
from switchboard_client.pages import AsyncPage, Page, PageContent
from switchboard_client.retries import RetryPolicy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request: `path` with the names of `ids` in braces. POST without an `idempotency_key` gets one."""

    method: str
    path: str
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, object] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    idempotency_key: str | None = None

    def build(self, client: httpx2.Client | httpx2.AsyncClient) -> httpx2.Request:
        """Build the HTTP request, the same for all attempts."""
        path = self.path.format(**{name: quote(value, safe="") for name, value in self.ids.items()})
        query = {name: _format_value(value) for name, value in self.query.items() if value is not None}
        headers = {"Idempotency-Key": self.idempotency_key or str(uuid4())} if self.method == "POST" else {}
        return client.build_request(self.method, path, params=query, json=self.body, headers=headers)

    def at(self, offset: int) -> "ApiRequest":
        """Return the request of the page at an offset."""
        return replace(self, query={**self.query, "offset": offset})


@dataclass(frozen=True, slots=True)
class Transport:
    """Sends requests, and waits for their responses."""

    client: httpx2.Client
    retries: RetryPolicy

    def send(self, request: ApiRequest) -> bytes:
        """Return the content of the response; raises `ApiError` or `ConnectionFailed`."""
        built = request.build(self.client)
        for attempt in count():
            try:
                response = self.client.send(built)
            except httpx2.TransportError as error:
                delay = self.retries.find_delay(attempt, None)
                if delay is None:
                    raise ConnectionFailed(str(error)) from error
            else:
                delay = self.retries.find_delay(attempt, response)
                if delay is None:
                    return _read_content(response)
            time.sleep(delay)
        raise AssertionError

    def fetch(self, request: ApiRequest, shape: type[T]) -> T:
        """Return the response as a model, or as a list of models."""
        return _parse(self.send(request), shape)

    def fetch_page(self, request: ApiRequest, shape: type[T]) -> Page[T]:
        """Return a page of a list."""
        content = self.fetch(request, PageContent[shape])  # type: ignore[valid-type]
        return Page(**dict(content), _fetch=lambda offset: self.fetch_page(request.at(offset), shape))


@dataclass(frozen=True, slots=True)
class AsyncTransport:
    """Sends requests, and awaits their responses."""

    client: httpx2.AsyncClient
    retries: RetryPolicy

    async def send(self, request: ApiRequest) -> bytes:
        """Return the content of the response; raises `ApiError` or `ConnectionFailed`."""
        built = request.build(self.client)
        for attempt in count():
            try:
                response = await self.client.send(built)
            except httpx2.TransportError as error:
                delay = self.retries.find_delay(attempt, None)
                if delay is None:
                    raise ConnectionFailed(str(error)) from error
            else:
                delay = self.retries.find_delay(attempt, response)
                if delay is None:
                    return _read_content(response)
            await asyncio.sleep(delay)
        raise AssertionError

    async def fetch(self, request: ApiRequest, shape: type[T]) -> T:
        """Return the response as a model, or as a list of models."""
        return _parse(await self.send(request), shape)

    async def fetch_page(self, request: ApiRequest, shape: type[T]) -> AsyncPage[T]:
        """Return a page of a list."""
        content = await self.fetch(request, PageContent[shape])  # type: ignore[valid-type]
        return AsyncPage(**dict(content), _fetch=lambda offset: self.fetch_page(request.at(offset), shape))


def build_headers(api_key: str) -> dict[str, str]:
    """Return the headers of every request."""
    agent = f"switchboard-client-python/{version('switchboard-voice-client')}"
    return {"Authorization": f"Bearer {api_key}", "User-Agent": agent}


def _parse(content: bytes, shape: type[T]) -> T:
    try:
        return TypeAdapter(shape).validate_json(content)
    except ValidationError as error:
        raise InvalidResponse(str(error)) from error


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_content(response: httpx2.Response) -> bytes:
    if response.is_success:
        return response.content
    raise create_error(response.status_code, response.headers, response.content)
