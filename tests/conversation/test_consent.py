"""Notice and consent at the beginning of a call: what is spoken, what answers it, and what is recorded when."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall, Supervisor, TranscriptEntry
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.supervision import SupervisionRefused
from switchboard.engine.disclosure.disclosure import (
    ConsentMode,
    ConsentRecord,
    Disclosure,
    get_phrases,
    understand_words,
)

from tests.fixtures.conversation import (
    Log,
    Model,
    QuietFeed,
    Socket,
    Speech,
    Transcriber,
    create_call,
    list_transcript,
    read_samples,
    synthesize_caller,
)
from tests.fixtures.eventually import eventually

pytestmark = pytest.mark.usefixtures("task_check")
GREETING = "How can I help you?"
SPEECH = synthesize_caller("Hello, is there anybody at home today?")
ENGLISH = get_phrases("en")


def create_disclosed_call(
    consent: ConsentMode,
    *heard: str,
    recording: Path | None = None,
    announces_ai: bool = True,
    ends_without_consent: bool = False,
    **agent: Any,
) -> LiveCall:
    live = create_call(
        Model("Fine."), Transcriber(*heard), recording=recording, **({"greeting_message": GREETING} | agent)
    )
    return replace(
        live,
        disclosure=Disclosure(
            announces_ai=announces_ai,
            consent=consent,
            ends_without_consent=ends_without_consent,
            texts=ENGLISH.texts,
            phrases=ENGLISH,
            rules=("agent: default",),
            place="US-CA",
        ),
    )


def list_spoken(live: LiveCall) -> list[str]:
    assert isinstance(live.agent.text_to_speech, Speech)
    return [request.text for request in live.agent.text_to_speech.requests]


def get_log(live: LiveCall) -> Log:
    assert isinstance(live.log, Log)
    return live.log


def get_consent(live: LiveCall) -> ConsentRecord:
    return get_log(live).consents[-1]


async def wait_until_spoken(live: LiveCall, text: str) -> None:
    """Wait until a sentence has been spoken to its end."""

    async def list_entries() -> list[TranscriptEntry]:
        return get_log(live).entries

    def is_spoken(entries: list[TranscriptEntry]) -> bool:
        return any(entry.role == "agent" and text in entry.content for entry in entries)

    await eventually(list_entries, is_spoken)


async def hang_up(socket: Socket, running: asyncio.Task[CallResult]) -> CallResult:
    socket.hang_up()
    return await running


async def test_a_notice_of_ai_comes_before_the_greeting_and_everything_is_recorded(
    engine: CallEngine, tmp_path: Path
) -> None:
    socket, live = Socket(), create_disclosed_call("none", recording=tmp_path / "call.wav")
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(SPEECH)
    await wait_until_spoken(live, GREETING)
    result = await hang_up(socket, running)
    assert list_spoken(live)[:2] == [ENGLISH.texts.ai_notice, GREETING]
    consent = get_consent(live)
    assert (consent.answer, consent.spoken, consent.asked_ms < 200) == (None, ENGLISH.texts.ai_notice, True)
    assert result.recording_path is not None
    assert read_samples(result.recording_path)[: len(SPEECH), 0].max() > 1000


async def test_who_stays_after_the_notice_is_recorded_from_its_end_on(engine: CallEngine, tmp_path: Path) -> None:
    socket, live = Socket(), create_disclosed_call("notice", "hello", "how are you", recording=tmp_path / "call.wav")
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(SPEECH)
    assert not (tmp_path / "call.wav").exists()
    await wait_until_spoken(live, GREETING)
    await socket.say(SPEECH)
    result = await hang_up(socket, running)
    consent = get_consent(live)
    assert (consent.answer, consent.by, consent.heard) == (True, "stayed", None)
    assert consent.recording_offset_ms is not None
    samples, moment = read_samples(tmp_path / "call.wav"), consent.recording_offset_ms * 8
    assert samples[:moment, 0].max() == 0, "nothing of the caller before the end of the notice"
    assert samples[:moment, 1].max() > 1000, "the notice itself is in the recording"
    assert samples[moment:, 0].max() > 1000
    assert ("system", "The other party was told that the call is recorded, and stayed.") in list_transcript(result)


async def test_a_caller_who_hangs_up_during_the_notice_did_not_consent(engine: CallEngine, tmp_path: Path) -> None:
    socket, live = Socket(), create_disclosed_call("notice", recording=tmp_path / "call.wav")
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.spoke.wait()
    await asyncio.sleep(1)
    await hang_up(socket, running)
    assert [consent.answer for consent in get_log(live).consents] == [None]
    assert not (tmp_path / "call.wav").exists()


@pytest.mark.parametrize(("by", "said"), [("speech", "Yes, of course."), ("keypad", "1")])
async def test_a_yes_starts_the_recording(engine: CallEngine, tmp_path: Path, by: str, said: str) -> None:
    path = tmp_path / "call.wav"
    socket, live = Socket(), create_disclosed_call("ask", said, "what time is it", recording=path)
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, ENGLISH.texts.question)
    assert not path.exists(), "nothing is kept before the answer"
    if by == "speech":
        await socket.say(SPEECH)
    else:
        socket.press(said)
    await wait_until_spoken(live, GREETING)
    await asyncio.sleep(3)
    assert path.exists(), "written while the call goes on"
    result = await hang_up(socket, running)
    consent = get_consent(live)
    assert (consent.answer, consent.by, consent.heard) == (True, by, said)
    assert consent.recording_offset_ms is not None
    assert read_samples(path)[: consent.recording_offset_ms * 8, 0].max() == 0
    transcript = list_transcript(result)
    answer = ("user", said if by == "speech" else "DTMF: 1")
    assert transcript.index(answer) < transcript.index(("system", "The other party consented to the recording."))
    assert result.ended_reason is EndedReason.CALLER_HUNG_UP


@pytest.mark.parametrize("key", [None, "2"])
async def test_a_no_records_nothing_and_the_call_goes_on(engine: CallEngine, tmp_path: Path, key: str | None) -> None:
    path = tmp_path / "call.wav"
    socket, live = Socket(), create_disclosed_call("ask", "No, thank you.", "what time is it", recording=path)
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, ENGLISH.texts.question)
    if key is None:
        await socket.say(SPEECH)
    else:
        socket.press(key)
        assert isinstance(live.agent.speech_to_text, Transcriber)
        live.agent.speech_to_text.texts.pop(0)
    await wait_until_spoken(live, GREETING)
    assert any(ENGLISH.texts.refused in text for text in list_spoken(live))
    await socket.say(SPEECH)
    await wait_until_spoken(live, "Fine.")
    result = await hang_up(socket, running)
    assert (get_consent(live).answer, get_consent(live).recording_offset_ms) == (False, None)
    assert (path.exists(), result.recording_path, result.recording_error) == (False, None, None)


async def test_a_no_ends_the_call_with_a_goodbye_if_the_agent_says_so(engine: CallEngine, tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    socket, live = Socket(), create_disclosed_call("ask", recording=path, ends_without_consent=True)
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, ENGLISH.texts.question)
    socket.press("2")
    result = await running
    assert result.ended_reason is EndedReason.NO_CONSENT
    assert list_transcript(result)[-1] == ("agent", ENGLISH.texts.goodbye)
    assert not any(GREETING in text for text in list_spoken(live))
    assert not path.exists()


async def test_silence_is_asked_once_more_and_is_a_no_then(engine: CallEngine, tmp_path: Path) -> None:
    """The call's own silence timeout is shorter, and does not end the call meanwhile."""
    path = tmp_path / "call.wav"
    socket, live = Socket(), create_disclosed_call("ask", recording=path, end_call_silence_seconds=5)
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, GREETING)
    await hang_up(socket, running)
    spoken = [entry.content for entry in get_log(live).entries if entry.role == "agent"]
    asked = [text for text in spoken if ENGLISH.texts.question in text]
    assert asked == [ENGLISH.texts.question, f"{ENGLISH.texts.unclear} {ENGLISH.texts.question}"]
    consent = get_consent(live)
    assert (consent.answer, consent.by, consent.heard, path.exists()) == (False, None, None, False)


