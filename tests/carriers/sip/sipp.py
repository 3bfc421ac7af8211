"""SIPp: scenarios of SIP messages, with audio that it sends by the clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fixtures.debian_tools import find_tool, run_program, run_to_end
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port, find_free_ports

SCENARIO = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n<scenario name="a call">\n{steps}\n</scenario>\n'
SDP = """v=0
o=- {version} {version} IN IP[local_ip_type] [local_ip]
s=-
c=IN IP[media_ip_type] [media_ip]
t=0 0
m=audio [rtpstream_audio_port] RTP/AVP {payload_type}
a=rtpmap:{payload_type} {codec}/8000
"""
CALLER = """Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:{caller}@[local_ip]:[local_port]>;tag=[call_number]
{to}
Call-ID: [call_id]
CSeq: {sequence} {method}
Contact: <sip:{caller}@[local_ip]:[local_port]>
Max-Forwards: 70
"""
CALLEE = """[last_Via:]
[last_From:]
[last_To:];tag=[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: {contact}
"""
BYE = """  <recv request="BYE" timeout="90000"/>
  <send><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>"""
OWN_CONTACT = "<sip:[local_ip]:[local_port]>"
PCMU, PCMA = (0, "PCMU"), (8, "PCMA")


def offer(
    caller: str, number: str, *, sequence: int = 1, codec: tuple[int, str] = PCMU, description: str | None = None
) -> str:
    """Send an INVITE, the first or a later one, and the ACK of its answer, which must have the codec.

    `description` is the session of a peer with audio of its own.
    """
    payload_type, name = codec
    first = sequence == 1
    to = f"To: <sip:{number}@[remote_ip]:[remote_port]>" if first else "[last_To:]"
    target = f"sip:{number}@[remote_ip]:[remote_port]" if first else "[next_url]"
    head = CALLER.format(caller=caller, to=to, sequence=sequence, method="INVITE")
    description = description or SDP.format(version=sequence, payload_type=payload_type, codec=name)
    acknowledgment = CALLER.format(caller=caller, to="[last_To:]", sequence=sequence, method="ACK")
    return f"""  <send retrans="500"><![CDATA[
INVITE {target} SIP/2.0
{head}Content-Type: application/sdp
Content-Length: [len]

{description}]]></send>
  <recv response="100" optional="true"/>
  <recv response="180" optional="true"/>
  <recv response="200" rrs="true">
    <action><ereg regexp="RTP/AVP {payload_type}" search_in="body" check_it="true" assign_to="{sequence}"/></action>
  </recv>
  <Reference variables="{sequence}"/>
  <send><![CDATA[
ACK [next_url] SIP/2.0
{acknowledgment}Content-Length: 0

]]></send>"""


def respond(status: str, *, retransmit: bool = False, described: bool = False, contact: str = OWN_CONTACT) -> str:
    """Respond to an INVITE, `described` with PCMU as the only codec."""
    body = f"\n{SDP.format(version=1, payload_type=0, codec='PCMU')}" if described else "\n"
    kind = "Content-Type: application/sdp\n" if described else ""
    return f"""  <send{' retrans="500"' if retransmit else ""}><![CDATA[
SIP/2.0 {status}
{CALLEE.format(contact=contact)}{kind}Content-Length: [len]
{body}]]></send>"""


def stream(path: Path, codec: tuple[int, str] = PCMU) -> str:
    """Send a file of encoded audio from now on."""
    payload_type, name = codec
    return f'  <nop><action><exec rtp_stream="{path},1,{payload_type},{name}/8000"/></action></nop>'


def pause(seconds: float) -> str:
    return f'  <pause milliseconds="{round(seconds * 1000)}"/>'


def _list_arguments(folder: Path, steps: list[str], *, port: int) -> list[str]:
    folder.mkdir(exist_ok=True)
    scenario = folder / "scenario.xml"
    scenario.write_text(SCENARIO.format(steps="\n".join(steps)))
    options = {
        "-sf": scenario,
        "-i": "127.0.0.1",
        "-p": port,
        "-mi": "127.0.0.1",
        "-mp": find_free_ports(10),
        "-timeout": "120s",
        "-error_file": folder / "errors.log",
    }
    return [*(str(part) for pair in options.items() for part in pair), "-trace_err", "-nostdin"]


async def run_scenario(folder: Path, steps: list[str], *, gateway_port: int) -> None:
    """Run a caller's scenario, and wait for its end. Raises `AssertionError` if it fails."""
    arguments = _list_arguments(folder, steps, port=find_free_port())
    program = find_tool("sipp", package="sip-tester")
    await run_to_end(program, *arguments, "-m", "1", f"127.0.0.1:{gateway_port}", log=folder / "sipp.log")


@asynccontextmanager
async def run_callee(folder: Path, steps: list[str], *, port: int) -> AsyncIterator[None]:
    """Take calls with a scenario within the block."""
    arguments = _list_arguments(folder, ['  <recv request="INVITE" rrs="true"/>', *steps], port=port)
    async with run_program(find_tool("sipp", package="sip-tester"), *arguments, log=folder / "sipp.log"):
        await eventually(lambda: _has_udp_port(port))
        yield


async def _has_udp_port(port: int) -> bool:
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(int(line.split()[1].partition(":")[2], 16) == port for line in lines)


async def call_with_sipp(folder: Path, *, caller: str, number: str, gateway_port: int, mulaw: bytes) -> None:
    """Call a number, send the audio without telephone events, and wait until the platform hangs up."""
    folder.mkdir()
    said = folder / "said.ul"
    said.write_bytes(mulaw)
    await run_scenario(folder, [offer(caller, number), stream(said), BYE], gateway_port=gateway_port)
