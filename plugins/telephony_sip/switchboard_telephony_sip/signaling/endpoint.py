"""The transaction layer: reads what arrives, matches it to its transaction, and sends requests and responses."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from aiosipua.message import SipRequest, SipResponse
from aiosipua.utils import format_addr

from switchboard_telephony_sip.signaling.dialog_state import DialogState
from switchboard_telephony_sip.signaling.digest import answer_challenge, is_stale
from switchboard_telephony_sip.signaling.messages import (
    USER_AGENT,
    MalformedMessage,
    build_response,
    parse_sip_message,
    read_cseq,
)
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer, PeerUnreachable
from switchboard_telephony_sip.signaling.transactions import (
    ClientTransaction,
    ServerTransaction,
    TransactionKey,
    find_reply_address,
    find_server_key,
    ignore,
    key_of,
)
from switchboard_telephony_sip.signaling.transports import SipTransports

LOGGER = logging.getLogger(__name__)
MIN_MESSAGE_BYTES = 20
MAX_SERVER_TRANSACTIONS = 20_000
MAX_CHALLENGES = 2


@dataclass(frozen=True, slots=True)
class TracedMessage:
    """One message on the wire, for ladder diagrams; it may contain secrets, which `mask_message` hides.

    `local` is the gateway's own address, as `host:port`; empty if it has none for this peer. `at` is in seconds since
    1970.
    """

    direction: Literal["in", "out"]
    local: str
    peer: Peer
    call_id: str
    data: bytes
    at: float = field(default_factory=time.time)


class RequestHandler(Protocol):
    """The user of the transaction layer."""

    def is_welcome(self, host: str) -> bool: ...

    def note_peer(self, host: str) -> None:
        """Take note that a request was sent to this host."""

    def handle_stray_request(self, request: SipRequest, source: Peer) -> Callable[[ServerTransaction], None] | None:
        """Return the handler for a new transaction, or None for a request that is refused without one."""

    def handle_ack(self, request: SipRequest) -> None:
        """Take the ACK of a 2xx response."""

    def handle_cancel(self, invite: ServerTransaction) -> None:
        """Give up a call that was not answered."""

    def handle_malformed(self, error: MalformedMessage, source: Peer) -> None: ...


class SipEndpoint:
    """Transports and transactions of one user agent."""

    def __init__(
        self,
        listeners: Sequence[ListenAddress],
        handler: RequestHandler,
        *,
        advertised_host: str | None = None,
        trusted_certificates: str | None = None,
    ) -> None:
        self.trace: Callable[[TracedMessage], None] | None = None
        self._handler = handler
        self.is_welcome, self.note_peer = handler.is_welcome, handler.note_peer
        self._advertised_host = advertised_host
        self._transports = SipTransports(listeners, self, trusted_certificates=trusted_certificates)
        self._clients: dict[TransactionKey, ClientTransaction] = {}
        self._servers: dict[TransactionKey, ServerTransaction] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await self._transports.start()

    def list_addresses(self) -> list[Peer]:
        """Return the addresses of the listeners, with the port that the kernel chose for port 0."""
        return self._transports.list_addresses()

    def count_transactions(self) -> int:
        """Return the number of transactions in memory."""
        return len(self._clients) + len(self._servers)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in list(self._clients.values()):
            client.fail(PeerUnreachable("the gateway stops"))
            client.end()
        for server in list(self._servers.values()):
            server.end()
        await self._transports.stop()

    def spawn(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Run a task until the endpoint stops; its failure is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)
        return task

    def _finish_task(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOGGER.error("A task of SIP failed.", exc_info=error)

    # Receiving

    def receive_data(self, data: bytes, source: Peer) -> None:
        if len(data) < MIN_MESSAGE_BYTES or not self._handler.is_welcome(source.host):
            return  # Keep-alives are this short, too.
        try:
            message = parse_sip_message(data)
        except MalformedMessage as error:
            self._handler.handle_malformed(error, source)
            return
        self._trace("in", source, message, data)
        if isinstance(message, SipResponse):
            _, method = read_cseq(message)
            if (client := self._clients.get(key_of(message, method))) is not None:
                client.receive(message)
        else:
            self._receive_request(message, source)

    def _receive_request(self, request: SipRequest, source: Peer) -> None:
        if request.method == "ACK":
            invite = self._servers.get(find_server_key(request, "INVITE"))
            if invite is not None and invite.is_final:
                invite.receive_ack()
            self._handler.handle_ack(request)
            return
        known = self._servers.get(find_server_key(request, request.method))
        if known is not None:
            known.receive_again()
            return
        reply_to = find_reply_address(request, source)
        if request.method == "CANCEL":
            self._receive_cancel(request, source, reply_to)
        elif len(self._servers) >= MAX_SERVER_TRANSACTIONS:
            self.reply_statelessly(request, source, 503)
        elif (handle := self._handler.handle_stray_request(request, source)) is not None:
            handle(self._open_server(request, source, reply_to))

    def _open_server(self, request: SipRequest, source: Peer, reply_to: Peer) -> ServerTransaction:
        transaction = ServerTransaction(self, request, source, reply_to)
        self._servers[transaction.key] = transaction
        return transaction

    def _receive_cancel(self, request: SipRequest, source: Peer, reply_to: Peer) -> None:
        invite = self._servers.get(find_server_key(request, "INVITE"))
        if invite is None:
            self.reply_statelessly(request, source, 481)
            return
        self._open_server(request, source, reply_to).respond(self.build_reply(request, 200))
        if not invite.is_final:
            self._handler.handle_cancel(invite)

    def handle_lost_connection(self, peer: Peer) -> None:
        for client in list(self._clients.values()):
            if client.peer == peer:
                client.fail(PeerUnreachable(f"the connection to {peer} was lost"))

    # Sending

    def build_reply(self, request: SipRequest, status: int, *headers: tuple[str, str]) -> SipResponse:
        """Build a final response with the name of this gateway."""
        return build_response(request, status, tag=secrets.token_hex(8), headers=[("Server", USER_AGENT), *headers])

    def reply_statelessly(
        self, request: SipRequest, source: Peer, status: int, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Send a response that is not repeated, so that the request takes no memory (RFC 3261, section 8.2.7)."""
        reply_to = find_reply_address(request, source)
        # The same tag for a repeated request, without remembering it.
        tag = f"stateless-{hash((request.call_id, request.headers.get_first('cseq'))) & 0xFFFFFFFF:x}"
        self.transmit(build_response(request, status, tag=tag, headers=headers), reply_to, ignore)

    def transmit(
        self, message: SipRequest | SipResponse, peer: Peer, on_failure: Callable[[PeerUnreachable], None]
    ) -> None:
        data = bytes(message)
        self._trace("out", peer, message, data)
        self._transports.send(data, peer, on_failure)

    def send_request(
        self,
        request: SipRequest,
        peer: Peer,
        on_response: Callable[[SipResponse], None],
        on_failure: Callable[[PeerUnreachable], None],
    ) -> ClientTransaction:
        """Send a request in a transaction; a CANCEL has its Via already. Raises `PeerUnreachable`."""
        if request.method != "CANCEL":
            self.stamp_via(request, peer)
        client = ClientTransaction(self, request, peer, on_response, on_failure)
        self._clients[client.key] = client
        self._handler.note_peer(peer.host)
        client.start()
        return client

    async def ask(self, request: SipRequest, peer: Peer) -> SipResponse:
        """Send a request and return its final response; raises `PeerUnreachable`."""
        final: asyncio.Future[SipResponse] = asyncio.get_running_loop().create_future()

        def take_response(response: SipResponse) -> None:
            if response.status_code >= 200 and not final.done():
                final.set_result(response)

        def take_failure(error: PeerUnreachable) -> None:
            if not final.done():
                final.set_exception(error)

        self.send_request(request, peer, take_response, take_failure)
        return await final

    async def request(
        self, state: DialogState, peer: Peer, method: str, headers: Iterable[tuple[str, str]], body: str = ""
    ) -> SipResponse:
        """Send the next request of a state, answer a challenge, also a second one after an old nonce, and return the
        final response. Raises `PeerUnreachable`.
        """
        answers: list[tuple[str, str]] = []
        for _ in range(MAX_CHALLENGES + 1):
            request = state.build_request(method, [*headers, *answers], body)
            response = await self.ask(request, peer)
            if answers and not is_stale(response):
                break
            answer = answer_challenge(response, state.credentials, request)
            if answer is None:
                break
            answers = [answer]
        return response

    def stamp_via(self, request: SipRequest, peer: Peer) -> None:
        """Put our Via with a new branch on a request; raises `PeerUnreachable`."""
        host, port = self._find_address(peer)
        branch = f"z9hG4bK{secrets.token_hex(12)}"
        value = f"SIP/2.0/{peer.transport.upper()} {format_addr(host, port)};branch={branch};rport"
        request.headers.set_single("Via", value)

    def build_contact(self, peer: Peer, user: str = "") -> str:
        """Return our Contact for a peer; raises `PeerUnreachable`."""
        host, port = self._find_address(peer)
        transport = "" if peer.transport == "udp" else f";transport={peer.transport}"
        return f"<sip:{user}{'@' if user else ''}{format_addr(host, port)}{transport}>"

    def _find_address(self, peer: Peer) -> tuple[str, int]:
        host, port = self._transports.find_own_address(peer)
        return self._advertised_host or host, port

    def send_keep_alive(self, peer: Peer) -> None:
        """Keep a NAT's binding or a connection open (RFC 5626, section 4.4.1)."""
        if self._transports.is_connected(peer):
            self._transports.send(b"\r\n\r\n", peer, ignore)

    def end_transaction(self, key: tuple[str, ...]) -> None:
        # Keys of clients have two parts, those of servers more, so that one of these does nothing.
        self._clients.pop(key, None)
        self._servers.pop(key, None)

    def _trace(
        self, direction: Literal["in", "out"], peer: Peer, message: SipRequest | SipResponse, data: bytes
    ) -> None:
        if self.trace is None:
            return
        local = ""
        with suppress(PeerUnreachable):
            local = format_addr(*self._find_address(peer))
        self.trace(TracedMessage(direction, local, peer, message.call_id or "", data))