async def test_an_unclear_answer_is_asked_again_at_once(engine: CallEngine) -> None:
    socket, live = Socket(), create_disclosed_call("ask", "Well, what is this about?", "Sure.")
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, ENGLISH.texts.question)
    await socket.say(SPEECH)
    await wait_until_spoken(live, ENGLISH.texts.unclear)
    await socket.say(SPEECH)
    await wait_until_spoken(live, GREETING)
    await hang_up(socket, running)
    assert (get_consent(live).answer, get_consent(live).heard) == (True, "Sure.")


async def test_a_yes_before_the_question_is_no_answer_and_interrupts_nothing(engine: CallEngine) -> None:
    """The agent answers it after the greeting, as it answers what is said while it lets nobody interrupt."""
    socket, live = Socket(), create_disclosed_call("ask", "Yes?", interruption_min_words=0)
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.spoke.wait()
    await socket.say(SPEECH)
    await wait_until_spoken(live, ENGLISH.texts.question)
    assert socket.cleared_at is None
    assert get_consent(live).answer is None
    socket.press("1")
    await wait_until_spoken(live, "Fine.")
    result = await hang_up(socket, running)
    assert get_consent(live).by == "keypad"
    transcript = list_transcript(result)
    assert transcript.index(("agent", GREETING)) < transcript.index(("user", "Yes?"))


