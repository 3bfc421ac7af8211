"""HTTP and WebSocket access to a vendor over one session.

Every failure becomes a `ProviderError` with the vendor's code and message.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Annotated, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    HttpUrl,
    SecretStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from switchboard.plugin_sdk import Provider, ProviderError, ProviderSettings, SpeechChunk
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.retries import read_retry_after
from yarl import URL

CONNECT_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 20.0
"""Longest silence of a vendor in the middle of a response."""
CLOSE_SECONDS: Final = 1.0
LONGEST_LINE: Final = 2**20
RETRYABLE: Final = (408, 409, 425, 429)
NOTHING: Final = (400, 404, 422)

Params: TypeAlias = Sequence[tuple[str, str]]
AnswerT = TypeVar("AnswerT", bound=BaseModel)
ItemT = TypeVar("ItemT")


VendorUrl = Annotated[HttpUrl, Field(description="Address of another region, or of a self-hosted server.")]
DefaultModel = Annotated[str, Field(description="Model for agents that name none.")]
DefaultVoice = Annotated[str, Field(description="Id of the voice for agents that name none.")]


class SpeechVendorSettings(ProviderSettings):
    """Settings of every vendor."""

    api_key: SecretStr = Field(description="An API key of the vendor.")
    base_url: VendorUrl


SettingsT = TypeVar("SettingsT", bound=SpeechVendorSettings)
AnySettings = TypeVar("AnySettings", bound=ProviderSettings)


def _ignore_unknown_form(value: object, read: ValidatorFunctionWrapHandler) -> list[ItemT]:
    try:
        items: list[ItemT] = read(value)
    except ValidationError:
        return []
    return items


VendorList = Annotated[list[ItemT], BeforeValidator(lambda value: [] if value is None else value)]
"""A list in a vendor's message, for which some vendors send null when it is empty."""
WordTimes = Annotated[list[ItemT], WrapValidator(_ignore_unknown_form)]
"""Words with their times, which accompany a text: those of another form, or null, are left out, and the text counts."""


class VendorFault(NamedTuple):
    """A vendor's description of a failure: its code and message."""

    code: str | None
    message: str


FaultReader: TypeAlias = Callable[[str], VendorFault]
"""Reads the fault from a body or message. Raises `ValidationError` for an unknown format, whose text is then the
message.
"""


