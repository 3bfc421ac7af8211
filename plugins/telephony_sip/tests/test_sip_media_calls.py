"""Two media sessions talk to each other over real sockets, on good and bad networks."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_telephony_sip.media import audio_codecs
from switchboard_telephony_sip.media.audio_codecs import LONGEST_SAMPLES
from switchboard_telephony_sip.media.place import MediaPlace
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import MediaPreferences, NoCommonMedia, SrtpUse
from switchboard_telephony_sip.settings import CodecName

from tests.fixtures.debian_tools import require_library
from tests.fixtures.media_relay import MediaRelay
from tests.fixtures.servers import REPOSITORY

SPEECH = REPOSITORY / "bench" / "turn_recordings"


@dataclass
class Party:
    """A session with all that it reports."""

    session: MediaSession
    frames: list[bytes] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    ticked: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self) -> None:
        self.session.on_audio = self.take
        self.session.on_digit = self.digits.append
        self.session.on_mark = self.marks.append

    async def wait_until(self, condition: Callable[[], bool], seconds: float = 15) -> None:
        """Wait for a condition, which is looked at every 20 ms."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self.ticked.wait()
                self.ticked.clear()

    def take(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.ticked.set()

    @property
    def audio(self) -> bytes:
        return b"".join(self.frames)


@asynccontextmanager
async def open_party(place: MediaPlace, preferences: MediaPreferences) -> AsyncIterator[Party]:
    party = Party(await MediaSession.open(place, preferences))
    party.listen()
    try:
        yield party
    finally:
        await party.session.close()


@asynccontextmanager
async def connect(
    caller: MediaPreferences | None = None,
    callee: MediaPreferences | None = None,
    *,
    host: str = "127.0.0.1",
    relay: MediaRelay | None = None,
    edit: Callable[[str], str] = str,
) -> AsyncIterator[tuple[Party, Party]]:
    """Yield two connected parties; `edit` changes the offer on its way."""
    place = MediaPlace(host)
    async with AsyncExitStack() as stack:
        near = await stack.enter_async_context(open_party(place, caller or MediaPreferences()))
        far = await stack.enter_async_context(open_party(place, callee or MediaPreferences()))
        offer = edit(near.session.create_offer())
        if relay is not None:
            await stack.enter_async_context(relay)
            offer = relay.route(offer, is_offer=True)
        answer = far.session.answer(offer)
        if relay is not None:
            answer = relay.route(answer, is_offer=False)
        near.session.accept_answer(answer)
        yield near, far
    assert place.ports.free == 5000


async def play(party: Party, audio: bytes) -> None:
    """Play audio to its end, and a little longer than the far end's jitter buffer waits."""
    party.session.play(audio)
    party.session.mark("the end")
    await party.wait_until(lambda: party.marks[-1:] == ["the end"])
    enough = len(party.frames) + 20
    await party.wait_until(lambda: len(party.frames) >= enough)


def require_codec(codec: CodecName) -> None:
    if codec == "opus":
        require_library("opus", package="libopus0")


def make_tone(seconds: float, frequency: float = 440) -> bytes:
    times = np.arange(int(8000 * seconds)) / 8000
    return encode_audio((8000 * np.sin(2 * np.pi * frequency * times)).astype(np.int16), "mulaw")


def measure_tone(audio: bytes, frequency: float = 440) -> float:
    """Return the seconds in which a tone of `make_tone` is heard."""
    samples = decode_audio(audio, "mulaw").astype(float)[: len(audio) // 160 * 160].reshape(-1, 160)
    turns = np.exp(-2j * np.pi * frequency * np.arange(160) / 8000)
    return float(np.sum(np.abs(samples @ turns) / 80 > 4000)) * 0.02


def find_envelope(audio: bytes) -> np.ndarray:
    """Return the logarithmic energy of speech in eight bands, by frames of 20 ms."""
    samples = decode_audio(audio, "mulaw").astype(float)[: len(audio) // 160 * 160].reshape(-1, 160)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(160)))[:, 2:74]
    energy: np.ndarray = np.log10(spectrum.reshape(len(samples), 8, 9).sum(axis=2) + 1000)
    return energy


def compare_speech(sent: bytes, heard: bytes) -> float:
    """Return the correlation of the envelopes of what was sent and what was heard: the median of that of each second,
    over all delays, because a jitter buffer that grows on a busy machine moves what follows.
    """
    wanted, found = find_envelope(sent), find_envelope(heard)
    seconds = [wanted[start : start + 50] for start in range(0, len(wanted) - 49, 50)]
    return float(np.median([_find_best_correlation(second, found) for second in seconds]))


def _find_best_correlation(wanted: np.ndarray, found: np.ndarray) -> float:
    windows = [found[start : start + len(wanted)].ravel() for start in range(len(found) - len(wanted))]
    return max(float(np.corrcoef(wanted.ravel(), window)[0, 1]) for window in windows if window.std() > 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("codec", ["PCMU", "PCMA", "G722", "opus"])
@pytest.mark.parametrize("srtp", ["off", "required"])
async def test_audio_passes_in_both_directions(codec: CodecName, host: str, srtp: SrtpUse) -> None:
    require_codec(codec)
    preferences = MediaPreferences((codec,), srtp)
    async with connect(preferences, host=host, callee=MediaPreferences((codec,), srtp="optional")) as (near, far):
        await asyncio.gather(play(near, make_tone(1)), play(far, make_tone(1, 600)))
        # A busy machine may conceal a tenth of a second; a wrong codec or key leaves no tone at all.
        assert 0.7 <= measure_tone(far.audio) <= 1.1
        assert 0.7 <= measure_tone(near.audio, 600) <= 1.1
        assert all(len(frame) == 160 for frame in near.frames)
        assert near.session.is_encrypted == (srtp == "required")


async def test_mu_law_passes_as_it_is() -> None:
    audio = (SPEECH / "en-01.ulaw").read_bytes()[:16_000]
    async with connect() as (near, far):
        await play(near, audio)
        frames = [audio[at : at + 160] for at in range(0, len(audio), 160)]
        # The first frame is blended with the silence before it, as are those around a gap on a busy machine.
        assert sum(frame in far.audio for frame in frames) > 0.8 * len(frames)


@pytest.mark.parametrize("codec", ["PCMU", "opus"])
async def test_speech_and_keys_survive_loss_and_jitter(codec: CodecName) -> None:
    require_codec(codec)
    speech = (SPEECH / "en-01.ulaw").read_bytes()[:40_000]
    preferences = MediaPreferences((codec,))
    async with connect(preferences, preferences, relay=MediaRelay(loss=0.2, jitter=0.06)) as (near, far):
        await play(near, speech)
        await near.session.press("0123456789*#ABCD")
        await far.wait_until(lambda: len(far.digits) == 16)
        assert "".join(far.digits) == "0123456789*#ABCD"
        # These words have 0.93 or more, also beside four busy processes; others have 0.62 at most.
        assert compare_speech(speech, far.audio) > 0.75
        quality = far.session.quality
        assert 0.12 < quality.loss_share < 0.28
        assert quality.late_share < 0.06
        assert quality.mos < 3.3


async def test_encrypted_audio_cannot_be_read_on_the_way() -> None:
    relay = MediaRelay()
    preferences = MediaPreferences(srtp="required")
    async with connect(preferences, preferences, relay=relay) as (near, far):
        await play(near, make_tone(0.4))
        assert measure_tone(far.audio) > 0.3
        # By chance, one frame of ciphertext in some thousands is heard as a tone.
        assert measure_tone(b"".join(data[12:172] for data in relay.seen)) < 0.1


@pytest.mark.parametrize(("caller", "callee"), [("off", "required"), ("required", "off")])
async def test_encryption_that_is_required_is_not_left_out(caller: SrtpUse, callee: SrtpUse) -> None:
    with pytest.raises(NoCommonMedia):
        async with connect(MediaPreferences(srtp=caller), MediaPreferences(srtp=callee)):
            pass


async def test_encryption_that_is_optional_yields() -> None:
    async with connect(MediaPreferences(srtp="optional")) as (near, far):
        await play(near, make_tone(0.4))
        assert measure_tone(far.audio) > 0.3
        assert not near.session.is_encrypted


async def test_marks_come_back_in_order_as_their_audio_is_sent() -> None:
    async with connect() as (near, _):
        near.session.play(make_tone(0.2))
        near.session.mark("one")
        near.session.play(make_tone(0.2))
        near.session.mark("two")
        await near.wait_until(lambda: near.marks == ["one"])
        await near.wait_until(lambda: near.marks == ["one", "two"])
        near.session.play(make_tone(5))
        near.session.mark("three")
        near.session.mark("four")
        near.session.clear()
        assert near.marks == ["one", "two", "three", "four"]


def remove_events(sdp: str) -> str:
    return "\r\n".join(line for line in sdp.split("\r\n") if not line.startswith(("a=rtpmap:101", "a=fmtp:101")))


def test_opus_is_left_out_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio_codecs, "load_opus", lambda: None)
    assert audio_codecs.list_available_codecs() == ["PCMU", "PCMA", "G722"]
    assert audio_codecs.list_available_codecs(["opus", "PCMA"]) == ["PCMA"]


def test_packets_that_are_no_opus_are_silent() -> None:
    require_codec("opus")
    codec = audio_codecs.CODECS["opus"].make()
    generator = random.Random(3)
    assert codec.decode(b"") == b""
    for size in range(1, 300):
        assert len(codec.decode(generator.randbytes(size))) <= LONGEST_SAMPLES
        codec.recover(generator.randbytes(size))


@pytest.mark.parametrize("codec", ["PCMU", "PCMA", "G722"])
async def test_keys_are_tones_where_the_line_has_no_events(codec: CodecName) -> None:
    async with connect(MediaPreferences((codec,)), edit=remove_events) as (near, far):
        await near.session.press("159w0#D")
        await far.wait_until(lambda: len(far.digits) == 6)
        assert "".join(far.digits) == "159" + "0#D"


@pytest.mark.parametrize(("body", "digit"), [("Signal=5\r\nDuration=160\r\n", "5"), ("#", "#"), ("11", "#"), ("x", "")])
async def test_keys_come_in_info_requests(body: str, digit: str) -> None:
    async with connect() as (near, _):
        near.session.take_info_digit(body)
        assert "".join(near.digits) == digit


async def test_joined_calls_hear_each_other() -> None:
    async with connect() as (caller, agent), connect() as (transfer, target):
        agent.session.join(transfer.session)
        await asyncio.gather(play(caller, make_tone(0.6)), play(target, make_tone(0.6, 600)))
        await caller.session.press("7")
        await target.wait_until(lambda: target.digits == ["7"])
        assert measure_tone(target.audio) > 0.5
        assert measure_tone(caller.audio, 600) > 0.5
        assert measure_tone(agent.audio) > 0.5
        agent.session.leave()
        await play(caller, make_tone(0.6, 700))
        assert measure_tone(target.audio, 700) < 0.1


async def test_a_call_may_be_closed_twice() -> None:
    async with connect() as (near, _):
        await near.session.close()
        await near.session.close()


async def test_quality_of_a_good_line() -> None:
    async with connect() as (near, far):
        await play(near, make_tone(1))
        await near.wait_until(lambda: near.session.quality.round_trip_ms is not None, 25)
        quality = far.session.quality
        assert quality.loss_share == 0
        assert quality.mos > 3.9
        assert near.session.quality.remote_loss_share == 0
        assert far.session.is_silent_for < 2


async def test_audio_at_an_address_of_the_other_ip_version_is_refused() -> None:
    place = MediaPlace("::1", ports=range(42_000, 42_100))
    session = await MediaSession.open(place, MediaPreferences())
    offer = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"
    with pytest.raises(NoCommonMedia, match="IPv4"):
        session.answer(offer)
    await session.close()
