"""Sockets of browsers: one that dials makes a call, one that registers waits for calls."""

import asyncio
import hashlib
import hmac
import time
from contextlib import suppress
from typing import Final

from switchboard.plugin_sdk import BrowserCall, BrowserSocket, CallbackUrls, is_client_identity

from switchboard_offline.loopback.browser_socket import (
    ConnectedMessage,
    DialMessage,
    EndedMessage,
    Headset,
    RegisterMessage,
    read_message,
    send_to_browser,
)
from switchboard_offline.loopback.caller import Caller
from switchboard_offline.loopback.exchange import Exchange
from switchboard_offline.loopback.phone import Phone

TOKEN_SECONDS: Final = 3600
FIRST_SECONDS: Final = 10.0


def create_token(secret: str, identity: str) -> str:
    """Create a token valid for one hour: expiry, identity, and signature."""
    claims = f"{int(time.time()) + TOKEN_SECONDS}.{identity}"
    return f"{claims}.{_sign_claims(secret, claims)}"


def verify_token(secret: str, token: str) -> str | None:
    """Return the identity of a token; None if it is forged or expired."""
    claims, _, proof = token.rpartition(".")
    if not hmac.compare_digest(proof.encode(), _sign_claims(secret, claims).encode()):
        return None
    until, _, identity = claims.partition(".")
    return identity if time.time() < int(until) else None


def _sign_claims(secret: str, claims: str) -> str:
    return hmac.new(secret.encode(), f"browser.{claims}".encode(errors="backslashreplace"), hashlib.sha256).hexdigest()


async def serve_browser_socket(exchange: Exchange, secret: str, socket: BrowserSocket, callbacks: CallbackUrls) -> None:
    """Serve a browser's socket, from its first message to the end of its call."""
    first, identity = None, None
    with suppress(TimeoutError):
        async with asyncio.timeout(FIRST_SECONDS):
            first = read_message(await socket.receive())
    if isinstance(first, DialMessage | RegisterMessage):
        identity = verify_token(secret, first.token)
    if identity is None or not isinstance(first, DialMessage | RegisterMessage):
        await send_to_browser(socket, EndedMessage("The first message must dial, or register, with a valid token."))
    elif not isinstance(first, RegisterMessage):
        await _serve_call(exchange, socket, callbacks, first, identity)
    elif is_client_identity(identity):
        await exchange.clients.serve(socket, identity)
    else:
        await send_to_browser(socket, EndedMessage("This token is for a call, and cannot wait for calls."))


async def _serve_call(
    exchange: Exchange, socket: BrowserSocket, callbacks: CallbackUrls, dial: DialMessage, identity: str
) -> None:
    leg = await exchange.add(callbacks.events)

    async def talk(phone: Phone) -> None:
        await send_to_browser(socket, ConnectedMessage(leg.call_id))
        await Headset(socket).talk(phone)

    caller = Caller(exchange.directory, lambda _leg: talk)
    announced = BrowserCall(leg.call_id, dial.from_number, dial.to_number, identity)
    await exchange.run(leg, lambda leg: caller.ring(leg, exchange.post, callbacks.events, announced))
    await send_to_browser(
        socket,
        EndedMessage(leg.fault if caller.answered else caller.refused or leg.fault or "The call was not answered."),
    )
