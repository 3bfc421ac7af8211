"""Sockets of SIP: datagrams, and streams over TCP and TLS, used in both directions (RFC 3261, section 18)."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from switchboard_telephony_sip.signaling.messages import MAX_MESSAGE_BYTES
from switchboard_telephony_sip.signaling.peers import (
    ListenAddress,
    Peer,
    PeerUnreachable,
    TransportName,
    is_ip_address,
    resolve_peer,
)

CONNECT_SECONDS = 5.0
MAX_CONNECTIONS, MAX_CONNECTIONS_PER_HOST = 1000, 20
MAX_ROUTES = 1000
WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 -- compared, not bound
RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
FIRST_MESSAGE_SECONDS = 10.0
BODY_SECONDS = 10.0
MAX_BACKLOG_BYTES = 1024 * 1024
KEEP_ALIVE, KEEP_ALIVE_REPLY = b"\r\n\r\n", b"\r\n"
LENGTH = re.compile(rb"^(?:content-length|l)[ \t]*:\s*(\d{1,9})[ \t]*\r$", re.IGNORECASE | re.MULTILINE)


class SipStream:
    """One TCP or TLS connection, whose messages are framed by Content-Length (RFC 3261, section 18.3)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
        self.peer = peer
        self._reader, self._writer = reader, writer

    async def read_all(self, receive: Callable[[bytes, Peer], None]) -> None:
        """Hand over each message until the connection ends, or breaks the framing.

        A connection that sends no message within ten seconds is closed, so that scanners hold none.
        """
        try:
            async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                data = await self._read_message()
            while data is not None:
                receive(data, self.peer)
                data = await self._read_message()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return

    async def _read_message(self) -> bytes | None:
        """Return the next message, or None for one that is too long; answers keep-alives (RFC 5626, section 4.4.1)."""
        head = b""
        while not head:
            found = await self._reader.readuntil(b"\r\n\r\n")
            head = found.lstrip(b"\r\n")
            if found == KEEP_ALIVE:
                self.write(KEEP_ALIVE_REPLY)
        declared = LENGTH.search(head)
        length = int(declared[1]) if declared else 0
        if len(head) + length > MAX_MESSAGE_BYTES:
            return None
        async with asyncio.timeout(BODY_SECONDS):
            return head + await self._reader.readexactly(length)

    def write(self, data: bytes) -> None:
        """Queue bytes; a peer that does not read is disconnected."""
        if self._writer.transport.get_write_buffer_size() > MAX_BACKLOG_BYTES:
            self._writer.transport.abort()
        elif not self._writer.is_closing():
            self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


class TransportUser(Protocol):
    """The receiver of what arrives."""

    def receive_data(self, data: bytes, source: Peer) -> None: ...

    def is_welcome(self, host: str) -> bool:
        """Return whether to read what this address sends."""

    def note_peer(self, host: str) -> None:
        """Take note of the address of a peer to which this gateway has connected."""

    def handle_lost_connection(self, peer: Peer) -> None:
        """Fail everything that waits for answers from this peer."""


