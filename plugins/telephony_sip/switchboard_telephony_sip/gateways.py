"""Requests of the platform to the gateways of an organization.

The id of a call, `<hex>@<host>:<port>`, names the gateway that has it. Only addresses of the settings are ever asked.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from switchboard.plugin_sdk import OutcomeUnknown, ProviderError
from switchboard.plugin_sdk.retries import (
    ATTEMPT_SECONDS,
    CONNECT_SECONDS,
    ConnectionFailed,
    Response,
    send_with_retries,
    translate_attempt_errors,
)

from switchboard_telephony_sip.commands import COMMANDS_PATH, NOT_SERVED, Command, CommandRefusal, CommandResult
from switchboard_telephony_sip.signatures import ACCOUNT_HEADER, SIGNATURE_HEADER, derive_account_key, sign_message

CALL_ID: Final = re.compile(r"[0-9a-f]{32}@(\S{3,260})")
COMMAND_SECONDS: Final = ATTEMPT_SECONDS * 2
"""A transfer is answered once its target rings."""


class CallUnknown(Exception):
    """No gateway has the call: it is over, or its gateway is gone."""


class GatewayUnreachable(ProviderError):
    """A gateway that has not seen the request."""


class NotServed(ProviderError):
    """A gateway does not serve the account, or does not have its latest settings."""


def get_gateway_place(gateway: str) -> str:
    """Return host and port of a gateway's address, as its calls' ids have them."""
    parts = urlsplit(gateway)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{port}"


def read_gateway_place(carrier_call_id: str) -> str:
    """Return the place of the gateway that has a call; empty for an id that is no gateway's."""
    shape = CALL_ID.fullmatch(carrier_call_id)
    return shape[1] if shape else ""


class Gateways:
    """Client of an account's gateways. Create it in a running event loop and close it once."""

    def __init__(self, addresses: Sequence[str], secret: str) -> None:
        self.addresses = tuple(addresses)
        self._places = {get_gateway_place(address): address for address in addresses}
        self._secret = secret
        timeout = aiohttp.ClientTimeout(total=COMMAND_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
        self._http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout)

    async def close(self) -> None:
        await self._http.close()

    async def command_holder(self, carrier_call_id: str, command: Command, *, creates: bool = False) -> CommandResult:
        """Give a command to the gateway that has a call. `creates` is that of `command`.

        Raises `CallUnknown` and `ProviderError`.
        """
        gateway = self._places.get(read_gateway_place(carrier_call_id))
        if gateway is None:
            raise CallUnknown
        try:
            return await self.command(gateway, command, creates=creates)
        except GatewayUnreachable as error:
            raise CallUnknown from error

    async def command_first(self, command: Command) -> CommandResult:
        """Give a command that must happen once to the first gateway that can be reached and has capacity.

        Raises `OutcomeUnknown` if a gateway may have carried it out, else `ProviderError`.
        """
        unreachable: ProviderError | None = None
        for gateway in self.addresses:
            try:
                return await self.command(gateway, command, creates=True)
            except OutcomeUnknown:
                raise
            except ProviderError as error:
                if not isinstance(error, GatewayUnreachable) and not error.retryable:
                    raise
                unreachable = error
        raise unreachable or ProviderError("there is no gateway", retryable=False)

    async def command(self, gateway: str, command: Command, *, creates: bool = False) -> CommandResult:
        """Give a command to a gateway. `creates`: given twice, it might happen twice.

        Raises `CallUnknown`, `GatewayUnreachable`, `NotServed`, and other `ProviderError`s.
        """
        body = msgspec.json.encode(command)

        async def send() -> Response[tuple[int, bytes]]:
            headers = {
                SIGNATURE_HEADER: sign_message(self._secret, COMMANDS_PATH, body),
                ACCOUNT_HEADER: derive_account_key(self._secret),
                "Content-Type": "application/json",
            }
            with translate_attempt_errors():
                async with self._http.post(
                    f"{gateway}{COMMANDS_PATH}", data=body, headers=headers, allow_redirects=False
                ) as response:
                    return Response(response.status, response.headers, (response.status, await response.read()))

        try:
            status, text = await send_with_retries(f"the SIP gateway {gateway}", send, creates=creates)
        except ProviderError as error:
            if isinstance(error.__cause__, ConnectionFailed):
                raise GatewayUnreachable(error.message) from error
            raise
        return _read_result(status, text, creates=creates)


def _read_result(status: int, text: bytes, *, creates: bool) -> CommandResult:
    try:
        if status == 200:
            return msgspec.json.decode(text, type=CommandResult)
        if status == 404:
            raise CallUnknown
        refusal = msgspec.json.decode(text, type=CommandRefusal)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        if status == 200 and creates:
            raise OutcomeUnknown("the SIP gateway's answer was not understood") from error
        raise ProviderError(f"the SIP gateway answered with status {status}") from error
    if refusal.code == NOT_SERVED:
        raise NotServed(refusal.message, code=NOT_SERVED, retryable=False)
    raise ProviderError(refusal.message, code=refusal.code, retryable=refusal.retryable)
