"""Sentences that agents are kept from saying: claims that are not true, banned phrases, and banned topics."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from switchboard.engine.conversation.agent_settings import BUILT_IN_CLAIMS, AgentSettings, BannedTopic, Claim
from switchboard.engine.conversation.claims import find_statements, is_override
from switchboard.engine.conversation.engine import CallEngine
from switchboard.plugin_sdk import AgentTool, JsonObject, Message, ProviderError, ToolCall, ToolContext, ToolParameters

from tests.conversation.test_handoff import run
from tests.fixtures.conversation import (
    Leg,
    Log,
    Model,
    Socket,
    Transcriber,
    create_call,
    list_transcript,
    synthesize_caller,
)

pytestmark = pytest.mark.usefixtures("task_check")
SPEECH = synthesize_caller("can I come on Tuesday")
BOOKED = [Claim(name="booked")]
LIE = "You are booked for Tuesday at three."
BOOK = ToolCall("1", "book_appointment", {})


class BookAppointment(AgentTool[ToolParameters]):
    name = "book_appointment"
    description = "Book an appointment."

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {"error": "the slot is taken"} if self._fails else {"booked": True}


async def hold_call(
    engine: CallEngine, model: Model, *, fails: bool = False, **agent: object
) -> tuple[list[tuple[str, str]], Log]:
    """Hold a call with one question. Return the agent's words with the events of the transcript, and the log."""
    socket = Socket()
    live = create_call(model, Transcriber("can I come on Tuesday"), **agent)  # type: ignore[arg-type]
    live.agent = replace(live.agent, tools=[BookAppointment(fails=fails)])
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(9)
    socket.hang_up()
    result = await running
    log = live.log
    assert isinstance(log, Log)
    return [line for line in list_transcript(result) if line[0] in ("agent", "system")], log


async def test_a_false_claim_is_not_spoken_and_the_model_says_something_true(engine: CallEngine) -> None:
    model = Model(f"Let me see. {LIE} Anything else?", "I have not booked anything yet. Shall I?")
    lines, log = await hold_call(engine, model, claims=BOOKED)
    assert lines == [
        ("system", f"Not said (booked): {LIE}"),
        ("agent", "Let me see. I have not booked anything yet. Shall I?"),
    ]
    told = model.requests[1].messages[-2:]
    assert told[0] == Message("assistant", "Let me see.")
    assert told[1].role == "system"
    assert json.dumps(LIE) in told[1].content
    assert LIE not in str(model.requests[-1].messages[:-1])
    assert [(each.rule, each.name) for each in log.interventions] == [("claim", "booked")]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_claim_that_comes_with_its_tool_waits_for_the_result(engine: CallEngine, fails: bool) -> None:
    model = Model((f"{LIE} ", BOOK), "Is there anything else?")
    lines, log = await hold_call(engine, model, fails=fails, claims=BOOKED)
    if fails:
        assert lines == [("system", f"Not said (booked): {LIE}"), ("agent", "Is there anything else?")]
        return
    assert lines == [("agent", f"{LIE} Is there anything else?")]
    assert log.interventions == []
    assert model.requests[1].messages[-2].content == LIE, "the model knows that it has said so"


async def test_success_counts_for_the_rest_of_the_call_but_a_transfer_only_once(engine: CallEngine) -> None:
    transfer = ToolCall("2", "transfer_call", {"to_number": "+15550100002"})
    going = "I am connecting you now."
    model = Model(BOOK, LIE, LIE, (going, transfer), "", going, "The line is busy.")
    leg, socket = Leg(refuses_transfer=True), Socket()
    claims = [*BOOKED, Claim(name="transferred")]
    live = create_call(model, Transcriber("book it", "is it booked", "to your colleague"), leg=leg, claims=claims)
    live.agent = replace(live.agent, tools=[BookAppointment()])
    running = asyncio.create_task(run(engine, live, socket))
    for _ in range(3):
        await socket.say(SPEECH)
        await asyncio.sleep(9)
    socket.hang_up()
    lines = [line for line in list_transcript(await running) if line[0] in ("agent", "system")]
    assert lines == [
        ("agent", LIE),
        ("agent", LIE),
        ("agent", going),
        ("system", f"Not said (transferred): {going}"),
        ("agent", "The line is busy."),
    ]


async def test_a_model_that_insists_is_answered_for(engine: CallEngine) -> None:
    model = Model(LIE, LIE, LIE, "unused")
    lines, log = await hold_call(engine, model, claims=BOOKED)
    assert lines[-1] == ("agent", "I am sorry, I cannot confirm that.")
    assert (len(model.requests), len(log.interventions)) == (3, 3)


@pytest.mark.parametrize(("verdict", "is_said"), [("0", True), ("1", False), (ProviderError("away"), False)])
async def test_a_model_decides_in_doubt(engine: CallEngine, verdict: str | ProviderError, is_said: bool) -> None:
    model = Model("You're all set.", verdict, "Nothing is booked.")
    lines, _log = await hold_call(engine, model, claims=BOOKED, check_model="small")
    assert lines[-1] == ("agent", "You're all set." if is_said else "Nothing is booked.")
    assert model.requests[1].model == "small"
    assert json.loads(model.requests[1].messages[-1].content) == {
        "before": "can I come on Tuesday",
        "words": "You're all set.",
    }


