"""Calls on one gateway core: SIPp places 19 a second, each stays until so many are live, and both sides send audio.

The gateway of `bench.sip_gateway_server` has a core of its own. On the other core are SIPp, the far end's audio, and a
platform that answers the gateway's callbacks and sends back on each media WebSocket what it hears. The lateness of a
packet is the kernel's time of its arrival beside its RTP timestamp, above the earliest packet of its call. Processor
time includes the calls' beginnings and ends; memory is what the calls add to a gateway without any.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import uvloop
from aiohttp import WSMsgType, web
from switchboard.plugin_sdk import ConnectMedia
from switchboard.plugin_sdk.audio import encode_audio
from switchboard_telephony_sip.callbacks import write_callback
from switchboard_telephony_sip.media.audio_codecs import CODECS
from switchboard_telephony_sip.settings import CodecName

from bench._counters import cpu_seconds, rss_megabytes
from bench._sip_audio import FarAudio
from bench._turn_recordings import load_recordings
from bench.costs import find_port

GATEWAY_CORE, OTHER_CORE = 0, 1
CALLS_PER_SECOND: Final = 19
WARM_SECONDS, COUNTED_SECONDS = 5, 20
START_SECONDS: Final = 20
FIRST_RTP: Final = 20_000
ROWS: Final[Sequence[tuple[int, CodecName]]] = ((60, "PCMU"), (60, "PCMA"), (60, "G722"), (120, "PCMU"))
PAYLOAD_TYPES: Final = {"PCMU": 0, "PCMA": 8, "G722": 9}
SCENARIO: Final = """<?xml version="1.0" encoding="ISO-8859-1" ?>
<scenario name="calls with audio">
  <send retrans="500"><![CDATA[
INVITE sip:+15550100200@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:+15550100001@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:+15550100200@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:+15550100001@[local_ip]:[local_port]>
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio {port} RTP/AVP {payload_type}
]]></send>
  <recv response="100" optional="true"/>
  <recv response="180" optional="true"/>
  <recv response="200" rrs="true"/>
  <send><![CDATA[
ACK [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:+15550100001@[local_ip]:[local_port]>;tag=[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: 1 ACK
Max-Forwards: 70
Content-Length: 0

]]></send>
  <pause milliseconds="{milliseconds}"/>
  <send retrans="500"><![CDATA[
BYE [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:+15550100001@[local_ip]:[local_port]>;tag=[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: 2 BYE
Max-Forwards: 70
Content-Length: 0

]]></send>
  <recv response="200"/>
</scenario>
"""


async def reply_to_notice(request: web.Request) -> web.Response:
    """Connect every call that comes in to the media socket."""
    reply = write_callback(ConnectMedia(str(request.url.with_path("/media"))))
    return web.Response(body=reply, content_type="application/json")


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Send back what is heard."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    with suppress(ConnectionError):  # the gateway has hung up
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await socket.send_bytes(message.data)
    return socket


@asynccontextmanager
async def run_platform() -> AsyncIterator[str]:
    """Serve callbacks and media, and yield the address of the callbacks."""
    application = web.Application()
    application.router.add_post("/events/{path}", reply_to_notice)
    application.router.add_get("/media", echo)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/events"
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Gateway:
    """The gateway's process."""

    process: asyncio.subprocess.Process
    sip_port: int

    @property
    def pid(self) -> int:
        return self.process.pid


@asynccontextmanager
async def run_gateway(events_url: str) -> AsyncIterator[Gateway]:
    """Run the gateway on its core."""
    sip_port, control_port = find_port(), find_port()
    command = ["taskset", "-c", str(GATEWAY_CORE), sys.executable, "-m", "bench.sip_gateway_server"]
    arguments = [str(sip_port), str(control_port), str(FIRST_RTP), events_url]
    process = await asyncio.create_subprocess_exec(*command, *arguments, stdout=asyncio.subprocess.DEVNULL)
    try:
        await wait_for_listener(control_port)
        yield Gateway(process, sip_port)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def wait_for_listener(port: int) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                return


async def place_calls(gateway: Gateway, far: FarAudio, payload_type: int, calls: int, placed: int) -> str:
    """Place so many calls with SIPp, and return what it counted as failed, empty if none."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.xml"
        milliseconds = round(calls * 1000 / CALLS_PER_SECOND)
        scenario.write_text(SCENARIO.format(port=far.port, payload_type=payload_type, milliseconds=milliseconds))
        command = ["sipp", f"127.0.0.1:{gateway.sip_port}", "-sf", str(scenario), "-nostdin", "-i", "127.0.0.1"]
        command += ["-p", str(find_port()), "-r", str(CALLS_PER_SECOND), "-m", str(placed), "-l", str(calls + 10)]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        return "" if await process.wait() == 0 else f"SIPp ended with {process.returncode}: calls failed"


async def measure_row(calls: int, codec: CodecName) -> str:
    """Run one row and format it."""
    speech = encode_audio(load_recordings()[0].samples, "mulaw")
    encoder = CODECS[codec].make()
    payloads = [encoder.encode(speech[start : start + 160]) for start in range(0, len(speech) - 159, 160)]
    far = FarAudio(PAYLOAD_TYPES[codec], payloads)
    far.start()
    warm = round(calls / CALLS_PER_SECOND) + WARM_SECONDS
    async with run_platform() as events_url, run_gateway(events_url) as gateway:
        await place_calls(gateway, far, PAYLOAD_TYPES[codec], 1, 5)
        empty = rss_megabytes(gateway.pid)
        placed = (warm + COUNTED_SECONDS) * CALLS_PER_SECOND
        placing = asyncio.create_task(place_calls(gateway, far, PAYLOAD_TYPES[codec], calls, placed))
        await asyncio.sleep(warm)
        far.finished.clear()
        began, spent, live = time.monotonic(), cpu_seconds(gateway.pid), []
        while time.monotonic() - began < COUNTED_SECONDS - 1:
            live.append(far.live)
            await asyncio.sleep(0.5)
        share = (cpu_seconds(gateway.pid) - spent) / (time.monotonic() - began) * 100
        memory = rss_megabytes(gateway.pid) - empty
        failure = await placing
    far.close()
    lateness = [late for call in far.finished for late in call.measure_lateness()]
    p50, p99, most = np.percentile(lateness, (50, 99, 100))
    mean = sum(live) / len(live)
    row = f"| {mean:.0f} | {codec} | {p50:.1f} | {p99:.1f} | {most:.1f} | {share:.1f} | {share / mean:.2f} |"
    return f"{row} {memory / mean:.2f} |{failure}"


def run() -> None:
    """Print a table with a line for each number of calls and codec."""
    if shutil.which("sipp") is None:
        sys.exit("this benchmark needs SIPp: apt-get install sip-tester")
    os.sched_setaffinity(0, {OTHER_CORE})
    print("| calls | codec | lateness ms, p50 | p99 | most | % of a core | % a call | MB a call |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for calls, codec in ROWS:
        print(uvloop.run(measure_row(calls, codec)), flush=True)
