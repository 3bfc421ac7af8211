"""A trunk's messages at awkward moments, through a gateway: cancellations, redirections, and changes of the audio."""

import asyncio
import socket
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from aiosipua.message import SipRequest
from switchboard.plugin_sdk import CalleeRinging, CallEnded, IncomingCall
from switchboard.plugin_sdk.audio import decode_audio
from switchboard_telephony_sip.media.rtp import OutgoingStream
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import MediaPreferences

from tests.carriers.sip.far_end import Telephone
from tests.carriers.sip.raw_trunk import SDP, RawTrunk, open_raw_trunk
from tests.carriers.sip.small_platform import OURS, VOICE, SmallPlatform, open_small_platform
from tests.fixtures.eventually import eventually

PERSON = "+15550100001"


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SmallPlatform]:
    async with open_small_platform() as opened:
        yield opened


@pytest_asyncio.fixture
async def raw() -> AsyncIterator[tuple[SmallPlatform, RawTrunk]]:
    """A platform whose trunk is played by the test."""
    async with (
        open_raw_trunk() as trunk,
        open_small_platform(hosts=[f"127.0.0.1:{trunk.port}"], username="office") as opened,
    ):
        yield opened, trunk


@pytest.mark.parametrize("moment", ["before 100", "after 100", "after 180", "crossing 200"])
async def test_the_platform_gives_a_call_up(raw: tuple[SmallPlatform, RawTrunk], moment: str) -> None:
    platform, trunk = raw
    invited: list[SipRequest] = []

    def react(request: SipRequest) -> None:
        if request.method == "INVITE" and not invited:
            invited.append(request)
            if moment != "before 100":
                trunk.respond(request, 180 if moment == "after 180" else 100)
        elif request.method == "CANCEL":
            if moment == "crossing 200":
                trunk.respond(invited[0], 200, SDP)
                trunk.respond(request, 200)
            else:
                trunk.respond(request, 200)
                trunk.respond(invited[0], 487)
        elif request.method == "BYE":
            trunk.respond(request, 200)

    trunk.on_request = react
    call_id = await platform.place(PERSON)
    invite = await trunk.wait_for("INVITE")
    if moment == "after 180":
        await platform.wait_for(CalleeRinging)
    await platform.provider.hang_up(call_id)
    assert (await platform.wait_for_end()).outcome == "canceled"
    if moment == "before 100":
        assert "CANCEL" not in trunk.list_methods(), "a CANCEL before any response would come before its INVITE"
        trunk.respond(invite, 180)
    await trunk.wait_for("CANCEL")
    await trunk.wait_for("ACK")
    if moment == "crossing 200":
        await trunk.wait_for("BYE")
    assert ("BYE" in trunk.list_methods()) == (moment == "crossing 200")
    await platform.wait_until_idle()


def write_request(trunk: RawTrunk, method: str, *, branch: str, number: int = 1, tag: str = "", sdp: str = "") -> bytes:
    kind = "Content-Type: application/sdp\r\n" if sdp else ""
    return (
        f"{method} sip:{OURS}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{trunk.port};branch=z9hG4bK{branch}\r\n"
        f"From: <sip:{PERSON}@127.0.0.1>;tag=a\r\nTo: <sip:{OURS}@127.0.0.1>{tag}\r\nCall-ID: one\r\n"
        f"CSeq: {number} {method}\r\nMax-Forwards: 70\r\nContact: <sip:127.0.0.1:{trunk.port}>\r\n"
        f"{kind}Content-Length: {len(sdp)}\r\n\r\n{sdp}"
    ).encode()


@pytest.mark.parametrize("moment", ["at once", "after 100", "after 180", "crossing 200"])
async def test_a_caller_gives_a_call_up(raw: tuple[SmallPlatform, RawTrunk], moment: str) -> None:
    platform, trunk = raw
    gateway = ("127.0.0.1", platform.sip_port)
    if moment in ("at once", "after 100"):
        platform.may_answer.clear()
    if moment == "after 180":
        platform.may_connect.clear()
    trunk.send(write_request(trunk, "INVITE", branch="1", sdp=SDP), gateway)
    if moment == "after 100":
        await trunk.wait_for_response("INVITE", 100)
        await platform.wait_for(IncomingCall)
    elif moment == "after 180":
        await trunk.wait_for_response("INVITE", 180)
    elif moment == "crossing 200":
        answer = await trunk.wait_for_response("INVITE", 200)
    trunk.send(write_request(trunk, "CANCEL", branch="1"), gateway)
    await trunk.wait_for_response("CANCEL", 200)
    if moment == "crossing 200":  # A CANCEL has no effect after the answer.
        tag = ";tag=" + (answer.headers.get_first("to") or "").partition(";tag=")[2]
        trunk.send(write_request(trunk, "ACK", branch="2", tag=tag), gateway)
        trunk.send(write_request(trunk, "BYE", branch="3", number=2, tag=tag), gateway)
        await trunk.wait_for_response("BYE", 200)
    else:
        await trunk.wait_for_response("INVITE", 487)
    platform.may_answer.set()
    platform.may_connect.set()
    if platform.events:
        await platform.wait_for(CallEnded)
    await platform.wait_until_idle()


