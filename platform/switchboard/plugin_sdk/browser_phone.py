"""Extension of capability `telephony`: browser calls over the platform's own socket, for a carrier without a client
SDK.
"""

from abc import ABC, abstractmethod
from typing import Final, Protocol

from switchboard.plugin_sdk.media import Frame
from switchboard.plugin_sdk.telephony import CallbackUrls

CLIENT_IDENTITY_PREFIX: Final = "client_"
"""Begins the identity of a client at the carrier."""


def is_client_identity(identity: str) -> bool:
    """Return whether the identity of a browser token is a client's, which may wait for calls. Others only call."""
    return identity.startswith(CLIENT_IDENTITY_PREFIX)


class BrowserSocket(Protocol):
    """The browser's WebSocket. Once it is closed, `receive` returns None and `send` raises `ConnectionError`."""

    async def receive(self) -> Frame | None: ...
    async def send(self, message: Frame) -> None: ...


class BrowserPhone(ABC):
    """A carrier whose browser tokens are for the platform's socket.

    The platform adds the socket's address to the token's `connection` as `url`.
    """

    @abstractmethod
    async def serve_browser(self, socket: BrowserSocket, callbacks: CallbackUrls) -> None:
        """Handle one browser's call from its first message to its end; the platform then closes the socket.

        The platform has not authenticated the browser: its first message must contain a valid token. The call is
        announced to `callbacks` as a `BrowserCall`. Only a token whose identity is a client's (`is_client_identity`)
        may wait for calls: others are for one call.
        """
