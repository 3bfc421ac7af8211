"""Processor time of the check of a sentence before it is spoken, beside that of making it readable aloud.

The sentences are true or claim nothing, in four languages, with all built-in claims declared. An agent without claims
declares none.
"""

import json
from pathlib import Path
from statistics import median
from time import process_time

from switchboard.engine.conversation.agent_settings import BUILT_IN_CLAIMS, AgentSettings, Claim
from switchboard.engine.conversation.claims import find_statements
from switchboard.engine.conversation.speech.text_normalization import normalize_text
from switchboard.plugin_sdk import Message

ROUNDS = 5
SENTENCES = Path(__file__).parents[1] / "tests/conversation/claims.json"
PROMPT = "You answer the phone of a practice. A cleaning costs 49 euros. We are open from nine to five.\n" * 20
LANGUAGES = {"en": "en-US", "de": "de-DE", "es": "es-ES", "fr": "fr-FR"}


def measure_check(truths: list[dict[str, str]], claims: list[Claim]) -> tuple[float, int]:
    """Return the microseconds of the check of one sentence, and how many sentences ask a model."""
    given, asked, begun = [Message("system", PROMPT)], 0, process_time()
    for each in truths:
        settings = AgentSettings(claims=claims, stt_language=LANGUAGES[each["language"]])
        asked += any(
            finding.question for finding in find_statements(each["text"], settings, set(BUILT_IN_CLAIMS), given)
        )
    return (process_time() - begun) * 1e6 / len(truths), asked


def measure_reading(truths: list[dict[str, str]]) -> float:
    """Return the microseconds of making one sentence readable aloud."""
    begun = process_time()
    for each in truths:
        normalize_text(each["text"], LANGUAGES[each["language"]], {})
    return (process_time() - begun) * 1e6 / len(truths)


def run() -> None:
    """Run the benchmark."""
    truths = json.loads(SENTENCES.read_text("utf-8"))["truths"]
    every = [Claim(name=name) for name in BUILT_IN_CLAIMS]
    measure_check(truths, every)
    rounds = [
        (measure_check(truths, every)[0], measure_check(truths, [])[0], measure_reading(truths)) for _ in range(ROUNDS)
    ]
    checked, unchecked, read = (median(times) for times in zip(*rounds, strict=True))
    asked = measure_check(truths, every)[1]
    print(f"CPU µs of a sentence: all claims {checked:.0f}, none {unchecked:.0f}, made readable {read:.0f}")
    print(f"all claims / made readable: {checked / read:.1f}; sentences that ask a model: {asked} of {len(truths)}")
