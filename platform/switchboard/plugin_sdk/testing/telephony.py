"""The contract of capability `telephony`: the behavior that the core relies on in every carrier."""

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from switchboard.plugin_sdk.callbacks import CallbackRequest, InvalidCallback
from switchboard.plugin_sdk.carrier_extensions import TrunkCarrier
from switchboard.plugin_sdk.media import DigitPressed, Frame, MarkReached, MediaCodec, MediaStarted, MediaStopped
from switchboard.plugin_sdk.provider import ProviderError, ProviderSettings
from switchboard.plugin_sdk.telephony import (
    CallbackUrls,
    ConnectMedia,
    MessageFile,
    NumberOrder,
    OutboundCall,
    OutboundTextMessage,
    RecordingStream,
    TelephonyProvider,
)
from switchboard.plugin_sdk.telephony_events import IncomingCall, TextMessageStatus
from switchboard.plugin_sdk.testing.contract import ProviderContract
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY, serve_private

Telephony = TelephonyProvider[ProviderSettings]
MEDIA_URL = "wss://voice.example/media/token"
"""Address of the media socket to which a carrier's samples belong."""


@dataclass(frozen=True)
class CarrierSamples:
    """A carrier's messages and numbers for the contract.

    `incoming_call` is a correctly signed callback that announces a call; create it for the time of the test.
    `media_started`, `digit` (the key 5), and `media_stopped` are media messages as the carrier sends them to the socket
    at `MEDIA_URL`; `media` writes one with the caller's audio, and `mark` one for a reached mark. `read_audio` reads
    what `encode` wrote, as the carrier would. `unknown_call` has the form of a call id but no call. `available_number`
    can be bought, `taken_number` cannot (None if the carrier cannot be made to refuse).
    """

    incoming_call: CallbackRequest
    media_started: Frame
    digit: Frame
    media_stopped: Frame
    media: Callable[[bytes], Frame]
    mark: Callable[[str], Frame]
    read_audio: Callable[[Frame], bytes]
    unknown_call: str
    available_number: str
    taken_number: str | None = None
    country: str = "US"


@dataclass(frozen=True)
class MovedFiles:
    """Files of the carrier's whose addresses redirect to another server: a `media_url` of a text message, and
    a recording's id. None for what the carrier does not have.
    """

    media_url: str | None = None
    recording_id: str | None = None


