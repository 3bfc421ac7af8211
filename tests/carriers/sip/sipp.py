"""SIPp: a scenario of SIP messages, with audio that it sends by the clock."""

from pathlib import Path

from tests.fixtures.debian_tools import find_tool, run_to_end
from tests.fixtures.free_ports import find_free_port, find_free_ports

CALLS_IN = """<?xml version="1.0" encoding="ISO-8859-1" ?>
<scenario name="a call in which the platform hangs up">
  <send retrans="500"><![CDATA[
INVITE sip:{number}@[remote_ip]:[remote_port] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:{caller}@[local_ip]:[local_port]>;tag=[call_number]
To: <sip:{number}@[remote_ip]:[remote_port]>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:{caller}@[local_ip]:[local_port]>
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP[local_ip_type] [local_ip]
s=-
c=IN IP[media_ip_type] [media_ip]
t=0 0
m=audio [rtpstream_audio_port] RTP/AVP 0
a=rtpmap:0 PCMU/8000
]]></send>
  <recv response="100" optional="true"/>
  <recv response="180" optional="true"/>
  <recv response="200" rrs="true"/>
  <send><![CDATA[
ACK [next_url] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: <sip:{caller}@[local_ip]:[local_port]>;tag=[call_number]
[last_To:]
Call-ID: [call_id]
CSeq: 1 ACK
Max-Forwards: 70
Content-Length: 0

]]></send>
  <nop><action><exec rtp_stream="{audio},1,0,PCMU/8000"/></action></nop>
  <recv request="BYE" timeout="90000"/>
  <send><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>
</scenario>
"""


async def call_with_sipp(folder: Path, *, caller: str, number: str, gateway_port: int, mulaw: bytes) -> None:
    """Call a number, send the audio without telephone events, and wait until the platform hangs up."""
    program = find_tool("sipp", package="sip-tester")
    folder.mkdir()
    (folder / "said.ul").write_bytes(mulaw)
    scenario = folder / "scenario.xml"
    scenario.write_text(CALLS_IN.format(caller=caller, number=number, audio=folder / "said.ul"))
    options = {
        "-sf": scenario,
        "-m": 1,
        "-i": "127.0.0.1",
        "-p": find_free_port(),
        "-mi": "127.0.0.1",
        "-mp": find_free_ports(10),
        "-timeout": "120s",
        "-error_file": folder / "errors.log",
    }
    arguments = [str(part) for pair in options.items() for part in pair]
    await run_to_end(
        program, *arguments, "-trace_err", "-nostdin", f"127.0.0.1:{gateway_port}", log=folder / "sipp.log"
    )