class SipTransports:
    """All listening sockets and connections of a user agent."""

    def __init__(
        self, listeners: Sequence[ListenAddress], user: TransportUser, *, trusted_certificates: str | None = None
    ) -> None:
        self._listeners = listeners
        self._user = user
        self._client_context = ssl.create_default_context(cafile=trusted_certificates)
        self._datagrams: dict[socket.AddressFamily, asyncio.DatagramTransport] = {}
        self._servers: list[asyncio.Server] = []
        self._streams: dict[Peer, SipStream] = {}
        self._connecting: dict[Peer, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._bound: dict[tuple[TransportName, socket.AddressFamily], tuple[str, int]] = {}
        self._routes: dict[str, str] = {}

    async def start(self) -> None:
        """Bind every listener; raises `OSError` if an address is not free."""
        for listener in self._listeners:
            if listener.transport == "udp":
                await self._listen_for_datagrams(listener)
            else:
                await self._listen_for_streams(listener)

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for transport in self._datagrams.values():
            transport.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in set(self._streams.values()):
            stream.close()
        self._streams.clear()

    async def _listen_for_datagrams(self, listener: ListenAddress) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self._user), local_addr=(listener.host, listener.port)
        )
        own: socket.socket = transport.get_extra_info("socket")
        # A burst of calls must not overflow the kernel's default of 200 KiB while this process is busy.
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._datagrams[own.family] = transport
        self._bound["udp", own.family] = own.getsockname()[:2]

    async def _listen_for_streams(self, listener: ListenAddress) -> None:
        context = None
        if listener.transport == "tls":
            if listener.certificate is None:
                raise ValueError("TLS needs a certificate")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(listener.certificate.chain, listener.certificate.private_key)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            address = writer.get_extra_info("peername")
            if address is None:
                writer.close()
                return
            peer = Peer(listener.transport, address[0], address[1])
            crowd = sum(peer.host == other.host for other in self._streams)
            is_full = crowd >= MAX_CONNECTIONS_PER_HOST or len(self._streams) >= MAX_CONNECTIONS
            if not self._user.is_welcome(peer.host) or is_full:
                writer.close()
                return
            await self._run_stream(SipStream(reader, writer, peer))

        server = await asyncio.start_server(accept, listener.host, listener.port, ssl=context, limit=MAX_MESSAGE_BYTES)
        self._servers.append(server)
        own = server.sockets[0]
        self._bound[listener.transport, own.family] = own.getsockname()[:2]

    async def _run_stream(self, stream: SipStream, *aliases: Peer) -> None:
        """Read a connection to its end, under the peer's address and its other names."""
        names = (stream.peer, *aliases)
        for name in names:
            self._streams[name] = stream
        try:
            await stream.read_all(self._user.receive_data)
        finally:
            stream.close()
            for name in names:
                if self._streams.get(name) is stream:
                    del self._streams[name]
                self._user.handle_lost_connection(name)

    def send(self, data: bytes, peer: Peer, on_failure: Callable[[PeerUnreachable], None]) -> None:
        """Send one message; `on_failure` is called if it is known not to arrive."""
        if not 0 < peer.port < 65536:
            on_failure(PeerUnreachable(f"{peer} is not an address"))
        elif peer.transport == "udp" and not is_ip_address(peer.host):
            self._spawn(self._resolve_and_send(data, peer, on_failure))
        elif peer.transport == "udp":
            self._send_datagram(data, peer, on_failure)
        elif (stream := self._streams.get(peer)) is not None:
            stream.write(data)
        else:
            self._spawn(self._send_on_new_stream(data, peer, on_failure))

    def list_addresses(self) -> list[Peer]:
        """Return the addresses of the listeners, with the port that the kernel chose for port 0."""
        return [Peer(transport, host, port) for (transport, _), (host, port) in self._bound.items()]

    def is_connected(self, peer: Peer) -> bool:
        return peer.transport == "udp" or peer in self._streams

    def _send_datagram(self, data: bytes, peer: Peer, on_failure: Callable[[PeerUnreachable], None]) -> None:
        transport = self._datagrams.get(family_of(peer.host))
        if transport is None or transport.is_closing():
            on_failure(PeerUnreachable(f"the gateway does not listen on UDP with the IP version of {peer.host}"))
            return
        transport.sendto(data, (peer.host, peer.port))

    async def _resolve_and_send(self, data: bytes, peer: Peer, on_failure: Callable[[PeerUnreachable], None]) -> None:
        """Send a datagram to a Contact or route that is a name; the socket itself would wait for the name server."""
        try:
            self._send_datagram(data, await resolve_peer(peer), on_failure)
        except PeerUnreachable as error:
            on_failure(error)

    async def _send_on_new_stream(self, data: bytes, peer: Peer, on_failure: Callable[[PeerUnreachable], None]) -> None:
        # Messages that wait for the same connection share one attempt to connect.
        attempt = self._connecting.get(peer)
        if attempt is None:
            attempt = self._connecting[peer] = self._spawn(self._connect(peer))
        try:
            await asyncio.shield(attempt)
        except PeerUnreachable as error:
            on_failure(error)
            return
        if (stream := self._streams.get(peer)) is None:
            on_failure(PeerUnreachable(f"the connection to {peer} was lost"))
        else:
            stream.write(data)

    async def _connect(self, peer: Peer) -> None:
        secure = peer.transport == "tls"
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    peer.host, peer.port, limit=MAX_MESSAGE_BYTES, ssl=self._client_context if secure else None
                )
        except (OSError, TimeoutError, UnicodeError, ValueError) as error:
            raise PeerUnreachable(f"no connection to {peer}: {error or 'timeout'}") from error
        finally:
            del self._connecting[peer]
        address = writer.get_extra_info("peername") or (peer.host, peer.port)
        stream = SipStream(reader, writer, Peer(peer.transport, address[0], address[1]))
        self._streams[peer] = stream
        self._user.note_peer(stream.peer.host)
        self._spawn(self._run_stream(stream, peer))

    def _spawn(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)
        return task

    def _finish_task(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # _send_on_new_stream reports it.

    def find_own_address(self, peer: Peer) -> tuple[str, int]:
        """Return the address of ours which a peer can answer, behind a wildcard the one that the kernel would use.

        Raises `PeerUnreachable` if no listener has the peer's transport.
        """
        wanted = family_of(peer.host) if is_ip_address(peer.host) else None
        for (transport, family), (host, port) in self._bound.items():
            if transport == peer.transport and wanted in (family, None):
                return (self._find_route(peer) if host in WILDCARDS else host), port
        raise PeerUnreachable(f"the gateway does not listen on {peer.transport} with the IP version of {peer.host}")

    def _find_route(self, peer: Peer) -> str:
        if (known := self._routes.get(peer.host)) is not None:
            return known
        if not is_ip_address(peer.host):
            return socket.gethostname()
        with socket.socket(family_of(peer.host), socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((peer.host, peer.port))  # Sends nothing for datagrams.
            except OSError as error:
                raise PeerUnreachable(f"no route to {peer.host}: {error}") from error
            own = str(probe.getsockname()[0])
        if len(self._routes) >= MAX_ROUTES:
            self._routes.clear()
        self._routes[peer.host] = own
        return own


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, user: TransportUser) -> None:
        self._user = user

    def datagram_received(self, data: bytes, address: tuple[str, int] | tuple[str, int, int, int]) -> None:
        self._user.receive_data(data, Peer("udp", address[0], address[1]))


def family_of(host: str) -> socket.AddressFamily:
    """Return the IP version of an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
