"""What a carrier adds to capability `telephony` when browsers and apps call over a socket of the platform's, because it has no client SDK."""

from abc import ABC, abstractmethod
from typing import Protocol

from switchboard.plugin_sdk.media import Frame
from switchboard.plugin_sdk.telephony import CallbackUrls


class BrowserSocket(Protocol):
    """The browser's WebSocket. `receive` answers None once it is closed; `send` raises `ConnectionError` then."""

    async def receive(self) -> Frame | None: ...
    async def send(self, message: Frame) -> None: ...


class BrowserPhone(ABC):
    """A carrier whose `browser_token` is for the platform's socket; the platform adds the socket's address to `connection` as `url`."""

    @abstractmethod
    async def serve_browser(self, socket: BrowserSocket, callbacks: CallbackUrls) -> None:
        """Hold one browser's call, from what it dials to its end; the platform then closes the socket.

        Nobody has checked who is there: what comes first must prove itself by a token. The call is announced to `callbacks` as a `BrowserCall`.
        """
