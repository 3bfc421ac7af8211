"""Offers and answers of audio (RFC 3264, RFC 4566), with SRTP keys (RFC 4568)."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Literal

from aiosipua.sdp import ConnectionData, MediaDescription, Origin, SdpMessage, parse_sdp, serialize_sdp

from switchboard_telephony_sip.media.audio_codecs import CODECS
from switchboard_telephony_sip.media.srtp import KEY_BYTES, SUITES, CryptoLine, SrtpKeys, parse_crypto_lines
from switchboard_telephony_sip.settings import CodecName

SrtpUse = Literal["off", "optional", "required"]
Direction = Literal["sendrecv", "sendonly", "recvonly", "inactive"]
Address = tuple[str, int]
PLAIN_PROFILES: Final = ("RTP/AVP", "RTP/AVPF")
SECURE_PROFILES: Final = ("RTP/SAVP", "RTP/SAVPF")
NOISE_TYPE: Final = 13
FIRST_DYNAMIC_TYPE: Final = 96
EVENT_TYPES: Final[Mapping[int, int]] = {8000: 101, 48_000: 110}
"""Payload types that telephone events of each clock rate have in offers."""
MOST_LINES: Final = 500

_ANSWERS: Final[Mapping[Direction, Direction]] = {
    "sendrecv": "sendrecv",
    "sendonly": "recvonly",
    "recvonly": "sendonly",
    "inactive": "inactive",
}


class NoCommonMedia(Exception):
    """An offer or answer has no audio that both sides support: 488 Not Acceptable Here."""


@dataclass(frozen=True, slots=True)
class MediaPreferences:
    """Audio that a trunk is offered and may use: codecs, best first, and encryption.

    `srtp`: `optional` offers keys in an ordinary profile, so that a far end without SRTP still answers.
    """

    codecs: Sequence[CodecName] = ("PCMU", "PCMA", "G722")
    srtp: SrtpUse = "off"


@dataclass(frozen=True, slots=True)
class PayloadTypes:
    """Payload types of one direction: codecs in order, telephone events by clock rate, and comfort noise."""

    codecs: Mapping[int, CodecName]
    events: Mapping[int, int] = field(default_factory=dict)
    noise: int | None = None


@dataclass(frozen=True, slots=True)
class AgreedMedia:
    """Result of an offer and its answer.

    `address`: where to send, None while the far end holds without an address or names a host, which is not looked up:
    the first packets of the far end then tell.
    """

    address: Address | None
    control_address: Address | None
    incoming: PayloadTypes
    outgoing: PayloadTypes
    direction: Direction
    srtp: SrtpKeys | None
    shares_port: bool


class MediaNegotiator:
    """Our side of the offers and answers of one call."""

    def __init__(self, address: Address, preferences: MediaPreferences) -> None:
        self._address = address
        self._preferences = preferences
        self._session_id = str(secrets.randbits(53))
        self._version = 0
        self._keys: dict[str, bytes] = {}
        self._lines: list[MediaDescription] = []
        self._index = 0
        self._types = PayloadTypes({})

    def create_offer(self) -> str:
        names = self._preferences.codecs
        types = PayloadTypes(
            codecs={CODECS[name].payload_type: name for name in names},
            events={rate: EVENT_TYPES[rate] for rate in sorted({CODECS[name].clock_rate for name in names})},
            noise=NOISE_TYPE,
        )
        srtp = self._preferences.srtp
        media = _describe_audio(self._address[1], types, "sendrecv")
        media.proto = "RTP/SAVP" if srtp == "required" else "RTP/AVP"
        if srtp != "off":
            lines = [CryptoLine(tag, suite, self._key(suite)) for tag, suite in enumerate(SUITES, 1)]
            media.attributes["crypto"] = [str(line) for line in lines]
        return self._describe([media], 0, types)

    def renew_offer(self) -> str:
        """Return our last description as an offer in both directions, with every codec that has a static payload type.

        Its lines, profile, keys, and payload types stay (RFC 3264, section 8).
        """
        static = {CODECS[name].payload_type: name for name in self._preferences.codecs}
        static = {number: name for number, name in static.items() if number < FIRST_DYNAMIC_TYPE}
        types = replace(self._types, codecs={**self._types.codecs, **static})
        last, media = self._lines[self._index], _describe_audio(self._address[1], types, "sendrecv")
        media.proto = last.proto
        media.attributes |= {name: last.attributes[name] for name in ("crypto", "rtcp-mux") if name in last.attributes}
        lines = [*self._lines[: self._index], media, *self._lines[self._index + 1 :]]
        return self._describe(lines, self._index, types)

    def accept_answer(self, answer: str) -> AgreedMedia:
        """Return what the answer to our last description agreed on; raise `NoCommonMedia`."""
        message = _parse(answer)
        media = next((line for line in message.media if line.media == "audio" and line.port), None)
        names = self._preferences.codecs
        if media is None or not (types := _read_types(media, names)).codecs:
            raise NoCommonMedia("the answer has no audio with an offered codec")
        codecs = {CODECS[name].payload_type: name for name in names} | dict(self._types.codecs)
        incoming = PayloadTypes(codecs, {**EVENT_TYPES, **self._types.events} if types.events else {}, NOISE_TYPE)
        lines = [line for line in parse_crypto_lines(media.attributes.get("crypto", ())) if line.suite in self._keys]
        return self._agree(message, media, incoming, types, lines)

    def answer(self, offer: str) -> tuple[str, AgreedMedia]:
        """Return the answer to the far end's offer, and what it agrees on; raise `NoCommonMedia`."""
        message = _parse(offer)
        index, media = self._choose_media(message)
        types = _narrow(_read_types(media, self._preferences.codecs), self._preferences.codecs)
        lines = parse_crypto_lines(media.attributes.get("crypto", ()))
        agreed = self._agree(message, media, types, types, lines)
        reply = _describe_audio(self._address[1], types, _ANSWERS[_read_direction(message, media)])
        reply.proto = media.proto
        if agreed.srtp is not None:
            reply.attributes["crypto"] = [str(CryptoLine(lines[0].tag, agreed.srtp.suite, agreed.srtp.local))]
        if agreed.shares_port:
            reply.attributes["rtcp-mux"] = []
        rejected = [MediaDescription(m.media, 0, m.proto, list(m.formats)) for m in message.media]
        return self._describe([*rejected[:index], reply, *rejected[index + 1 :]], index, types), agreed

    def _choose_media(self, message: SdpMessage) -> tuple[int, MediaDescription]:
        """Return the audio to accept; an encrypted one, where there is a choice and encryption is wanted."""
        suitable = [(i, media) for i, media in enumerate(message.media) if self._is_suitable(media)]
        if not suitable:
            raise NoCommonMedia("the offer has no audio with a supported codec and encryption")
        return min(suitable, key=lambda pair: (not pair[1].attributes.get("crypto"), pair[0]))

    def _is_suitable(self, media: MediaDescription) -> bool:
        if media.media != "audio" or media.port == 0:
            return False
        has_keys = bool(parse_crypto_lines(media.attributes.get("crypto", ())))
        srtp = self._preferences.srtp
        if (media.proto in SECURE_PROFILES or srtp == "required") and not (has_keys and srtp != "off"):
            return False
        if media.proto not in SECURE_PROFILES + PLAIN_PROFILES:
            return False
        return bool(_read_types(media, self._preferences.codecs).codecs)

    def _agree_srtp(self, media: MediaDescription, lines: list[CryptoLine]) -> SrtpKeys | None:
        srtp = self._preferences.srtp
        if lines and srtp != "off":
            return SrtpKeys(lines[0].suite, self._key(lines[0].suite), lines[0].key)
        if srtp == "required" or media.proto in SECURE_PROFILES:
            raise NoCommonMedia("the far end has no usable SRTP keys")
        return None

    def _key(self, suite: str) -> bytes:
        return self._keys.setdefault(suite, secrets.token_bytes(KEY_BYTES))

    def _agree(
        self,
        message: SdpMessage,
        media: MediaDescription,
        incoming: PayloadTypes,
        outgoing: PayloadTypes,
        lines: list[CryptoLine],
    ) -> AgreedMedia:
        srtp = self._agree_srtp(media, lines)
        address = self._read_address(message, media)
        host, is_held = str(address), address is not None and address.is_unspecified
        is_reachable = address is not None and not is_held and 0 < media.port < 65_535
        shares_port = "rtcp-mux" in media.attributes
        control_port = media.port if shares_port else _read_control_port(media)
        return AgreedMedia(
            address=(host, media.port) if is_reachable else None,
            control_address=(host, control_port) if is_reachable else None,
            incoming=incoming,
            outgoing=outgoing,
            # RFC 2543 held a call by the address 0.0.0.0.
            direction="inactive" if is_held else _ANSWERS[_read_direction(message, media)],
            srtp=srtp,
            shares_port=shares_port,
        )

    def _read_address(self, message: SdpMessage, media: MediaDescription) -> IPv4Address | IPv6Address | None:
        """Return where the far end receives, None if it names a host; raise `NoCommonMedia` if we cannot send there."""
        connection = media.connection or message.connection
        try:
            address = ip_address(connection.address.split("/")[0] if connection else "")
        except ValueError:
            return None
        if address.is_multicast:
            raise NoCommonMedia("the address of the audio is a multicast address")
        ours = ip_address(self._address[0])
        if address.version != ours.version and not address.is_unspecified:
            raise NoCommonMedia(f"the audio is at an address of IPv{address.version}, ours is of IPv{ours.version}")
        return address

    def _describe(self, lines: list[MediaDescription], index: int, types: PayloadTypes) -> str:
        """Return a description whose audio is the line of this index."""
        self._lines, self._index, self._types = lines, index, types
        self._version += 1
        host = self._address[0]
        family = "IP6" if ":" in host else "IP4"
        message = SdpMessage(
            origin=Origin("-", self._session_id, str(self._version), "IN", family, host),
            session_name="-",
            connection=ConnectionData("IN", family, host),
            media=lines,
        )
        return serialize_sdp(message)


