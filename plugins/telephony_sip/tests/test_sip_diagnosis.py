"""Advice after test calls, by what was measured."""

import numpy as np
import pytest
from switchboard.plugin_sdk.audio import encode_audio
from switchboard_telephony_sip.commands import Measurement, TrunkRefusal
from switchboard_telephony_sip.diagnosis import describe_measurement
from switchboard_telephony_sip.gateway.measuring import TONE, HeardSound

GOOD = Measurement([], "office", "203.0.113.5", 400, 0.0, 3.0, True, False, 0.01)


def change(**fields: object) -> Measurement:
    values = {name: getattr(GOOD, name) for name in GOOD.__struct_fields__}
    return Measurement(**(values | fields))


def test_sound_both_ways_needs_no_advice() -> None:
    described = describe_measurement(GOOD)
    assert (described.trunk, described.advice) == ("office", "")
    assert described.message == (
        "answered over trunk office: 400 packets came, 0.0% lost, jitter 3 ms; audio to the trunk: 1.0% lost"
    )
    assert not describe_measurement(change(remote_loss_share=None, has_echo=True)).advice


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"packets_received": 0, "has_sound": False}, "Audio goes to the trunk, and none comes back"),
        ({"packets_received": 0, "has_sound": False, "remote_loss_share": None}, "No audio comes from the trunk"),
        ({"packets_received": 0, "has_sound": False}, "send to 203.0.113.5. Set `--public-address`"),
        ({"has_sound": False}, "The audio that comes is silent"),
        ({"remote_loss_share": 1.0}, "The trunk loses 100% of the gateway's audio"),
        ({"remote_loss_share": None}, "name an echo test"),
        (
            {"refusals": [TrunkRefusal("first", 401, "refused")]},
            "Trunk first: refused. The trunk does not accept the user",
        ),
    ],
)
def test_each_fault_has_its_advice(fields: dict[str, object], words: str) -> None:
    assert words in describe_measurement(change(**fields)).advice


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "password"),
        (403, "allow"),
        (404, "plus"),
        (408, "firewalls"),
        (488, "srtp"),
        (486, "works"),
        (500, "support"),
    ],
)
def test_a_call_that_no_trunk_took_has_the_reason(status: int, words: str) -> None:
    described = describe_measurement(Measurement([TrunkRefusal("office", status, "the reason")]))
    assert described.trunk == ""
    assert described.advice.startswith("Trunk office: the reason. ")
    assert words in described.advice


def test_an_echo_of_the_tone_is_told_from_speech_and_silence() -> None:
    def hear(mulaw: bytes) -> tuple[bool, bool]:
        sound = HeardSound()
        for start in range(0, len(mulaw), 160):
            sound.take(mulaw[start : start + 160])
        return sound.has_sound, sound.has_echo

    times = np.arange(8000) / 8000
    other = (8000 * np.sin(2 * np.pi * 440 * times)).astype(np.int16)
    assert hear(TONE) == (True, True)
    assert hear(bytes(encode_audio(other, "mulaw"))) == (True, False)
    assert hear(b"\xff" * 8000) == (False, False)
