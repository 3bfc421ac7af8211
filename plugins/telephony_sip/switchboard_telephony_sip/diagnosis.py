"""Results of test calls in words, with what an operator has to fix."""

from collections.abc import Mapping
from typing import Final

from switchboard.plugin_sdk import MeasuredCall

from switchboard_telephony_sip.commands import Measurement

MOST_LOSS: Final = 0.5
"""Share of lost packets from which a direction counts as closed."""
_CREDENTIALS: Final = "The trunk does not accept the user name or the password: compare `username` and its password."
_NUMBER: Final = (
    "The trunk does not know the number as it is dialed: try `plus = false`, and a number that it can reach."
)
_AUDIO: Final = (
    "The trunk takes none of the offered codecs or the encryption: compare `srtp`, and the codecs of its side."
)
_PERSON: Final = "The trunk works, but nobody answered: name a number that answers."
_ADVICE: Final[Mapping[int, str]] = {
    401: _CREDENTIALS,
    407: _CREDENTIALS,
    403: (
        "The trunk knows the gateway and refuses the call: allow the gateway's address and the caller id there, and "
        "check the destination and the balance."
    ),
    404: _NUMBER,
    484: _NUMBER,
    604: _NUMBER,
    408: "Nothing answers there: check host, port, and `transport`, and firewalls on the way.",
    415: _AUDIO,
    488: _AUDIO,
    606: _AUDIO,
    480: _PERSON,
    486: _PERSON,
    600: _PERSON,
    603: _PERSON,
}
_OTHER: Final = "Ask the support of the trunk for the reason of this status."


def describe_measurement(measured: Measurement) -> MeasuredCall:
    """Return the result of a test call in words."""
    advice = [
        f"Trunk {refusal.trunk}: {refusal.message}. {_ADVICE.get(refusal.status, _OTHER)}"
        for refusal in measured.refusals
    ]
    if measured.trunk is None:
        return MeasuredCall("", "no trunk connected the call", " ".join(advice) or "The organization has no trunk.")
    heard = (
        f"{measured.packets_received} packets came, {measured.loss_share:.1%} lost, jitter {measured.jitter_ms:.0f} ms"
    )
    reported = "unknown" if measured.remote_loss_share is None else f"{measured.remote_loss_share:.1%} lost"
    back = ", and the tone came back" if measured.has_echo else ""
    message = f"answered over trunk {measured.trunk}: {heard}; audio to the trunk: {reported}{back}"
    return MeasuredCall(measured.trunk, message, " ".join([*advice, *_list_audio_advice(measured)]))


def _list_audio_advice(measured: Measurement) -> list[str]:
    loss, advice = measured.remote_loss_share, []
    arrives = measured.has_echo or (loss is not None and loss < MOST_LOSS)
    if not measured.packets_received:
        direction = "Audio goes to the trunk, and none comes back" if arrives else "No audio comes from the trunk"
        advice.append(
            f"{direction}: it was told to send to {measured.audio_host}. Set `--public-address` of the gateway to the "
            "address at which the trunk reaches it, and open the UDP ports of `--rtp-ports`."
        )
    elif not measured.has_sound:
        advice.append(
            "The audio that comes is silent: speak after the answer, or name a number that answers with sound."
        )
    if not arrives and loss is not None:
        advice.append(
            f"The trunk loses {loss:.0%} of the gateway's audio: let UDP from the gateway to its media servers out."
        )
    elif not arrives and measured.packets_received:
        advice.append(
            "The trunk does not report what it hears (RTCP), and the tone did not come back: ask whoever answered "
            "whether there was a tone, or name an echo test."
        )
    return advice
