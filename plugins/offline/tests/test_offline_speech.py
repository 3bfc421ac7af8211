"""The contracts of eSpeak and PocketSphinx, which recognize each other's speech."""

import asyncio
import multiprocessing
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from switchboard.plugin_sdk import ProviderError, ProviderSettings, SpeechRequest, TranscriptionRequest, Word
from switchboard.plugin_sdk.testing import SpeechToTextContract, TextToSpeechContract
from switchboard_offline.espeak import EspeakProcess, EspeakTextToSpeech, speak_text
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


def find_espeak_processes(parent: int) -> list[int]:
    """Find the processes of eSpeak NG that a process has started."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    processes = [int(child) for path in children for child in path.read_text().split()]
    return [process for process in processes if b"espeak_program" in Path(f"/proc/{process}/cmdline").read_bytes()]


def test_the_library_of_espeak_is_loaded_by_a_process_of_its_own() -> None:
    """It is under the GPL."""
    assert speak_text("hello")
    [process] = find_espeak_processes(os.getpid())
    assert "libespeak-ng" in Path(f"/proc/{process}/maps").read_text()
    assert "libespeak-ng" not in Path("/proc/self/maps").read_text()
    assert Path(f"/proc/{process}/environ").read_bytes().startswith(b"LD_LIBRARY_PATH="), "it learns no secret"
    assert b"\0PATH=" not in Path(f"/proc/{process}/environ").read_bytes()


def test_the_process_of_espeak_starts_again_after_its_death() -> None:
    assert speak_text("hello")
    [process] = find_espeak_processes(os.getpid())
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert speak_text("hello")


def test_a_process_of_espeak_that_does_not_respond_is_killed() -> None:
    before = find_espeak_processes(os.getpid())
    espeak = EspeakProcess(response_seconds=0.5)
    assert espeak.has_voice("en-us")
    [process] = set(find_espeak_processes(os.getpid())) - set(before)
    os.kill(process, signal.SIGSTOP)
    with pytest.raises(ProviderError, match="did not respond"):
        espeak.has_voice("en-us")
    assert espeak.has_voice("en-us")
    espeak.end()


async def test_a_canceled_text_does_not_disturb_the_next_one() -> None:
    espeak = EspeakTextToSpeech(ProviderSettings())

    async def speak(text: str) -> list[Word]:
        return [word async for chunk in espeak.synthesize(SpeechRequest(text)) for word in chunk.words]

    canceled = asyncio.create_task(speak("one two three four " * 100))
    await asyncio.sleep(0)
    canceled.cancel()
    assert [word.text for word in await speak("five six")] == ["five", "six"]
    with suppress(asyncio.CancelledError):
        await canceled


def test_the_process_of_espeak_ends_with_its_parent() -> None:
    program = "from switchboard_offline.espeak import speak_text; speak_text('hello'); print('up', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        [process] = find_espeak_processes(parent.pid)
        death = os.pidfd_open(process)
        parent.kill()
    # A process that is not our child: its descriptor is readable when it has ended.
    assert select.select([death], [], [], 30)[0]
    os.close(death)


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