class VendorConnection:
    """Session for one organization's requests to a vendor. Open it in a running event loop."""

    def __init__(
        self, title: str, settings: SpeechVendorSettings, headers: Mapping[str, str], read_fault: FaultReader
    ) -> None:
        self.title = title
        self._key = settings.api_key.get_secret_value()
        self._base_url = str(settings.base_url).rstrip("/")
        self._headers = headers
        self._read_fault = read_fault
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
            read_bufsize=LONGEST_LINE,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params = (),
        body: object = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a JSON `body`, or a `text`, and yield the successful response, with an unread body.

        `path` is the whole address for another server of the vendor's.
        """
        url = self._base_url + path if path.startswith("/") else path
        with self._translate_errors():
            async with self._require_session().request(
                method, url, params=params, json=body, data=text, headers=headers
            ) as response:
                if response.status >= 400:
                    raise await self._read_refusal(response)
                yield response

    async def get(
        self, path: str, answer: type[AnswerT], *, params: Params = (), headers: Mapping[str, str] | None = None
    ) -> AnswerT:
        """Send a GET request and return its parsed response."""
        async with self.request("GET", path, params=params, headers=headers) as response:
            text = await response.text()
        with parse_vendor_data(self.title):
            return answer.model_validate_json(text)

    async def stream_audio(
        self,
        path: str,
        *,
        params: Params = (),
        body: object = None,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[SpeechChunk]:
        """Send a POST request and yield the audio of its response as it arrives."""
        async with self.request("POST", path, params=params, body=body, text=text, headers=headers) as response:
            if response.content_type.startswith("text/"):
                raise self.error(f"the answer is {response.content_type} instead of audio")
            async for audio in response.content.iter_any():
                yield SpeechChunk(audio)

    async def has(self, path: str) -> bool:
        """Return whether an object exists. An object with an invalid name does not exist."""
        with self._translate_errors():
            async with self._require_session().get(self._base_url + path) as response:
                if response.status in NOTHING:
                    return False
                if response.status >= 400:
                    raise await self._read_refusal(response)
                return True

    async def socket(
        self,
        path: str,
        *,
        params: Params = (),
        headers: Mapping[str, str] | None = None,
        heartbeat_seconds: float | None = None,
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, with a ping in each `heartbeat_seconds`."""
        with self._translate_errors():
            return await self._require_session().ws_connect(
                # Cartesia requires spaces as %20; aiohttp would write a plus sign.
                URL(f"{self._base_url}{path}?{urlencode(params, quote_via=quote)}", encoded=True),
                headers=headers,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                heartbeat=heartbeat_seconds,
                max_msg_size=2**23,
            )

    async def begin_session(
        self, path: str, *, params: Params, check_start: Callable[[aiohttp.WSMessage], None]
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, and close it unless `check_start` accepts the vendor's first message: the key may be
        validated only after the handshake.
        """
        async with AsyncExitStack() as failure:
            socket = await self.socket(path, params=params)
            failure.push_async_callback(socket.close)
            first = await self.receive(socket, CONNECT_SECONDS)
            with parse_vendor_data(self.title):
                check_start(first)
            failure.pop_all()
        return socket

    async def receive(self, socket: aiohttp.ClientWebSocketResponse, seconds: float) -> aiohttp.WSMessage:
        """Receive a message. Raises `ProviderError` if none comes within this time."""
        try:
            return await socket.receive(seconds)
        except TimeoutError:
            raise self.error(f"nothing came for {seconds:.0f} seconds") from None

    def closed_error(self, message: aiohttp.WSMessage) -> ProviderError:
        """Return the error for the message that ended a stream."""
        if message.type is aiohttp.WSMsgType.CLOSE:
            return self.error(
                f"the stream was closed ({message.data} {message.extra or 'no reason given'})", code=str(message.data)
            )
        return self.error("the stream was lost")

    async def _read_refusal(self, response: aiohttp.ClientResponse) -> ProviderError:
        return self.status_error(response.status, await response.text(errors="replace"), response.headers)

    def status_error(self, status: int, body: str, headers: Mapping[str, str] | None = None) -> ProviderError:
        """Return the error for an HTTP status, its body, and the headers of its response."""
        try:
            fault = self._read_fault(body)
        except ValueError:
            fault = VendorFault(None, body.strip()[:300] or "no reason was given")
        retryable = status >= 500 or status in RETRYABLE
        wait = None if headers is None else read_retry_after(headers.get("Retry-After"))
        return self.error(fault.message, code=fault.code or str(status), retryable=retryable, retry_after_seconds=wait)

    def error(
        self, message: str, *, code: str | None = None, retryable: bool = True, retry_after_seconds: float | None = None
    ) -> ProviderError:
        """Return an error in the vendor's name, without the API key, which vendors like to repeat."""
        return ProviderError(
            f"{self.title}: {message.replace(self._key, '***')}",
            code=code,
            retryable=retryable,
            retry_after_seconds=retry_after_seconds,
        )

    def _require_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise ProviderError(f"{self.title} is not open", retryable=False)
        return self._session

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except aiohttp.WSServerHandshakeError as error:
            # aiohttp does not provide the body of a refused handshake; Deepgram sends its reason in a header.
            reason = error.headers.get("dg-error", error.message) if error.headers else error.message
            raise self.status_error(error.status, f"{error.status} {reason}", error.headers) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self.error(f"the connection failed ({describe_connection_fault(error)})") from error


class ConnectedProvider(Provider[AnySettings]):
    """A provider with a session that is open as long as the provider."""

    def __init__(self, settings: AnySettings) -> None:
        super().__init__(settings)
        self._connection = self.connection(settings)

    @abstractmethod
    def connection(self, settings: AnySettings) -> VendorConnection:
        """Create the connection to the vendor."""

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._connection.close()


@contextmanager
def parse_vendor_data(title: str) -> Iterator[None]:
    """Translate parse errors of a vendor's data within the block to `ProviderError`."""
    try:
        yield
    except ValueError as error:
        raise ProviderError(f"{title} sent invalid data: {str(error).splitlines()[0]}") from error
