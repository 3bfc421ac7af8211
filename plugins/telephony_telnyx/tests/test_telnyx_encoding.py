"""Segments of text messages as Telnyx counts them."""

import pytest
from switchboard_telephony_telnyx.provider import TelnyxTelephony


@pytest.mark.parametrize(
    ("body", "segments"),
    [
        ("", 1), ("a" * 160, 1), ("a" * 161, 2), ("a" * 1530, 10), ("a" * 1531, 11),
        ("|" * 80, 1), ("|" * 81, 2),
        ("é£¿@_\n" * 26, 1),
        ("ç" + "a" * 69, 1), ("ç" + "a" * 70, 2),
        ("€" + "a" * 70, 2), ("Ç" + "a" * 70, 2), ("Δ" + "a" * 70, 2), ("¤" + "a" * 70, 2), ("`" + "a" * 70, 2),
        ("ж" * 670, 10), ("ж" * 671, 11),
    ],
)  # fmt: skip
def test_segments_follow_telnyx_own_part_of_gsm_03_38(body: str, segments: int) -> None:
    encoding = TelnyxTelephony.text_encoding
    assert encoding.count_segments(body) == segments
    assert encoding.can_send(segments) is (segments <= 10)