async def test_an_answer_during_the_question_counts_at_its_end(engine: CallEngine) -> None:
    socket, live = Socket(), create_disclosed_call("ask", announces_ai=False)
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.spoke.wait()
    socket.press("1")
    await wait_until_spoken(live, GREETING)
    await hang_up(socket, running)
    assert get_consent(live).answer is True
    assert socket.cleared_at is None, "the question was spoken to its end"


async def test_an_answering_machine_speaks_the_notice_before_its_greeting(engine: CallEngine, tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    socket, live = Socket(), create_disclosed_call("notice", "This is Ada.", recording=path)
    running = asyncio.create_task(engine.run_call(replace(live, voicemail=True), socket))
    await wait_until_spoken(live, GREETING)
    await socket.say(SPEECH)
    result = await hang_up(socket, running)
    assert [content for role, content in list_transcript(result) if role != "system"] == [
        get_consent(live).spoken,
        GREETING,
        "This is Ada.",
    ]
    assert get_consent(live).by == "stayed"
    assert path.exists()


async def test_a_shutdown_gives_the_question_up(engine: CallEngine, tmp_path: Path) -> None:
    socket, live = Socket(), create_disclosed_call("ask", recording=tmp_path / "call.wav")
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, ENGLISH.texts.question)
    await engine.drain(0)
    assert (await running).ended_reason is EndedReason.SHUTDOWN
    assert [consent.answer for consent in get_log(live).consents] == [None]
    assert not (tmp_path / "call.wav").exists()


async def test_nobody_takes_a_call_over_that_is_being_asked(engine: CallEngine) -> None:
    socket, live = Socket(), create_disclosed_call("ask")
    running = asyncio.create_task(engine.run_call(live, socket))
    await wait_until_spoken(live, ENGLISH.texts.question)
    session = engine.find_session(live.call_id)
    assert session is not None
    monitor = uuid4()
    session.supervision.attach(monitor, Supervisor(uuid4(), "Ada"), 0, QuietFeed, may_control=True)
    with pytest.raises(SupervisionRefused, match="asked for consent"):
        session.supervision.take_over(monitor)
    await hang_up(socket, running)


@pytest.mark.parametrize(
    ("language", "words", "meaning"),
    [
        ("en-US", "Yes.", True),
        ("en-US", "yeah, that's fine", True),
        ("en-GB", "No.", False),
        ("en-GB", "I'd rather you don't", False),
        ("en-US", "yes, no, wait", None),
        ("en-US", "I don't know", None),
        ("en-US", "no problem", None),
        ("en-US", "okay, what is this about?", None),
        ("en-US", "what? no", False),
        ("de-DE", "Ja, aber warum?", None),
        ("en-US", "yes hello I am calling because of my order from last week", None),
        ("de-DE", "Ja, gerne!", True),
        ("de-DE", "Nein danke", False),
        ("de-AT", "Das möchte ich nicht.", False),
        ("de-DE", "ja nein", None),
        ("es-ES", "Sí, claro", True),
        ("es-MX", "no", False),
        ("es-ES", "no sé", None),
        ("fr-FR", "Oui, d'accord", True),
        ("fr-FR", "oui, d’accord", True),
        ("fr-CA", "Non merci", False),
        ("fr-FR", "je ne sais pas", None),
        ("ja-JP", "yes", True),
        ("mul", "ja", True),
        ("mul", "non", False),
        ("en-US", "", None),
        ("en-US", "eyes", None),
    ],
)
def test_answers_are_understood_without_a_model(language: str, words: str, meaning: bool | None) -> None:
    assert understand_words(words, get_phrases(language)) is meaning
