"""Delivery of 2xx responses to INVITE, which the callee repeats until the ACK (RFC 3261, section 13.3.1.4)."""

import asyncio

from aiosipua.message import SipResponse

from switchboard_telephony_sip.signaling.messages import read_cseq
from switchboard_telephony_sip.signaling.outgoing import CallTimeout
from switchboard_telephony_sip.signaling.server_transactions import ServerTransaction
from switchboard_telephony_sip.signaling.transactions import T1, T2, TIMEOUT


class Acknowledgments:
    """ACKs for which a dialog waits, by their CSeq number."""

    def __init__(self) -> None:
        self._awaited: dict[int, asyncio.Future[str | None]] = {}

    async def deliver(self, transaction: ServerTransaction, response: SipResponse) -> str | None:
        """Send a 2xx response until its ACK comes; return the ACK's SDP. Raises `CallTimeout` after 32 seconds."""
        number, _ = read_cseq(transaction.request)
        ack: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._awaited[number] = ack
        transaction.respond(response)
        interval = T1
        try:
            async with asyncio.timeout(TIMEOUT):
                while not ack.done():
                    await asyncio.wait((ack,), timeout=interval)
                    if not ack.done():
                        transaction.repeat_success()
                    interval = min(interval * 2, T2)
        except TimeoutError as error:
            raise CallTimeout("the peer did not acknowledge the answer") from error
        finally:
            del self._awaited[number]
        return ack.result()

    def receive(self, number: int, sdp: str | None) -> None:
        """Take the ACK of the response to the INVITE with this number."""
        ack = self._awaited.get(number)
        if ack is not None and not ack.done():
            ack.set_result(sdp)

    def give_up(self) -> None:
        """Wait no longer: the dialog has ended."""
        for number in self._awaited:
            self.receive(number, None)
