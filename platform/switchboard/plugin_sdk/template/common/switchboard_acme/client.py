"""Acme's HTTP API: settings, requests, and errors that an operator can act on."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from aiohttp import ClientConnectorError, ClientError, ClientResponse, ClientSession, ClientTimeout
from pydantic import Field, HttpUrl, SecretStr
from switchboard.plugin_sdk import Extension, OutcomeUnknown, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.retries import read_retry_after

TIMEOUT = ClientTimeout(sock_connect=4, sock_read=10)
TOO_MANY_REQUESTS = 429


class AcmeSettings(ProviderSettings):
    """Access to Acme. Each field is a key of the tenant file and a field of the dashboard's form."""

    api_key: SecretStr = Field(description="Key of the account at Acme.")
    base_url: HttpUrl = Field(HttpUrl("https://api.example.com"), description="Address of Acme's API.")


class AcmeClient:
    """Requests to Acme, over connections that are opened by the first requests and kept open."""

    def __init__(self, settings: AcmeSettings) -> None:
        self._settings = settings
        self._session: ClientSession | None = None

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def request(self, method: str, path: str, *, creates: bool = False, **options: Any) -> Any:
        """Return the JSON of a response. Raises as `stream` does."""
        async with self.stream(method, path, creates=creates, **options) as response:
            return await response.json()

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, creates: bool = False, **options: Any
    ) -> AsyncIterator[ClientResponse]:
        """Open a response whose body is read in parts. Raises `ProviderError` with Acme's own message.

        `creates`: the request must not happen twice, so a lost response is an `OutcomeUnknown`.
        """
        lost = OutcomeUnknown if creates else ProviderError
        try:
            async with self.session.request(method, path, **options) as response:
                if response.status >= 400:
                    raise ProviderError(
                        (await response.text())[:500],
                        code=str(response.status),
                        retryable=response.status == TOO_MANY_REQUESTS or response.status >= 500,
                        retry_after_seconds=read_retry_after(response.headers.get("Retry-After")),
                    )
                yield response
        except ClientConnectorError as error:
            raise ProviderError(f"Acme cannot be reached: {describe_connection_fault(error)}") from error
        except (ClientError, TimeoutError, ValueError) as error:
            raise lost(f"Acme did not answer: {type(error).__name__}") from error

    @property
    def session(self) -> ClientSession:
        """The session."""
        if self._session is None:
            headers = {"Authorization": f"Bearer {self._settings.api_key.get_secret_value()}"}
            self._session = ClientSession(str(self._settings.base_url), headers=headers, timeout=TIMEOUT)
        return self._session


class AcmeProvider(Provider[AcmeSettings]):
    """Base of a provider at Acme: its client, which is closed with the provider."""

    def __init__(self, settings: AcmeSettings) -> None:
        super().__init__(settings)
        self._client = AcmeClient(settings)

    async def close(self) -> None:
        await self._client.aclose()

    async def check(self) -> None:
        """Ask Acme whether the key is accepted, which costs nothing."""
        await self._client.request("GET", "/account")


class AcmeExtension(Extension):
    """Base of an extension at Acme: its settings, and their check."""

    Settings = AcmeSettings
    settings: AcmeSettings

    async def check(self) -> None:
        """Ask Acme whether the key is accepted, which costs nothing."""
        async with aclosing(AcmeClient(self.settings)) as client:
            await client.request("GET", "/account")
