"""Judgment of answers: synthetic greetings, hellos, and screening assistants in many voices, with noise and beeps.

The voices are eSpeak NG's: accents of English in variants of pitch and timbre. Every second voice was used while the
thresholds were chosen; the others are held out. Words come with the synthesizer's own times, 0.4 seconds late, so the
lines with words are those of a transcription without errors.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from switchboard.engine.conversation.machine import (
    BEEP_SECONDS,
    FRAME,
    Answer,
    AnswerDetector,
    BeepDetector,
    judge_answer_words,
)
from switchboard.engine.conversation.speech.vad import (
    STOP_SECONDS,
    WINDOW,
    WINDOW_SECONDS,
    SpeechChange,
    VoiceActivity,
    VoiceDetector,
)
from switchboard.plugin_sdk import SpeechRequest, Word
from switchboard.plugin_sdk.audio import encode_audio
from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard_offline.espeak import EspeakTextToSpeech

Kind = Literal["machine", "human", "screening"]
RATE: Final = 8000
CALLS: Final[dict[Kind, int]] = {"machine": 240, "human": 240, "screening": 40}
WORD_DELAY_SECONDS: Final = 0.4
TAIL_SECONDS: Final = 13.0
ACCENTS: Final = ("en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp", "en-gb-x-gbclan")
VARIANTS: Final = (
    "m1", "m2", "m3", "m4", "m5", "m7", "f1", "f2", "f3", "f4", "f5", "Alicia", "Andrea", "Annie", "Gene", "Lee",
    "Mario", "Michael", "adam", "anika", "antonio", "belinda", "benjamin", "david", "edward", "ian", "linda", "max",
    "steph", "zac",
)  # fmt: skip
TEXTS: Final[dict[Kind, Sequence[str]]] = {
    "machine": (
        "Hi, you've reached Ann Miller. I can't take your call right now. Please leave a message after the beep.",
        "Hello, this is Tom. Leave a message.",
        "Your call has been forwarded to an automatic voice messaging system. The person you call is not available.",
        "The number you have dialed is not available. Please try again later.",
        "Thank you for calling Miller and Sons. Our office is currently closed. We are here from nine to five.",
        "Hey, it's Sam. You know what to do.",
        "Hi, this is Doctor Brown. I am with a patient. If this is an emergency, please hang up and dial nine one one.",
        "Welcome to the voicemail of five five five, zero one two three. At the tone, please record your message.",
        "You have reached the Harris family. We are out walking the dog. Speak slowly, and we will call you back.",
        "Hello. I am on holiday until the third of August, and I do not listen to messages. Please write to me.",
        "The customer you are calling cannot be reached at the moment. Please hang up.",
        "Hi, I'm either away from my desk or on another call. Leave your name and number, and I'll get back to you.",
    ),
    "human": (
        "Hello, Ann speaking.", "Yes, hello?", "Good morning, Miller and Sons, how can I help you?", "Who is this?",
        "Hello, who is calling please?", "Yes, this is Tom Miller.", "Bakery on the corner, good afternoon.",
        "Doctor Brown's office, one moment please.", "Hello hello?", "Hi, what can I do for you?",
        "Yeah, hi.", "Reception, Linda here.",
    ),
    "screening": (
        "Hi, if you record your name and reason for calling, I'll see if this person is available.",
        "Hi, the person you're calling is using a screening service from Google. Say your name and why you're calling.",
        "Please state your name and the reason for your call.",
        "Before I try to connect you, can I ask what you're calling about? Please state your name.",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """An answer: its audio at 8 kHz, the times of its words, and when its beep ends, if it has one."""

    kind: Kind
    held_out: bool
    samples: npt.NDArray[np.int16]
    words: tuple[Word, ...]
    beep_ends: float | None


@dataclass(frozen=True, slots=True)
class Judgment:
    """A judgment and its time in seconds from the answer."""

    answer: Answer | None
    seconds: float


async def synthesize(dice: random.Random, kind: Kind, voice: str, *, held_out: bool) -> AnsweredCall:
    """Synthesize one answer: a pause, the words, a beep after most greetings, and noise over all."""
    request = SpeechRequest(dice.choice(TEXTS[kind]), voice_id=voice, speed=dice.uniform(0.85, 1.2))
    audio, words = b"", tuple[Word, ...]()
    async for chunk in EspeakTextToSpeech(ProviderSettings()).synthesize(request):
        audio, words = audio + chunk.audio, words + chunk.words
    speech = np.frombuffer(audio, dtype="<i2") * dice.uniform(0.15, 0.6)
    before = dice.uniform(0.1, 1.2)
    parts = [np.zeros(round(before * RATE)), speech]
    beep_ends = None
    if kind == "machine" and dice.random() < 0.75:
        moments = np.arange(round(dice.uniform(0.2, 0.8) * RATE)) / RATE
        beep = np.sin(2 * np.pi * dice.uniform(420, 2000) * moments) * dice.uniform(1500, 9000)
        parts += [np.zeros(round(dice.uniform(0.2, 1.2) * RATE)), beep]
        beep_ends = sum(map(len, parts)) / RATE
    parts.append(np.zeros(round(TAIL_SECONDS * RATE)))
    clean = np.concatenate(parts)
    level = np.sqrt(np.mean(speech**2)) / 10 ** (dice.uniform(8, 30) / 20)
    noise = np.random.default_rng(dice.randrange(2**32)).normal(size=len(clean))
    if dice.random() < 0.5:  # traffic and halls: the low frequencies are louder
        noise = np.convolve(noise, np.ones(8) / 8, mode="same") * 2.8
    delay = round(before * 1000)
    return AnsweredCall(
        kind,
        held_out,
        np.clip(clean + noise * level, -32768, 32767).astype(np.int16),
        tuple(Word(word.text, word.start_ms + delay, word.end_ms + delay) for word in words),
        beep_ends,
    )


async def create_calls() -> list[AnsweredCall]:
    """Create all calls, always the same."""
    dice, calls = random.Random(20), list[AnsweredCall]()
    voices = [f"{accent}+{variant}" for accent, variant in product(ACCENTS, VARIANTS)]
    dice.shuffle(voices)
    for kind, number in CALLS.items():
        for index in range(number):
            place = index % len(voices)
            calls.append(await synthesize(dice, kind, voices[place], held_out=bool(place % 2)))
    return calls


def detect_voices(calls: Sequence[AnsweredCall]) -> list[list[tuple[bool, float]]]:
    """Return for each call and window whether somebody speaks, and when the last voice was."""
    detector = VoiceDetector()
    activities = [VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6) for _ in calls]
    windows = max(len(call.samples) for call in calls) // WINDOW
    audio = np.stack([np.pad(call.samples, (0, windows * WINDOW + WINDOW - len(call.samples))) for call in calls])
    last, found = [0.0] * len(calls), [list[tuple[bool, float]]() for _ in calls]
    for window in range(windows):
        changes = detector.detect(activities, audio[:, window * WINDOW : (window + 1) * WINDOW])
        now = (window + 1) * WINDOW_SECONDS
        for index, (activity, change) in enumerate(zip(activities, changes, strict=True)):
            if change is SpeechChange.STOPPED:
                last[index] = now - STOP_SECONDS
            found[index].append((activity.speaking, last[index]))
    return found


def judge(call: AnsweredCall, voices: Sequence[tuple[bool, float]], *, with_words: bool, beeps: bool) -> Judgment:
    """Judge an answer as a call does: by pauses, words, and the beep, whichever comes first."""
    detector, tones = AnswerDetector(0.0), BeepDetector("mulaw")
    mulaw, human = encode_audio(call.samples, "mulaw"), None
    for window, (speaking, last_voice_at) in enumerate(voices):
        now = (window + 1) * WINDOW_SECONDS
        if now > len(call.samples) / RATE:
            break
        if beeps and now < BEEP_SECONDS and tones.has_heard_beep(mulaw[window * WINDOW : (window + 1) * WINDOW]):
            return Judgment("machine", now)
        if with_words and human is None:
            known = " ".join(word.text for word in call.words if word.end_ms / 1000 + WORD_DELAY_SECONDS <= now)
            if (answer := judge_answer_words(known)) is not None:
                return Judgment(answer, now)
        if human is None and (answer := detector.hear_speech(now, speaking, last_voice_at)) is not None:
            if answer == "machine":
                return Judgment(answer, now)
            human = Judgment(answer, now)
    return human or Judgment(None, len(call.samples) / RATE)


def measure_beeps(calls: Sequence[AnsweredCall]) -> tuple[int, int, int, float]:
    """Return the beeps heard, all beeps, tones found in speech, and the longest delay in seconds."""
    heard = false = 0
    delay = 0.0
    for call in calls:
        tones, mulaw = BeepDetector("mulaw"), encode_audio(call.samples, "mulaw")
        ends = [at / RATE for at in range(0, len(mulaw), FRAME) if tones.has_heard_beep(mulaw[at : at + FRAME])]
        right = [end for end in ends if call.beep_ends is not None and abs(end - call.beep_ends) < 0.2]
        heard, false = heard + bool(right), false + len(ends) - len(right)
        delay = max([delay, *(end - (call.beep_ends or 0) for end in right)])
    return heard, sum(call.beep_ends is not None for call in calls), false, delay


def print_row(name: str, calls: Sequence[AnsweredCall], judgments: Sequence[Judgment]) -> None:
    """Print one line of the table: F1 of machines, and the times to the decisions."""
    pairs = [pair for pair in zip(calls, judgments, strict=True) if pair[0].kind != "screening"]

    def count(test: Callable[[Kind, Answer | None], bool]) -> int:
        return sum(test(call.kind, judgment.answer) for call, judgment in pairs)

    right = count(lambda kind, answer: kind == "machine" == answer)
    wrong = count(lambda kind, answer: kind == "human" and answer == "machine")
    missed = count(lambda kind, answer: kind == "machine" and answer != "machine")
    people = count(lambda kind, _: kind == "human")
    times = {
        kind: np.percentile([judgment.seconds for call, judgment in pairs if call.kind == kind], (50, 95))
        for kind in ("machine", "human")
    }
    screened = [judgment.answer for call, judgment in zip(calls, judgments, strict=True) if call.kind == "screening"]
    print(
        f"| {name} | {2 * right / (2 * right + wrong + missed):.3f} "
        f"| {missed} of {right + missed} | {wrong} of {people} "
        f"| {times['machine'][0]:.1f}, {times['machine'][1]:.1f} | {times['human'][0]:.1f}, {times['human'][1]:.1f} "
        f"| {screened.count('screening')} of {len(screened)} |"
    )


def run() -> None:
    """Print the table."""
    calls = asyncio.run(create_calls())
    voices = detect_voices(calls)
    print("| judged by | F1 | machines missed | people misjudged | machine, p50 and p95 s | person | screening |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    ways = {"pauses": (False, False), "pauses and beeps": (False, True), "pauses, beeps, and words": (True, True)}
    for (name, (with_words, beeps)), held_out in product(ways.items(), (False, True)):
        chosen = [index for index, call in enumerate(calls) if call.held_out == held_out]
        found = [judge(calls[index], voices[index], with_words=with_words, beeps=beeps) for index in chosen]
        print_row(f"{name}{', held out' if held_out else ''}", [calls[index] for index in chosen], found)
    heard, beeps_of_all, false, delay = measure_beeps(calls)
    print(f"\nbeeps heard: {heard} of {beeps_of_all}, at most {delay:.2f} s late; tones found in speech: {false}")