async def test_an_answer_that_nobody_acknowledges_starts_no_audio(raw: tuple[SmallPlatform, RawTrunk]) -> None:
    """A platform that gets a stop without a start would run a call that nobody has heard."""
    platform, trunk = raw
    trunk.on_request = lambda request: trunk.respond(request, 200)
    trunk.send(write_request(trunk, "INVITE", branch="1", sdp=SDP), ("127.0.0.1", platform.sip_port))
    await trunk.wait_for("BYE")
    assert (await platform.wait_for_end()).outcome == "canceled"
    await platform.wait_until_idle()
    assert len(platform.sockets) == 1
    assert platform.messages == []


async def test_an_unusable_answer_in_the_acknowledgment_ends_the_call(raw: tuple[SmallPlatform, RawTrunk]) -> None:
    """The answer to an INVITE without an offer is in the ACK, after which only a BYE can refuse the call."""
    platform, trunk = raw
    trunk.on_request = lambda request: trunk.respond(request, 200)
    gateway = ("127.0.0.1", platform.sip_port)
    trunk.send(write_request(trunk, "INVITE", branch="1"), gateway)
    offered = await trunk.wait_for_response("INVITE", 200)
    tag = ";tag=" + (offered.headers.get_first("to") or "").partition(";tag=")[2]
    trunk.send(write_request(trunk, "ACK", branch="2", tag=tag, sdp=SDP.replace("PCMU", "G729")), gateway)
    await trunk.wait_for("BYE")
    ended = await platform.wait_for_end()
    assert (ended.outcome, ended.error_code) == ("failed", "488")
    await platform.wait_until_idle()


async def test_a_caller_without_a_common_codec_is_refused(raw: tuple[SmallPlatform, RawTrunk]) -> None:
    platform, trunk = raw
    offer = write_request(trunk, "INVITE", branch="1", sdp=SDP.replace("PCMU", "G729"))
    trunk.send(offer, ("127.0.0.1", platform.sip_port))
    await trunk.wait_for_response("INVITE", 488)
    ended = await platform.wait_for_end()
    assert (ended.outcome, ended.error_code) == ("failed", "488")
    assert "no audio with a supported codec" in (ended.error_message or "")
    await platform.wait_until_idle()


async def test_early_media_comes_before_the_answer(raw: tuple[SmallPlatform, RawTrunk]) -> None:
    """An announcement of the trunk before the answer counts as ringing, and the call is answered by its 200."""
    platform, trunk = raw

    def react(request: SipRequest) -> None:
        if request.method == "INVITE":
            trunk.respond(request, 183, SDP)
        elif request.method == "BYE":
            trunk.respond(request, 200)

    trunk.on_request = react
    call_id = await platform.place(PERSON)
    await platform.wait_for(CalleeRinging)
    assert not platform.sockets
    trunk.respond(await trunk.wait_for("INVITE"), 200, SDP)
    await platform.wait_for_message("start")
    await platform.provider.hang_up(call_id)
    assert (await platform.wait_for_end()).outcome == "completed"
    await platform.wait_until_idle()


@pytest.mark.parametrize(
    ("contact", "is_followed"),
    [
        (
            f"sip:{PERSON}@127.0.0.1:{{port}};user=phone;method=INVITE?Subject=moved&P-Asserted-Identity=sip%3A1%40x",
            True,
        ),
        ("sip:+19005550123@127.0.0.1:{port}", False),
        (f"sip:{PERSON};phone-context=x@127.0.0.1:{{port}}", False),
    ],
)
async def test_a_redirection_is_followed_to_the_same_number_only(
    raw: tuple[SmallPlatform, RawTrunk], contact: str, is_followed: bool
) -> None:
    platform, trunk = raw
    async with open_raw_trunk() as other:
        other.on_request = lambda request: other.respond(request, 486) if request.method == "INVITE" else None

        def react(request: SipRequest) -> None:
            if request.method == "INVITE":
                trunk.respond(request, 302, headers=[("Contact", f"<{contact.format(port=other.port)}>")])

        trunk.on_request = react
        await platform.place(PERSON)
        ended = await platform.wait_for_end()
        assert (ended.outcome, ended.error_code) == (("busy", "486") if is_followed else ("failed", "302"))
        assert ("INVITE" in other.list_methods()) == is_followed
        contacts = [request.headers.get_first("contact") for request in (*trunk.requests[:1], *other.requests[:1])]
        assert set(contacts) == {f"<sip:office@127.0.0.1:{platform.sip_port}>"}
        assert {(request.uri, request.headers.get_first("subject")) for request in other.requests} <= {
            (f"sip:{PERSON}@127.0.0.1:{other.port};user=phone", None)
        }
    await platform.wait_until_idle()


