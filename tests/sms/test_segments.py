"""Segment counts as carriers bill them, and keywords."""

import pytest
from switchboard.plugin_sdk import TextEncoding
from switchboard.resources.sms.auto_reply import shorten_answer
from switchboard.resources.sms.keywords import parse_keyword


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", 1), ("a", 1), ("a" * 160, 1), ("a" * 161, 2), ("a" * 306, 2), ("a" * 307, 3), ("a" * 1600, 11),
        ("€" * 80, 1), ("€" * 81, 2),  # the extension table counts twice
        ("€" * 76 + "a" + "€" * 76, 2), ("€" * 77 + "€" * 76, 3),  # and is not split: 153 is odd, one place stays empty
        ("Ä" * 160, 1), ("ä\n@£" * 40, 1),  # the basic table has these
        ("á" + "a" * 69, 1), ("á" + "a" * 70, 2), ("á" * 134, 2), ("á" * 135, 3),  # any other letter makes it UCS-2
        ("😀" * 35, 1), ("😀" * 36, 2), ("😀" * 66, 2), ("😀" * 67, 3),  # two units each, 33 fit into 67
        ("`" * 71, 2),
    ],
)  # fmt: skip
def test_segments_are_counted_as_carriers_bill_them(body: str, expected: int) -> None:
    assert TextEncoding().count_segments(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("STOP", "stop"),
        ("stop", "stop"),
        (" Stop. ", "stop"),
        ("STOPALL", "stop"),
        ("Stop all", "stop"),
        ("unsubscribe", "stop"),
        ("Cancel", "stop"),
        ("END", "stop"),
        ("quit!", "stop"),
        ("REVOKE", "stop"),
        ("opt out", "stop"),
        ("OPTOUT", "stop"),
        ("ARRÊT", "stop"),
        ("arret", "stop"),
        ("ALTO", "stop"),
        ("START", "start"),
        ("Yes", "start"),
        ("UNSTOP", "start"),
        ("HELP", "help"),
        ("info?", "help"),
        ("please stop", None),
        ("Yes, please.", None),
        ("stop it now", None),
        ("", None),
        ("helpful", None),
    ],
)
def test_keywords_are_recognized(body: str, expected: str | None) -> None:
    assert parse_keyword(body) == expected


def test_a_long_answer_is_cut_after_its_last_complete_sentence() -> None:
    assert shorten_answer("Short.", TextEncoding()) == "Short."
    sentence = "This is one of many sentences. "
    shortened = shorten_answer(sentence * 60, TextEncoding())
    assert shortened == (sentence * 51).strip()
    exact = "x" * 1599 + "."
    assert shorten_answer(exact + " More.", TextEncoding()) == exact
    words = shorten_answer("word " * 400, TextEncoding())
    assert len(words) <= 1600
    assert words.endswith("word…")


def test_a_long_answer_is_cut_to_the_segments_that_a_carrier_sends() -> None:
    encoding = TextEncoding(max_segments=10)
    sentence = "Это одно из многих предложений. "
    assert shorten_answer(sentence * 40, encoding) == (sentence * 20).strip()
    words = shorten_answer("слово " * 200, encoding)
    assert encoding.count_segments(words) == 10
    assert words.endswith("слово…")
    assert encoding.count_segments(shorten_answer("я" * 1600, encoding)) == 10
