"""Random and mutated SIP and RTP packets at a gateway that has calls; `FUZZ_EXAMPLES` sets how many."""

import asyncio
import gc
import logging
import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from switchboard.plugin_sdk import RejectCall
from switchboard_telephony_sip.media.rtp import OutgoingStream
from switchboard_telephony_sip.signaling.peers import Peer

from tests.carriers.sip.raw_trunk import SDP
from tests.carriers.sip.small_platform import OURS, VOICE, open_small_platform
from tests.fixtures.eventually import eventually

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "150")) * 20
MOST_GROWTH = 12 * 1024 * 1024
METHODS = ("INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "MESSAGE", "REFER", "NOTIFY", "INFO", "UPDATE")
PIECES = (
    b"\r\n",
    b"\r\n\r\n",
    b"\0",
    b"\xff" * 8,
    b";",
    b",",
    b"<>",
    b'"',
    b"sip:",
    b"9" * 40,
    b"m=audio 70000 RTP/AVP 0",
)


class ErrorRecords(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def expect_no_error_logs() -> Iterator[None]:
    """Fail if a task of the gateway fails, which only its log says."""
    handler = ErrorRecords()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert handler.texts == []


def write_message(generator: random.Random, port: int, number: int) -> bytes:
    method = generator.choice(METHODS)
    body = SDP if method in ("INVITE", "UPDATE") else ""
    return (
        f"{method} sip:{OURS}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{port};branch=z9hG4bK{number}\r\n"
        f"From: <sip:+15550100001@127.0.0.1>;tag={number}\r\nTo: <sip:{OURS}@127.0.0.1>\r\nCall-ID: {number}\r\n"
        f"CSeq: 1 {method}\r\nMax-Forwards: 70\r\nContact: <sip:127.0.0.1:{port}>\r\n"
        f"Refer-To: <sip:+19005550123@127.0.0.1:{port}>\r\nContent-Type: application/sdp\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def mutate(generator: random.Random, data: bytes) -> bytes:
    for _ in range(generator.randint(0, 4)):
        start = generator.randrange(len(data) + 1)
        piece = generator.choice((*PIECES, generator.randbytes(generator.randint(1, 12))))
        data = data[:start] + piece + data[start + generator.randint(0, 20) :]
    return data


def measure_memory() -> int:
    """Return the resident bytes of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def test_mutated_messages_leave_a_gateway_as_it_was() -> None:
    """No call stays, no port, and no memory; no number is dialed; and the next call is answered."""
    generator = random.Random(11)
    with expect_no_error_logs(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", 0))
        port = sender.getsockname()[1]
        async with open_small_platform() as platform:

            async def send(count: int, first: int) -> None:
                for number in range(first, first + count):
                    message = mutate(generator, write_message(generator, port, number))
                    sender.sendto(message, ("127.0.0.1", platform.sip_port))
                    if number % 20 == 0:
                        await asyncio.sleep(0.02)  # The kernel's buffer takes no more at once.

            platform.instruction = RejectCall()  # Calls that nobody acknowledges would stay for 32 seconds.
            await send(EXAMPLES // 2, 0)
            before = measure_memory()
            await send(EXAMPLES // 2, EXAMPLES)
            assert platform.trunk.agent is not None
            gateway = Peer("udp", "127.0.0.1", platform.sip_port)
            assert await platform.trunk.agent.options(gateway, "sip:127.0.0.1") == 200, "and so all were read"
            await platform.wait_until_idle()
            assert measure_memory() - before < MOST_GROWTH
            platform.instruction = None
            telephone = await platform.trunk.call(platform.sip_port, OURS)
            assert not platform.trunk.invites, "nothing was dialed"
            await telephone.dialog.bye()
            await platform.wait_until_idle()


async def test_mutated_packets_leave_a_call_as_it_was() -> None:
    generator, stream = random.Random(12), OutgoingStream()
    with expect_no_error_logs():
        async with open_small_platform() as platform:
            _, telephone = await platform.receive_call()
            sdp = telephone.dialog.remote_sdp
            target = ("127.0.0.1", int(sdp.partition("m=audio ")[2].split()[0]))
            for number in range(EXAMPLES):
                packet = stream.pack(generator.choice((0, 8, 9, 13, 96, 101, 110, 200)), VOICE)
                stream.advance(160)
                data = generator.choice((mutate(generator, packet), generator.randbytes(generator.randint(0, 1600))))
                telephone.media._sockets.send_media(data, target)
                telephone.media._sockets.send_control(data, (target[0], target[1] + 1))
                if number % 20 == 0:
                    await asyncio.sleep(0.02)
            platform.heard.clear()
            telephone.media.play(VOICE * 200)

            async def look() -> bool:
                return VOICE[:40] in platform.heard

            await eventually(look, bool, seconds=20)
            await telephone.dialog.bye()
            await platform.wait_until_idle()
