"""Text normalization: the reading of what agents write, and the written text of what was heard."""

import pytest
from switchboard.engine.conversation.speech.text_normalization import count_letters, find_heard_text, normalize_text


def normalize(text: str, language: str = "en-US", **pronunciations: str) -> str:
    found = normalize_text(text, language, pronunciations)
    assert "".join(piece.written for piece in found) == text
    return "".join(piece.spoken for piece in found)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Plain words, and nothing else.", "Plain words, and nothing else."),
        ("You pay **$1,250.50**, ok?", "You pay one thousand two hundred fifty dollars and fifty cents, ok?"),
        ("It is $1 or $0.99 or $0.", "It is one dollar or ninety-nine cents or zero dollars."),
        ("£2.01, 5 €, ¥300", "two pounds and one penny, five euros, three hundred yen"),
        ("about $2.5 million", "about two point five million dollars"),
        ("See https://www.acme.com/help/new-users?ref=1#top.", "See acme dot com slash help slash new dash users."),
        ("Write to jo.doe_2@mail.example.org!", "Write to jo dot doe underscore 2 at mail dot example dot org!"),
        ("[our site](https://acme.com/(x)) has it", "our site has it"),
        ("Call +1 (212) 555-0100 now", "Call plus one, two one two, five five five, zero one zero zero now"),
        ("Call +12125550100.", "Call plus one, two one two, five five five, zero one zero zero."),
        ("212-555-0100", "two one two, five five five, zero one zero zero"),
        ("At 9:00, 9:05 or 3:30 pm.", "At nine o’clock, nine oh five or three thirty p m."),
        ("At 3:30 p.m. sharp", "At three thirty p m. sharp"),
        (
            "50% of 1,234,567.8",
            "fifty percent of one million two hundred thirty-four thousand five hundred sixty-seven point eight",
        ),
        ("the 1st, 2nd, 12th, 20th and 33rd", "the first, second, twelfth, twentieth and thirty-third"),
        ("in 1984, 2005 and 2026", "in nineteen eighty-four, two thousand five and twenty twenty-six"),
        ("on 2026-11-21.", "on November twenty-first, twenty twenty-six."),
        ("open 9-5, item #3", "open nine to five, item number three"),
        ("from 2019-2024, 10-15 times", "from twenty nineteen to twenty twenty-four, ten to fifteen times"),
        ("code 007 and A12B and v2.0x", "code zero zero seven and A12B and v2.0x"),
        ("# Title\n- one & two\n* `three`", "Title\none and two\nthree"),
        ("One\n---\ntwo", "One\n\ntwo"),
        ("snake_case and _this_", "snake_case and this"),
        ("zip 10001 has 100 streets", "zip ten thousand one has one hundred streets"),
        ("order 12345678901234567890", "order " + "one two three four five six seven eight nine zero " * 2),
    ],
)
def test_english_is_normalized_for_speech(written: str, spoken: str) -> None:
    assert normalize(written) == spoken.strip()


@pytest.mark.parametrize(
    ("language", "written", "spoken"),
    [
        ("de-DE", "Mehr auf https://www.acme.de/hilfe für 5 €.", "Mehr auf acme Punkt de Schrägstrich hilfe für 5 €."),
        ("es-MX", "Llame al +52 55 1234 5678", "Llame al +5 2, 5 5, 1 2 3 4, 5 6 7 8"),
        ("fr-FR", "**Écrivez** à a@b.fr", "Écrivez à a arobase b point fr"),
        ("ja-JP", "**3時** https://a.jp", "3時 https://a.jp"),
    ],
)
def test_other_languages_keep_numbers_and_spell_out_addresses(language: str, written: str, spoken: str) -> None:
    assert normalize(written, language) == spoken


def test_an_agents_pronunciations_take_precedence() -> None:
    assert (
        normalize("Ask siobhan at ACME, not acmes.", Siobhan="Shivawn", Acme="Ack me")
        == "Ask Shivawn at Ack me, not acmes."
    )
    assert normalize("From 24/7 Fitness", **{"24/7": "twenty-four seven"}) == "From twenty-four seven Fitness"


def test_the_transcript_has_the_written_form() -> None:
    found = normalize_text("You pay **$1,250.50**, then call us.", "en")
    assert find_heard_text(found, count_letters("You pay one thousand two")) == "You pay **"
    assert (
        find_heard_text(found, count_letters("You pay one thousand two hundred fifty dollars and fifty cents, then"))
        == "You pay **$1,250.50**, then"
    )
    assert find_heard_text(found, 1000) == "You pay **$1,250.50**, then call us."
    assert find_heard_text(found, 0) == ""
