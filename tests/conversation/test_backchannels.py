"""Backchannels by language."""

import pytest
from switchboard.engine.conversation.endpointing.policy import load_turn_ends
from switchboard.engine.conversation.interruptions import ANY_LANGUAGE, is_backchannel, load_backchannels


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-US", "Mm-hmm."),
        ("en-GB", "Uh-huh, uh-huh"),
        ("en-US", "Yeah yeah, I see, that’s right"),
        ("en-US", "um"),
        ("de-DE", "Ja, ja, alles klar."),
        ("es-MX", "Vale, está bien"),
        ("fr-FR", "D’accord, très bien"),
        ("it-IT", "Sì, va bene"),
        ("pt-BR", "Tá bom"),
        ("nl-NL", "Oké, dat klopt"),
        ("pl-PL", "Mhm, okay"),
        ("mul", "ja, okay, vale"),
    ],
)
def test_backchannels_are_recognized(language: str, text: str) -> None:
    assert is_backchannel(text, language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-US", ""),
        ("en-US", "No"),
        ("en-US", "Okay, stop"),
        ("en-US", "I see no reason"),
        ("en-US", "Right?"),
        ("en-US", "Thank you"),
        ("en-US", "that's"),
        ("de-DE", "Nein"),
        ("de-DE", "Doch"),
        ("es-ES", "Espere"),
        ("pl-PL", "Ja"),
        ("en-US", "yeah " * 13),
    ],
)
def test_other_words_are_no_backchannels(language: str, text: str) -> None:
    assert not is_backchannel(text, language)


def test_every_listed_backchannel_is_recognized() -> None:
    for language, phrases in load_backchannels().items():
        for phrase in phrases:
            assert is_backchannel(" ".join(phrase), language), (language, phrase)


def test_the_languages_are_those_whose_turns_are_judged() -> None:
    assert load_backchannels().keys() - {ANY_LANGUAGE} == load_turn_ends().keys()
