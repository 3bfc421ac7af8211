"""Events of capability `telephony`: the callbacks of a carrier, as `TelephonyProvider.receive` translates them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

AnsweredBy = Literal["human", "machine", "unknown"]
CallOutcome = Literal["completed", "busy", "no-answer", "failed", "canceled"]
TextState = Literal["sending", "sent", "delivered", "undelivered", "failed"]
OptOut = Literal["stop", "start", "help"]
INVALID_NUMBER: Final = "invalid_number"
"""Code of a `ProviderError` from `place_call`, or of a `CallEnded`, for a number that does not exist.

All other codes are the carrier's own.
"""

_VERSTAT: Final = re.compile(r"TN-Validation-(Passed|Failed)(?:-([ABC]))?")


def read_verstat(verdict: str) -> dict[str, str]:
    """Return the metadata of an inbound call for what its carrier has found out about the calling number by STIR/SHAKEN
    (`verstat`, 3GPP TS 24.229, section 7.2A.20): `stir_shaken` is the level of attestation, `A`, `B`, or `C`, or
    `failed`. Nothing for a call without a signature. A passed one without a level counts as `A`, as at Telnyx.
    """
    found = _VERSTAT.fullmatch(verdict.strip())
    if found is None:
        return {}
    return {"stir_shaken": (found[2] or "A") if found[1] == "Passed" else "failed"}


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """An inbound call to one of the organization's numbers. The carrier waits for `instruct`.

    A withheld `from_number` has no `+` (for example `anonymous`). `metadata` becomes the call's metadata: further facts
    that the carrier knows, such as SIP headers and the verdict of STIR/SHAKEN (`read_verstat`).
    """

    carrier_call_id: str
    from_number: str
    to_number: str
    metadata: Mapping[str, str] = field(default_factory=dict, kw_only=True, hash=False)


@dataclass(frozen=True, slots=True)
class BrowserCall(IncomingCall):
    """A call with a browser token. The carrier waits for `instruct`.

    `to_number` is the dialed number, the organization's or any other; `from_number` is the requested caller id, empty
    if none is requested. Neither is validated.
    """

    identity: str


@dataclass(frozen=True, slots=True)
class CallAccepted:
    """The carrier is about to dial an outbound call.

    For a carrier without `find_call`, this links the call to its reference after a crash.
    """

    carrier_call_id: str


@dataclass(frozen=True, slots=True)
class CalleeRinging:
    """An outbound call rings at its destination."""

    carrier_call_id: str


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """An outbound call was answered."""

    carrier_call_id: str
    answered_by: AnsweredBy = "unknown"


@dataclass(frozen=True, slots=True)
class MachineDetected:
    """The carrier detected, after the answer, that a machine answered.

    `beep`: its greeting is over, with a beep or in silence.
    """

    carrier_call_id: str
    beep: bool = False


@dataclass(frozen=True, slots=True)
class CallQuality:
    """Quality of a call's line, as the carrier measured it on what the other party sent.

    `loss_share` is the share of lost packets, from 0 to 1; `jitter_ms` is RFC 3550's estimate in milliseconds; `mos` is
    an estimate of the mean opinion score, from 1 to 5 (ITU-T G.107).
    """

    loss_share: float
    jitter_ms: float
    mos: float


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call ended.

    `error_message` and `error_code` are the carrier's own. `cost` is in US dollars, None if the carrier does not report
    it, and so is `quality`.
    """

    carrier_call_id: str
    outcome: CallOutcome
    duration_seconds: int | None = None
    error_message: str | None = None
    error_code: str | None = None
    cost: float | None = None
    quality: CallQuality | None = None


@dataclass(frozen=True, slots=True)
class RecordingReady:
    """The carrier recorded the call; `fetch_recording` streams the recording."""

    carrier_call_id: str
    recording_id: str


@dataclass(frozen=True, slots=True)
class TextMessageReceived:
    """An inbound text message. `opt_out` is set if the carrier itself handled a STOP, START, or HELP keyword.

    `media_urls`: addresses of its files, which `fetch_media` streams.
    """

    carrier_text_id: str
    from_number: str
    to_number: str
    body: str
    media_urls: tuple[str, ...] = ()
    opt_out: OptOut | None = None


@dataclass(frozen=True, slots=True)
class TextMessageStatus:
    """Delivery status of an outbound text message.

    `opted_out`: it failed because the recipient opted out of messages from this number. `cost` is in US dollars.
    """

    carrier_text_id: str
    status: TextState
    error_message: str | None = None
    error_code: str | None = None
    segments: int | None = None
    cost: float | None = None
    opted_out: bool = False


@dataclass(frozen=True, slots=True)
class TransferTargetReady:
    """The target of a warm transfer has accepted the call and waits to be connected."""

    target_call_id: str


@dataclass(frozen=True, slots=True)
class TransferTargetGone:
    """The target of a warm transfer did not answer, did not accept, or hung up. Ignored once it has been connected."""

    target_call_id: str
    outcome: CallOutcome


TransferEvent: TypeAlias = TransferTargetReady | TransferTargetGone
CallEvent: TypeAlias = CallAccepted | CalleeRinging | CallAnswered | MachineDetected | CallEnded | RecordingReady
CarrierEvent: TypeAlias = IncomingCall | CallEvent | TransferEvent | TextMessageReceived | TextMessageStatus