def _parse(sdp: str) -> SdpMessage:
    if sdp.count("\n") > MOST_LINES:
        raise NoCommonMedia("the session description is too long")
    try:
        return parse_sdp(sdp)
    except ValueError as error:
        raise NoCommonMedia("the session description cannot be parsed") from error


def _describe_audio(port: int, types: PayloadTypes, direction: Direction) -> MediaDescription:
    maps, parameters = [], []
    for payload_type, name in types.codecs.items():
        codec = CODECS[name]
        suffix = "/2" if codec.channels == 2 else ""
        maps.append(f"{payload_type} {name}/{codec.clock_rate}{suffix}")
        if name == "opus":
            parameters.append(f"{payload_type} maxplaybackrate=8000;sprop-maxcapturerate=8000;stereo=0;useinbandfec=1")
    for rate, payload_type in types.events.items():
        maps.append(f"{payload_type} telephone-event/{rate}")
        parameters.append(f"{payload_type} 0-15")
    if types.noise is not None:
        maps.append(f"{types.noise} CN/8000")
    attributes = {"rtpmap": maps, "fmtp": parameters, "ptime": ["20"], direction: []}
    if not parameters:
        del attributes["fmtp"]
    return MediaDescription("audio", port, "RTP/AVP", [entry.split()[0] for entry in maps], attributes=attributes)


