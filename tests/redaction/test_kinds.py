"""Private data that is found in what people say and write, and what is left alone."""

import time
from collections.abc import Iterable

import pytest
from structlog.testing import capture_logs
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.number_words import normalize_numbers
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import JsonObject, PrivateDataDetector, SpokenText

KINDS = frozenset(detector.name for detector in BUILT_IN)


def build_redactor(language: str = "en-US", *, kinds: frozenset[str] = KINDS, visible: Iterable[str] = ()) -> Redactor:
    detectors = [detector() for detector in BUILT_IN if detector.name in kinds]
    return Redactor(detectors, kinds, frozenset(visible), language)


@pytest.mark.parametrize(
    ("language", "text", "redacted"),
    [
        ("en-US", "My card is 4111 1111 1111 1111, thanks.", "My card is [card number], thanks."),
        ("en-US", "5500-0000-0000-0004 12/26 737", "[card number]"),
        ("en-US", "it is 378282246310005", "it is [card number]"),
        ("en-US", "four one double one one one triple one, uh, one one one one one one one one", "[card number]"),
        ("en-US", "forty-one eleven eleven eleven eleven eleven eleven eleven please", "[card number] please"),
        ("de-DE", "einundvierzig elf elf elf elf elf elf elf", "[card number]"),
        ("de-DE", "Sie lautet vier" + " eins" * 15 + ".", "Sie lautet [card number]."),
        ("es-ES", "cuarenta y uno once once once once once once once", "[card number]"),
        ("fr-FR", "quarante et un onze onze onze onze onze onze onze", "[card number]"),
        ("mul", "quatre" + " un" * 15, "[card number]"),
        ("de-DE", "Meine IBAN ist DE89 3704 0044 0532 0130 00, danke schön", "Meine IBAN ist [iban], danke schön"),
        ("de-DE", "D E acht neun drei sieben null vier null null vier vier null fünf drei zwo null eins drei"
         " null null null", "[iban]"),
        ("fr-FR", "FR14 2004 1010 0505 0001 3M02 606", "[iban]"),
        ("en-US", "my social is 536-90-4399, right?", "my social is [national id], right?"),
        ("de-DE", "36 574 261 809 ist meine Nummer", "[national id] ist meine Nummer"),
        ("es-ES", "mi DNI es 54362315K", "mi DNI es [national id]"),
        ("fr-FR", "2 95 10 99 126 111 93 c'est moi", "[national id] c'est moi"),
        ("en-US", "my PIN is one two three four", "my PIN is [pin]"),
        ("de-DE", "die Geheimzahl lautet sieben sieben zwo eins", "die Geheimzahl lautet [pin]"),
        ("es-ES", "mi clave es cuatro tres dos uno", "mi clave es [pin]"),
        ("fr-FR", "mon code secret est quatre trois deux un", "mon code secret est [pin]"),
        ("en-US", "call me at 415 555 2671 tomorrow", "call me at [phone number] tomorrow"),
        ("en-US", "four one five five five five two six seven one", "[phone number]"),
        ("de-DE", "null dreißig zwölf vierunddreißig sechsundfünfzig achtundsiebzig", "[phone number]"),
        ("en-US", "plus four nine three oh one two three four five six seven eight", "[phone number]"),
        ("en-US", "write to ada.lovelace+work@example.co.uk.", "write to [email address]."),
        ("en-US", "it's ada dot lovelace at example dot com okay", "it's [email address] okay"),
        ("en-US", "a d a one two at example dot com", "[email address]"),
        ("de-DE", "ada unterstrich lovelace at beispiel punkt de bitte", "[email address] bitte"),
        ("es-ES", "ada punto lovelace arroba ejemplo punto com", "[email address]"),
        ("fr-FR", "ada tiret bas lovelace arobase exemple point fr", "[email address]"),
    ],
)  # fmt: skip
def test_private_data_is_replaced(language: str, text: str, redacted: str) -> None:
    assert build_redactor(language).redact(text).kept == redacted


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-US", "My order number is 4711."),
        ("en-US", "4111 1111 1111 1112 is not valid, is it?"),
        ("en-US", "I have three kids, two cats, and one dog since 2019."),
        ("en-US", "Call me tomorrow at nine thirty, or at one oh five."),
        ("en-US", "It costs $1,299.95 or 12 payments of 110."),
        ("de-DE", "Am 12.05.2024 um 14:30 Uhr kommen vierundzwanzig Leute."),
        ("es-ES", "Quiero dos mesas para once personas a las nueve y media."),
        ("fr-FR", "Il y a quatre-vingt-dix-sept personnes dans la salle."),
        ("en-US", "Meet me at the corner, dot your i's."),
        ("en-US", "pin it to the wall"),
    ],
)
def test_other_numbers_and_words_stay(language: str, text: str) -> None:
    redacted = build_redactor(language).redact(text)
    assert (redacted.kept, redacted.for_model, redacted.is_redacted) == (text, text, False)


