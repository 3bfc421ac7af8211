"""Registration of a trunk at its registrar (RFC 3261, section 10), so that calls reach a gateway behind a NAT."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from aiosipua.message import SipResponse

from switchboard_telephony_sip.signaling.dialog_state import DialogState
from switchboard_telephony_sip.signaling.digest import SipCredentials
from switchboard_telephony_sip.signaling.endpoint import SipEndpoint
from switchboard_telephony_sip.signaling.messages import USER_AGENT, read_address, read_uri_text
from switchboard_telephony_sip.signaling.peers import Peer, PeerUnreachable, resolve_peer

EXPIRES_SECONDS = 300
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 2.0, 60.0
REFRESH_SHARE = 0.8
MIN_REFRESH_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 25.0
"""Below the 30 seconds for which common routers keep a UDP binding."""
LONGEST_REFRESH_SECONDS = 86_400.0
"""A binding may last for years, and a registrar that restarts may lose it."""
MAX_DELTA_SECONDS = 2**32 - 1
"""Limit of RFC 3261, section 25.1, for times in seconds."""


@dataclass(frozen=True, slots=True)
class RegistrationAccount:
    """An address of record, such as `sip:alice@pbx.example`, and its registrar."""

    registrar: Peer
    address_of_record: str
    credentials: SipCredentials


class Registration:
    """Binding of one account: refreshed before it expires, and tried again with growing delays after a failure.

    `on_change` is called with each change of `is_registered`. `failure` says why the last attempt failed.
    """

    def __init__(self, endpoint: SipEndpoint, account: RegistrationAccount) -> None:
        self.account = account
        self.is_registered = False
        self.failure = ""
        self.on_change: Callable[[], None] | None = None
        self._endpoint = endpoint
        record = f"<{account.address_of_record}>"
        self._user, _, domain = account.address_of_record.partition(":")[2].rpartition("@")
        self._requests = DialogState.begin(
            record, record, f"sip:{domain}", account.registrar, credentials=account.credentials
        )
        self._expires = EXPIRES_SECONDS
        self._peer: Peer | None = None
        self._contact = ""
        self._task = endpoint.spawn(self._run())

    async def close(self) -> None:
        """Stop, and remove the binding if there is one; waits for the registrar at most two seconds."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self.is_registered:
            with suppress(PeerUnreachable, TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._register(0)
            self._change(registered=False)

    async def _run(self) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            granted = await self._try_once()
            if granted is None:
                # Many gateways must not return to a restarted registrar in the same second.
                pause = delay * random.uniform(0.75, 1.25)  # noqa: S311 -- not a secret
                delay = min(delay * 2, LONGEST_RETRY_SECONDS)
            else:
                delay = FIRST_RETRY_SECONDS
                pause = min(max(granted * REFRESH_SHARE, MIN_REFRESH_SECONDS), LONGEST_REFRESH_SECONDS)
            await self._wait(pause)

    async def _wait(self, seconds: float) -> None:
        """Wait for the next attempt, and keep the NAT's binding open meanwhile."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (rest := end - loop.time()) > 0:
            await asyncio.sleep(min(rest, KEEP_ALIVE_SECONDS))
            if self.is_registered and self._peer is not None:
                self._endpoint.send_keep_alive(self._peer)

    async def _try_once(self) -> float | None:
        """Register, and return the seconds that the registrar grants, or None after a failure."""
        try:
            response = await self._register(self._expires)
        except PeerUnreachable as error:
            self._change(registered=False, failure=str(error))
            return None
        if response.status_code >= 300:
            self._change(registered=False, failure=f"{response.status_code} {response.reason_phrase}")
            return None
        self._change(registered=True)
        return self._read_granted(response)

    def _change(self, *, registered: bool, failure: str = "") -> None:
        changed = registered != self.is_registered
        self.is_registered, self.failure = registered, failure
        if changed and self.on_change is not None:
            self.on_change()

    async def _register(self, expires: int) -> SipResponse:
        """Send REGISTER, and lengthen the interval where the registrar asks for it (423)."""
        peer = self._peer = await resolve_peer(self.account.registrar)
        self._contact = self._endpoint.build_contact(peer, self._user)
        while True:
            headers = [("Contact", self._contact), ("Expires", str(expires)), ("User-Agent", USER_AGENT)]
            # A registrar refuses the same nonce count again, so each interval is asked for without an answer first.
            response = await self._endpoint.request(self._requests, peer, "REGISTER", headers)
            if response.status_code != 423 or not expires or (longer := _read_minimum(response)) <= expires:
                return response
            expires = self._expires = longer

    def _read_granted(self, response: SipResponse) -> float:
        """Return the seconds for which our Contact is bound; Expires counts for a binding without its own."""
        ours = read_uri_text(self._contact)
        for value in response.headers.get("contact"):
            granted = read_address(value).params.get("expires") or ""
            if read_uri_text(value) == ours and granted.isascii() and granted.isdigit():
                return float(granted[:9])
        header = response.headers.get_first("expires") or ""
        return float(header[:9]) if header.isascii() and header.isdigit() else float(self._expires)


def _read_minimum(response: SipResponse) -> int:
    """Return the seconds of Min-Expires, 0 without a number of at most 32 bits."""
    value = (response.headers.get_first("min-expires") or "").lstrip("0")
    seconds = int(value) if value.isascii() and value.isdigit() and len(value) <= 10 else 0
    return seconds if seconds <= MAX_DELTA_SECONDS else 0