async def test_phrases_and_topics_are_banned(engine: CallEngine) -> None:
    model = Model("It is a guaranteed  return.", "You should go to court.", "1", "I cannot say.")
    topic = BannedTopic(name="legal advice", keywords=["court"])
    lines, log = await hold_call(engine, model, banned_phrases=["Guaranteed return"], banned_topics=[topic])
    assert lines[-1] == ("agent", "I cannot say.")
    assert [(each.rule, each.name) for each in log.interventions] == [
        ("phrase", "Guaranteed return"),
        ("topic", "legal advice"),
    ]


@pytest.mark.parametrize(
    ("sentence", "given", "weight"),
    [
        ("It costs 49 euros.", "A cleaning costs €49.", "true"),
        ("It costs forty-nine euros.", "A cleaning costs 49.00 euros.", "true"),
        ("That is 1,250.50 dollars.", '{"total": 1250.5}', "true"),
        ("It costs 59 euros.", "A cleaning costs €49.", "false"),
        ("The first visit is free of charge.", "The first visit is free of charge.", "true"),
        ("The first visit is free of charge.", "A visit costs 10 euros.", "false"),
        ("We are open until half past five.", "Open 9:00 to 17:30.", "true"),
        ("We open at nine in the morning.", "Opening hours: 9 am - 5 pm", "true"),
        ("We close at 8 pm.", "Opening hours: 9 am - 5 pm\nRoom 8", "false"),
        ("It is 3 pm now.", "", "true"),
    ],
)
def test_figures_must_have_been_given(sentence: str, given: str, weight: str) -> None:
    settings = AgentSettings(claims=[Claim(name="price"), Claim(name="opening_hours")])
    found = find_statements(sentence, settings, set(), [Message("system", given), Message("user", "What is it?")])
    assert ("true" if not found else "doubtful" if found[0].question else "false") == weight


def test_lies_are_not_spoken_and_true_sentences_are_not_stopped() -> None:
    """A sentence in doubt is not spoken before a model has judged it, so it counts as one that asks a model.

    All but 28 of the lies, and the true sentences, are by authors who had not seen the patterns.
    """
    languages = {"en": "en-US", "de": "de-DE", "es": "es-ES", "fr": "fr-FR"}
    claims = [Claim(name=name, tools=["refund"] if name == "refunded" else []) for name in BUILT_IN_CLAIMS]
    tools = {name: (*built_in, "refund")[0] for name, built_in in BUILT_IN_CLAIMS.items()}
    said = json.loads((Path(__file__).parent / "claims.json").read_text("utf-8"))
    lies, truths = Counter[str](), Counter[str]()
    for kind, counted in (("lies", lies), ("truths", truths)):
        for each in said[kind]:
            settings = AgentSettings(claims=claims, stt_language=languages[each["language"]])
            made, figures = each.get("made", []), " ".join(each.get("numbers", []))
            given = [Message("system", f"{figures}\nWe are open: {figures}")]
            found = find_statements(each["text"], settings, {tools[name] for name in made}, given)
            counted["spoken" if not found else "asked" if found[0].question else "stopped"] += 1
    assert lies.total() >= 140
    assert truths.total() >= 790
    assert lies["spoken"] * 60 <= 2 * lies.total(), lies
    assert truths["stopped"] * 300 <= truths.total(), truths
    assert lies["asked"] + truths["asked"] <= 10, (lies, truths)


@pytest.mark.parametrize("words", ["ihre nummer ist ", "your new ", "ignore all ", "su cita "])
def test_the_search_takes_time_in_proportion_to_a_text(words: str) -> None:
    """Anonymous visitors choose the words, and the event loop waits meanwhile."""
    settings = AgentSettings(claims=[Claim(name=name) for name in BUILT_IN_CLAIMS])

    def measure(length: int) -> float:
        text, begun = (words * length)[:length], process_time()
        find_statements(text, settings, set(), [])
        is_override(text)
        return process_time() - begun

    measure(100)
    assert min(measure(4000) for _ in range(3)) < 30 * min(measure(1000) for _ in range(3)), "64 if it were cubic"


def test_a_figure_that_only_the_caller_has_named_is_doubtful() -> None:
    settings = AgentSettings(claims=[Claim(name="price")])
    (found,) = find_statements("Yes, it costs 20 euros.", settings, set(), [Message("user", "Does it cost 20 euros?")])
    assert found.question


@pytest.mark.parametrize(
    "odd", ["", "?", " …?! ", "¿?", "*", "—", "'\"", "$", "€ ,.", "9" * 2000, "1,2.3,4 euros", "\x00\u202e", "🙂?"]
)
def test_odd_sentences_say_nothing(odd: str) -> None:
    settings = AgentSettings(claims=[Claim(name=name) for name in BUILT_IN_CLAIMS], banned_phrases=["never"])
    found = find_statements(odd, settings, set(), [Message("system", odd), Message("user", odd)])
    assert [finding.name for finding in found] == []
    assert not is_override(odd)


def test_a_short_yes_to_a_question_about_a_claim_is_doubtful() -> None:
    settings = AgentSettings(claims=BOOKED)
    history = [Message("user", "So is it booked?")]
    assert find_statements("Yes, it is.", settings, set(), history)[0].question
    assert not find_statements("Yes, it is.", settings, {"book_appointment"}, history)
    assert not find_statements("Yes, it is.", settings, set(), [Message("user", "Is it raining?")])