class TelephonyContract(ProviderContract[Telephony]):
    """Rules of every carrier.

    Override the fixtures `provider` and `samples`, and the others if their defaults do not suit the carrier.
    """

    @pytest.fixture
    def samples(self) -> CarrierSamples:
        """The carrier's samples. Must be overridden."""
        raise NotImplementedError("override the fixture `samples` of this contract")

    @pytest.fixture
    def callbacks(self) -> CallbackUrls:
        """Callback addresses at which nobody listens."""
        return CallbackUrls("http://127.0.0.1:9/carriers/events")

    @pytest.fixture
    def outbound_call(self, callbacks: CallbackUrls) -> OutboundCall:
        """A call that the carrier accepts, and that rings or stays connected until it is hung up."""
        return OutboundCall("a-call-of-ours", "+12125550100", "+15550100021", "ws://127.0.0.1:9/media/token", callbacks)

    @pytest.fixture
    def outbound_text_message(self, callbacks: CallbackUrls) -> OutboundTextMessage:
        """A text message that the carrier accepts."""
        return OutboundTextMessage("a-text-of-ours", "+12125550100", "+15550100001", "Hello", callbacks)

    @pytest.fixture
    def codec(self, provider: Telephony, samples: CarrierSamples) -> MediaCodec:
        """A codec of a media socket that has started."""
        codec = provider.create_media_codec(MEDIA_URL)
        codec.decode(samples.media_started)
        return codec

    @pytest.fixture
    def move_files(self) -> Callable[[str], MovedFiles]:
        """Lets the vendor's server on 127.0.0.1 redirect a file and a recording to the given address. Override it for
        a carrier that fetches either.
        """
        pytest.skip("the carrier fetches no files; otherwise override the fixture `move_files`")

    # callbacks

    async def test_a_signed_callback_is_translated(self, open_provider: Telephony, samples: CarrierSamples) -> None:
        """Calls are announced by callback.

        If this fails, check the address and the bytes that your signature covers.
        """
        received = await open_provider.receive(samples.incoming_call)
        assert [type(event) for event in received.events] == [IncomingCall]

    async def test_a_repeated_callback_translates_to_the_same(
        self, open_provider: Telephony, samples: CarrierSamples
    ) -> None:
        """Carriers repeat callbacks, and the core recognizes repetitions. If this fails, keep no state in `receive`."""
        first = await open_provider.receive(samples.incoming_call)
        assert first.events == (await open_provider.receive(samples.incoming_call)).events

    async def test_an_unsigned_callback_is_refused(self, open_provider: Telephony, samples: CarrierSamples) -> None:
        """Anyone can reach a callback address. If this fails, refuse a request without your signature header."""
        with pytest.raises(InvalidCallback):
            await open_provider.receive(dataclasses.replace(samples.incoming_call, headers={}))

    async def test_an_altered_body_is_refused(self, open_provider: Telephony, samples: CarrierSamples) -> None:
        """A signature covers the body. If this fails, verify the raw bytes before parsing them."""
        for body in (samples.incoming_call.body + b" ", b"", b"\xff\x00{", samples.incoming_call.body[:-1]):
            with pytest.raises(InvalidCallback):
                await open_provider.receive(dataclasses.replace(samples.incoming_call, body=body))

    async def test_garbled_headers_are_refused(self, open_provider: Telephony, samples: CarrierSamples) -> None:
        """Invalid headers are a 403, not a 500. If this fails, raise only `InvalidCallback` during verification."""
        for value in ("", "x", "t=,v1=", "é", "=" * 500):
            garbled = dict.fromkeys(samples.incoming_call.headers, value)
            with pytest.raises(InvalidCallback):
                await open_provider.receive(dataclasses.replace(samples.incoming_call, headers=garbled))

    async def test_an_incoming_call_can_be_connected(
        self, open_provider: Telephony, samples: CarrierSamples, callbacks: CallbackUrls
    ) -> None:
        """`instruct` responds to the callback.

        If this fails, put the media address into the reply, or send it to the carrier in a request.
        """
        event = (await open_provider.receive(samples.incoming_call)).events[0]
        assert isinstance(event, IncomingCall)
        reply = await open_provider.instruct(event, ConnectMedia(MEDIA_URL), callbacks)
        assert 200 <= reply.status < 300

    # media

    async def test_callers_audio_arrives_unchanged(self, codec: MediaCodec, samples: CarrierSamples) -> None:
        """Recognition needs every byte. If this fails, decode the payload and nothing else."""
        for length in (1, 159, 160, 4000):
            audio = bytes(index % 256 for index in range(length))
            assert codec.decode(samples.media(audio)) == audio

    async def test_our_audio_arrives_unchanged(self, codec: MediaCodec, samples: CarrierSamples) -> None:
        """Audio may have any length. If this fails, neither pad nor cut in `encode`."""
        for length in (1, 159, 160, 1600, 4000):
            audio = bytes(index % 256 for index in range(length))
            assert samples.read_audio(codec.encode(audio)) == audio

    async def test_media_events_are_told(self, provider: Telephony, samples: CarrierSamples) -> None:
        """Start, keys, marks, and stop control a call. If this fails, compare `decode` with the carrier's reference."""
        codec = provider.create_media_codec(MEDIA_URL)
        started = codec.decode(samples.media_started)
        assert isinstance(started, MediaStarted)
        assert started.carrier_call_id
        assert codec.decode(samples.digit) == DigitPressed("5")
        assert codec.decode(samples.mark('a "mark"')) == MarkReached('a "mark"')
        assert codec.decode(samples.media_stopped) == MediaStopped()

    async def test_marks_and_clear_are_no_audio(self, codec: MediaCodec) -> None:
        """If this fails, check whether `mark` or `clear` writes a media message."""
        assert len({codec.clear(), codec.mark("one"), codec.mark("two"), codec.encode(b"\xff" * 160)}) == 4

    @pytest.mark.parametrize(
        "garbage",
        ["", "{", "[]", "null", "{}", '{"event":"no such thing"', '{"event":"media","media":{"payload":"*"}}', "\x00"],
    )
    async def test_garbage_on_the_media_socket_is_a_value_error(self, codec: MediaCodec, garbage: str) -> None:
        """The core closes the socket on `ValueError` only. If this fails, convert your parser's errors to it."""
        with pytest.raises(ValueError):  # noqa: PT011  the message depends on the carrier
            codec.decode(garbage)

    # calls

    async def test_hanging_up_twice_is_harmless(self, open_provider: Telephony, outbound_call: OutboundCall) -> None:
        """Both sides may hang up at once. If this fails, treat the carrier's "no such call" as success."""
        carrier_call_id = await open_provider.place_call(outbound_call)
        assert carrier_call_id
        await open_provider.hang_up(carrier_call_id)
        await open_provider.hang_up(carrier_call_id)

    async def test_hanging_up_an_unknown_call_is_harmless(
        self, open_provider: Telephony, samples: CarrierSamples
    ) -> None:
        """A call may have ended long ago. If this fails, treat the carrier's "no such call" as success."""
        await open_provider.hang_up(samples.unknown_call)

    async def test_no_call_is_found_for_a_strange_reference(self, open_provider: Telephony) -> None:
        """The core asks after a crash; a wrong result confuses two calls.

        If this fails, compare the whole reference.
        """
        assert await open_provider.find_call("nobody-ever-used-this") is None

    async def test_transferring_an_unknown_call_fails(
        self, open_provider: Telephony, samples: CarrierSamples, callbacks: CallbackUrls
    ) -> None:
        """A failed transfer must be reported. If this fails, raise `ProviderError` for the carrier's refusal."""
        if not open_provider.capabilities.transfer:
            return
        with pytest.raises(ProviderError):
            await open_provider.transfer(
                samples.unknown_call, to_number="+15550100001", caller_id="+12125550100", callbacks=callbacks
            )

    async def test_an_unknown_call_is_connected_to_nobody(
        self, open_provider: Telephony, samples: CarrierSamples
    ) -> None:
        """A failed warm transfer must be reported too.

        If this fails, raise `ProviderError` for the carrier's refusal.
        """
        with pytest.raises(ProviderError):
            await open_provider.complete_warm_transfer(samples.unknown_call, samples.unknown_call)

    async def test_pressing_keys_in_an_unknown_call_fails(
        self, open_provider: Telephony, samples: CarrierSamples
    ) -> None:
        """If this fails, raise `ProviderError` for the carrier's refusal."""
        if not open_provider.capabilities.send_digits:
            return
        with pytest.raises(ProviderError):
            await open_provider.send_digits(samples.unknown_call, "1")

    # text messages and phone numbers

    async def test_a_text_with_a_file_has_an_id(
        self, open_provider: Telephony, outbound_text_message: OutboundTextMessage
    ) -> None:
        """The core sends files through a carrier whose `max_media` is not 0.

        If this fails, pass `media_urls` on, or leave `max_media` at 0.
        """
        if open_provider.capabilities.max_media:
            with_file = dataclasses.replace(outbound_text_message, media_urls=("https://example.com/a.jpg",))
            assert await open_provider.send_text_message(with_file)

    async def test_each_text_has_an_id_of_its_own(
        self, open_provider: Telephony, outbound_text_message: OutboundTextMessage
    ) -> None:
        """Delivery statuses are matched by the id. If this fails, return the carrier's id and not the platform's
        reference.
        """
        if open_provider.capabilities.text_messages:
            first = await open_provider.send_text_message(outbound_text_message)
            assert first != await open_provider.send_text_message(outbound_text_message)

    async def test_the_status_of_a_text_is_that_of_its_id(
        self, open_provider: Telephony, outbound_text_message: OutboundTextMessage
    ) -> None:
        """If this fails, retrieve one message by its id, or leave `find_text_status` out if the carrier cannot tell."""
        for _ in range(2 if open_provider.capabilities.text_messages else 0):
            text_id = await open_provider.send_text_message(outbound_text_message)
            found = await open_provider.find_text_status(text_id)
            assert found is None or (isinstance(found, TextMessageStatus) and found.carrier_text_id == text_id)

    async def test_search_answers_e164_numbers_within_the_limit(
        self, open_provider: Telephony, samples: CarrierSamples
    ) -> None:
        """The API shows the numbers unchanged. If this fails, convert the carrier's notation and pass `limit` on."""
        if not open_provider.capabilities.sells_numbers:
            return
        found = await open_provider.search_numbers(country=samples.country, area_code=None, limit=3)
        assert 0 < len(found) <= 3
        for number in found:
            assert number.phone_number.startswith("+")
            assert number.phone_number[1:].isdecimal()
            assert number.country == samples.country

    async def test_buying_twice_answers_the_same_number(
        self, open_provider: Telephony, samples: CarrierSamples, callbacks: CallbackUrls
    ) -> None:
        """A purchase is repeated after a crash and must not be paid twice.

        If this fails, look among the account's own numbers first.
        """
        if not open_provider.capabilities.sells_numbers:
            return
        first = await open_provider.buy_number(NumberOrder(samples.available_number, callbacks))
        assert first.phone_number == samples.available_number
        assert await open_provider.buy_number(NumberOrder(samples.available_number, callbacks)) == first

    async def test_a_taken_number_is_refused_for_good(
        self, open_provider: Telephony, samples: CarrierSamples, callbacks: CallbackUrls
    ) -> None:
        """If this fails, raise `ProviderError` with `retryable=False` for the carrier's refusal."""
        if samples.taken_number is None or not open_provider.capabilities.sells_numbers:
            return
        await _expect_final_refusal(open_provider.buy_number(NumberOrder(samples.taken_number, callbacks)))

    async def test_releasing_twice_is_harmless(
        self, open_provider: Telephony, samples: CarrierSamples, callbacks: CallbackUrls
    ) -> None:
        """A release is repeated after a crash. If this fails, treat the carrier's "no such number" as success."""
        if not open_provider.capabilities.sells_numbers:
            await open_provider.release_number(samples.available_number)
            return
        bought = await open_provider.buy_number(NumberOrder(samples.available_number, callbacks))
        await open_provider.release_number(bought.carrier_number_id)
        await open_provider.release_number(bought.carrier_number_id)

    # files

    async def test_a_file_on_a_private_network_is_refused(self, open_provider: Telephony) -> None:
        """An organization signs callbacks with a key of its own, and could read what only this machine reaches.

        If this fails, fetch files with a `PublicHttpClient`, or from your vendor's own address.
        """
        async with serve_private("127.0.0.1") as private:
            port = private.address.rpartition(":")[2]
            for url in (private.address, f"http://localhost:{port}/metrics", f"http://[::ffff:127.0.0.1]:{port}/"):
                with pytest.raises(ProviderError):
                    await _read(await open_provider.fetch_media(url))
            assert private.requests == []

    async def test_a_redirect_to_a_private_network_is_refused(
        self, provider: Telephony, move_files: Callable[[str], MovedFiles]
    ) -> None:
        """A public address may redirect to a private one. If this fails, follow redirects with a `PublicHttpClient`."""
        provider.network_policy = VENDORS_ONLY
        async with serve_private() as private:
            moved = move_files(f"{private.address}/metrics")
            await provider.open()
            try:
                if moved.media_url is not None:
                    with pytest.raises(ProviderError):
                        await _read(await provider.fetch_media(moved.media_url))
                if moved.recording_id is not None:
                    with pytest.raises(ProviderError):
                        await _read(await provider.fetch_recording(moved.recording_id, None))
            finally:
                await provider.close()
            assert private.requests == []

    # trunks

    async def test_each_part_of_a_carrier_over_trunks_is_named_and_described(self, open_provider: Telephony) -> None:
        """The dashboard and `doctor` list the parts. If this fails, return one `CheckedPart` for each trunk."""
        if not isinstance(open_provider, TrunkCarrier):
            return
        parts = await open_provider.check_parts()
        assert parts
        assert all(part.name and part.message for part in parts)
        assert len({part.name for part in parts}) == len(parts)

    # unsupported features

    async def test_what_it_cannot_do_is_refused_for_good(self, open_provider: Telephony) -> None:
        """If this fails, raise `ProviderError` with `retryable=False`, or correct `capabilities` or
        `has_browser_calling`.
        """
        if not open_provider.capabilities.recordings:
            await _expect_final_refusal(open_provider.fetch_recording("unknown", None))
        if not open_provider.has_browser_calling:
            await _expect_final_refusal(open_provider.create_browser_token(identity="somebody", platform="web"))
        if not open_provider.capabilities.sells_numbers:
            await _expect_final_refusal(open_provider.search_numbers(country="US", area_code=None, limit=3))
            order = NumberOrder("+12125550100", CallbackUrls("http://127.0.0.1:9/events"))
            await _expect_final_refusal(open_provider.buy_number(order))


async def _expect_final_refusal(request: Awaitable[object]) -> None:
    with pytest.raises(ProviderError) as refusal:
        await request
    assert not refusal.value.retryable


async def _read(file: MessageFile | RecordingStream) -> bytes:
    return b"".join([chunk async for chunk in file.chunks])