def test_a_number_over_several_utterances_is_redacted_from_its_seventh_digit() -> None:
    redactor = build_redactor()
    said = ["It is 4111", "1111", "um, 1111", "1111", "And my order is 17."]
    kept = [redactor.redact_utterance(text).kept for text in said]
    assert kept == ["It is 4111", "[card number]", "[card number]", "[card number]", "And my order is 17."]


def test_an_unfinished_number_at_the_end_is_redacted() -> None:
    assert build_redactor().redact_utterance("It is 4111 1111 11").kept == "It is [card number]"
    assert build_redactor("de-DE").redact_utterance("DE89 3704 0044").kept == "[iban]"


def test_digits_that_answer_a_question_for_a_secret_are_redacted() -> None:
    redactor = build_redactor()
    redactor.hear_agent("What is your PIN?")
    assert redactor.redact_utterance("one two").kept == "[pin]"
    redactor.hear_agent("Go on.")
    assert redactor.redact_utterance("three four").kept == "[pin]"
    redactor.hear_agent("Thank you. What is your order number?")
    assert redactor.redact_utterance("four seven").kept == "four seven"


def test_the_model_sees_the_kinds_that_it_needs() -> None:
    redacted = build_redactor(visible=["email_address"]).redact("ada@example.com pays with 4111111111111111")
    assert redacted.kept == "[email address] pays with [card number]"
    assert redacted.for_model == "ada@example.com pays with [card number]"


def test_only_the_chosen_kinds_are_redacted() -> None:
    redacted = build_redactor(kinds=frozenset({"iban"})).redact("ada@example.com, 4111111111111111")
    assert redacted.kept == "ada@example.com, 4111111111111111"


async def test_results_of_tools_keep_their_shape() -> None:
    result: JsonObject = {
        "card": 4111111111111111,
        "mails": ["ada@example.com", None, True],
        "costs": 1.5,
        "in": {"a": "b"},
    }
    assert await build_redactor().redact_json(result, for_model=False) == {
        "card": "[card number]",
        "mails": ["[email address]", None, True],
        "costs": 1.5,
        "in": {"a": "b"},
    }


def test_a_failing_detector_redacts_the_whole_text() -> None:
    class Broken(PrivateDataDetector):
        name, title = "names", "Names"

        def find(self, spoken: SpokenText) -> Iterable[tuple[int, int]]:
            raise RuntimeError(f"cannot search {spoken.text}")

    with capture_logs() as lines:
        assert Redactor([Broken()], frozenset({"names"})).redact("I am Ada.").kept == "[names]"
    (line,) = lines
    assert (line["extension"], line["error"], "exc_info" in line) == ("names", "RuntimeError", False)
    assert "test_kinds.py" in line["at"][-1]
    assert "Ada" not in str(line)


@pytest.mark.parametrize(
    ("language", "words", "digits"),
    [
        ("en", "zero oh one nineteen twenty twenty-one ninety nine", "00119202199"),
        ("de", "null zwo einundzwanzig dreißig neunundneunzig", "02213099"),
        ("es", "cero dieciséis veintiuno treinta y dos noventa", "016213290"),
        ("fr", "zéro seize vingt et un soixante-dix soixante et onze quatre-vingts quatre-vingt-dix-neuf",
         "0162170718099"),
    ],
)  # fmt: skip
def test_number_words_become_digits(language: str, words: str, digits: str) -> None:
    assert normalize_numbers(words, language).text == digits


@pytest.mark.parametrize(
    "text", ["1 " * 20_000, "a." * 20_000, "a-" * 5_000 + "@", "DE12" * 5_000, "one " * 5_000, "4" * 20_000]
)
def test_no_text_takes_long(text: str) -> None:
    """A message of the longest length takes a fraction of a second, whatever it says."""
    redactor, started_at = build_redactor(), time.process_time()
    redactor.redact(text[:1600])
    assert time.process_time() - started_at < 0.5


async def test_ids_in_json_are_no_card_numbers() -> None:
    redactor = Redactor(
        [detector() for detector in BUILT_IN if detector.name == "card_number"], frozenset({"card_number"})
    )
    unlucky = "01a20606-98ee-7420-b441-411111111111"
    assert redactor.redact(unlucky).is_redacted
    values: JsonObject = {"id": unlucky, "card": 4111111111111111}
    assert await redactor.redact_json(values, for_model=False) == {"id": unlucky, "card": "[card number]"}
