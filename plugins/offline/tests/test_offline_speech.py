"""The contracts of eSpeak and PocketSphinx, which recognize each other's speech."""

import multiprocessing
from contextlib import suppress
from pathlib import Path

import pytest
from switchboard.plugin_sdk import ProviderError, ProviderSettings, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract, TextToSpeechContract
from switchboard_offline.espeak import EspeakTextToSpeech, speak_text
from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText, recognize_speech
from switchboard_offline.recognition import recognize

PHRASES = (
    "what are your opening hours",
    "thank you",
    "goodbye",
    "can I speak to a human",
    "how much does it cost",
    "yes",
    "no",
)


class TestEspeak(TextToSpeechContract[EspeakTextToSpeech]):
    @pytest.fixture
    def provider(self) -> EspeakTextToSpeech:
        return EspeakTextToSpeech(ProviderSettings())


class TestPocketsphinx(SpeechToTextContract[PocketsphinxSpeechToText]):
    @pytest.fixture
    def provider(self) -> PocketsphinxSpeechToText:
        return PocketsphinxSpeechToText(ProviderSettings())

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return speak_text("Can I speak to a human?"), "can i speak to a human"

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return TranscriptionRequest(hints=PHRASES)


@pytest.mark.parametrize("voice", ["en-us", "en-gb", "en-us+f3"])
def test_expected_phrases_are_recognized_in_several_voices(voice: str) -> None:
    transcripts = [recognize(speak_text(phrase, voice=voice), PHRASES) for phrase in PHRASES]
    assert sum(text == phrase for text, phrase in zip(transcripts, PHRASES, strict=True)) >= len(PHRASES) - 2, (
        transcripts
    )


def test_unexpected_speech_still_yields_text() -> None:
    assert recognize(speak_text("bananas are yellow and round"), PHRASES)


def test_a_phrase_with_an_unknown_word_leaves_the_others_usable() -> None:
    assert recognize(speak_text("thank you"), ("xqzzt blorf", "thank you", "goodbye")) == "thank you"


async def kill_recognizers() -> None:
    """Kill the recognition processes. The next utterance gets new ones; the current one may be lost."""
    for process in multiprocessing.active_children():
        process.kill()
    with suppress(ProviderError):
        await recognize_speech(speak_text("thank you"), PHRASES)


async def test_a_killed_process_costs_at_most_one_utterance() -> None:
    assert await recognize_speech(speak_text("thank you"), PHRASES) == "thank you"
    await kill_recognizers()
    assert await recognize_speech(speak_text("thank you"), PHRASES) == "thank you"


async def test_check_reports_missing_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POCKETSPHINX_PATH", str(tmp_path))
    await kill_recognizers()
    try:
        with pytest.raises(ProviderError, match="cannot be loaded"):
            await PocketsphinxSpeechToText(ProviderSettings()).check()
    finally:
        monkeypatch.undo()
        await kill_recognizers()
    await PocketsphinxSpeechToText(ProviderSettings()).check()