async def test_a_call_is_held_and_changes_its_codec(platform: SmallPlatform) -> None:
    _, telephone = await platform.receive_call()

    async def offer(direction: str, codecs: str) -> str:
        port = telephone.media.create_offer().partition("m=audio ")[2].split()[0]
        sdp = SDP.partition("m=")[0] + f"m=audio {port} RTP/AVP {codecs}\r\n"
        answer = await telephone.dialog.reinvite(f"{sdp}a={direction}\r\n")
        telephone.media.accept_answer(answer)
        return answer

    assert "a=recvonly" in await offer("sendonly", "0")
    assert "a=inactive" in await offer("inactive", "0")
    answer = await offer("sendrecv", "8")
    assert "PCMA" in answer
    assert "a=sendrecv" in answer
    platform.heard.clear()
    telephone.media.play(VOICE * 50)

    async def look() -> float:
        return float(np.abs(decode_audio(bytes(platform.heard), "mulaw")).max()) if platform.heard else 0.0

    await eventually(look, lambda loudest: loudest > 1000, seconds=20)
    await offer("inactive", "8")
    await accept_renewed_offer(platform, telephone)
    assert not any(isinstance(event, CallEnded) for event in platform.events)


async def accept_renewed_offer(platform: SmallPlatform, telephone: Telephone) -> None:
    """Send a re-INVITE without an offer, answer in the ACK at another port with G.722, and hear the platform there."""
    state, endpoint = telephone.dialog.state, telephone.dialog.endpoint
    hop = state.find_next_hop()
    response = await endpoint.ask(state.build_request("INVITE", [telephone.dialog.build_contact()]), hop)
    assert "a=sendrecv" in response.text
    media = await MediaSession.open(platform.trunk.place, MediaPreferences(["G722"]))
    ack = state.build_request(
        "ACK", [("Content-Type", "application/sdp")], media.answer(response.text), cseq=state.local_cseq
    )
    endpoint.stamp_via(ack, hop)
    endpoint.transmit(ack, hop, lambda _: None)
    heard = bytearray()
    media.on_audio = heard.extend

    async def look() -> int:
        await platform.sockets[0].send_bytes(VOICE * 5)
        return len(set(heard))

    await eventually(look, lambda values: values > 1, seconds=20)
    await media.close()


async def test_the_audio_follows_the_answer_to_a_refresh(raw: tuple[SmallPlatform, RawTrunk]) -> None:
    """A trunk without UPDATE gets a re-INVITE at half of the session's interval, and answers from another address."""
    platform, trunk = raw
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as moved:
        moved.bind(("127.0.0.1", 0))
        moved.setblocking(False)
        answers = iter((SDP, SDP.replace("audio 9", f"audio {moved.getsockname()[1]}")))

        def react(request: SipRequest) -> None:
            if request.method == "INVITE":
                trunk.respond(request, 200, next(answers), [("Session-Expires", "90;refresher=uac")])
            elif request.method == "BYE":
                trunk.respond(request, 200)

        trunk.on_request = react
        call_id = await platform.place(PERSON)
        await trunk.wait_for("INVITE", count=2)
        async with asyncio.timeout(20):
            assert await asyncio.get_running_loop().sock_recv(moved, 2048)
    await platform.provider.hang_up(call_id)
    await platform.wait_until_idle()


async def test_comfort_noise_is_heard_in_pauses(raw: tuple[SmallPlatform, RawTrunk]) -> None:
    """Packets of payload type 13 (RFC 3389) fill the pause after speech with noise of their level."""
    platform, trunk = raw
    loop = asyncio.get_running_loop()
    audio, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))
    port = audio.get_extra_info("sockname")[1]
    sdp = SDP.replace("m=audio 9 RTP/AVP 0", f"m=audio {port} RTP/AVP 0 13")
    trunk.on_request = lambda request: trunk.respond(request, 200, sdp if request.method == "INVITE" else "")
    call_id = await platform.place(PERSON)
    await platform.wait_for_message("start")
    offer = (await trunk.wait_for("INVITE")).text
    target = ("127.0.0.1", int(offer.partition("m=audio ")[2].split()[0]))
    stream = OutgoingStream()
    for _ in range(10):
        audio.sendto(stream.pack(0, VOICE), target)
        stream.advance(160)
        await asyncio.sleep(0.02)
    platform.heard.clear()
    audio.sendto(stream.pack(13, bytes([40])), target)

    async def look() -> float:
        return float(decode_audio(bytes(platform.heard[-1600:]), "mulaw").astype(float).std()) if platform.heard else 0

    await eventually(look, lambda level: 200 < level < 450, seconds=20)
    audio.close()
    await platform.provider.hang_up(call_id)
    await platform.wait_until_idle()
