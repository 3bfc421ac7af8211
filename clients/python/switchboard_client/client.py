"""The clients, blocking and asynchronous."""

from types import TracebackType
from typing import Self

import httpx2

from switchboard_client.generated.async_resources import AsyncResources
from switchboard_client.generated.resources import Resources
from switchboard_client.retries import RetryPolicy
from switchboard_client.transport import AsyncTransport, Transport, build_headers

DEFAULT_TIMEOUT = 60.0
DEFAULT_RETRIES = 3


class Switchboard(Resources):
    """Client of one organization.

    `api_key`: an API key or an OAuth access token. `base_url`: address of the server, without `/v1`. `timeout`: seconds
    for each attempt. `max_retries`: attempts after the first one.
    """

    def __init__(
        self, *, api_key: str, base_url: str, timeout: float = DEFAULT_TIMEOUT, max_retries: int = DEFAULT_RETRIES
    ) -> None:
        self._client = httpx2.Client(base_url=base_url, headers=build_headers(api_key), timeout=timeout)
        super().__init__(Transport(self._client, RetryPolicy(max_retries)))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncSwitchboard(AsyncResources):
    """Client of one organization, whose methods are coroutines. The parameters are those of `Switchboard`."""

    def __init__(
        self, *, api_key: str, base_url: str, timeout: float = DEFAULT_TIMEOUT, max_retries: int = DEFAULT_RETRIES
    ) -> None:
        self._client = httpx2.AsyncClient(base_url=base_url, headers=build_headers(api_key), timeout=timeout)
        super().__init__(AsyncTransport(self._client, RetryPolicy(max_retries)))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