def _read_types(media: MediaDescription, names: Sequence[CodecName]) -> PayloadTypes:
    """Return the payload types of a description that we support, in its order."""
    codecs: dict[int, CodecName] = {}
    events: dict[int, int] = {}
    noise = None
    for entry in media.codecs:
        encoding, payload_type = entry.encoding_name.lower(), entry.payload_type
        if not 0 <= payload_type < 128:
            continue
        if encoding == "telephone-event":
            events.setdefault(entry.clock_rate, payload_type)
        elif encoding == "cn" or (not encoding and payload_type == NOISE_TYPE):
            noise = payload_type if entry.clock_rate in {0, 8000} else noise
        for name in names:
            if encoding == name.lower() and entry.clock_rate == CODECS[name].clock_rate:
                codecs[payload_type] = name
    return PayloadTypes(codecs, events, noise)


def _narrow(types: PayloadTypes, names: Sequence[CodecName]) -> PayloadTypes:
    """Keep our best codec and the events of its clock: one codec in an answer is one that the far end will send."""
    payload_type, name = min(types.codecs.items(), key=lambda pair: names.index(pair[1]))
    rate = CODECS[name].clock_rate
    noise = types.noise if rate == 8000 else None
    return PayloadTypes({payload_type: name}, {rate: types.events[rate]} if rate in types.events else {}, noise)


def _read_control_port(media: MediaDescription) -> int:
    values = media.attributes.get("rtcp", [])
    port = values[0].split()[0] if values and values[0] else ""
    return int(port) if port.isdecimal() and 0 < int(port) < 65_536 else media.port + 1


def _read_direction(message: SdpMessage, media: MediaDescription) -> Direction:
    for attributes in (media.attributes, message.attributes):
        for direction in _ANSWERS:
            if direction in attributes:
                return direction
    return "sendrecv"
