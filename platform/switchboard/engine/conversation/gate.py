"""The gate that each sentence of an agent's model passes before it is spoken or sent."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.claims import (
    FIGURES,
    MOMENTARY,
    Finding,
    find_statements,
    get_sentence,
    list_true,
)
from switchboard.engine.conversation.judge import find_yes
from switchboard.engine.conversation.sentences import split_sentences
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import JsonObject, LLMProvider, Message, ModelUsage, ProviderSettings

MOST_HELD_BACK: Final = 3
"""Times that one answer is held back. After the last one a fixed sentence is said."""
HELD_BACK: Final = "Not said ({name}): {text}"
NOTES: Final = {
    "claim": "In this conversation no tool has returned success for it. Use the tool, or say what is true.",
    "figure": "The figure stands in nothing that you were given. Look it up, or say that you do not know it.",
    "phrase": "You do not use the phrase {name}. Answer in other words.",
    "topic": "You do not talk about {name}. Say so, and go on with what you are here for.",
}


Recorder: TypeAlias = Callable[[Finding, str], Awaitable[None]]
"""Keeps a sentence that was not said."""


@dataclass(slots=True)
class Gate:
    """Check of what an agent says. `succeeded` are the names of the tools that have returned success in the
    conversation.

    `usage` collects that of the model which is asked in doubt, and `record` keeps what was not said. `notes` is what
    the model was told about it.
    """

    settings: AgentSettings
    llm: LLMProvider[ProviderSettings]
    succeeded: set[str]
    usage: list[ModelUsage]
    record: Recorder | None = None
    notes: list[Message] = field(default_factory=list)
    _before: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether the agent may say anything."""
        settings = self.settings
        return not (settings.claims or settings.banned_phrases or settings.banned_topics)

    @property
    def new_notes(self) -> list[Message]:
        """The notes of this answer."""
        return self.notes[self._before :]

    @property
    def has_given_up(self) -> bool:
        """Return whether this answer was held back so often that the model is not asked again."""
        return len(self.new_notes) >= MOST_HELD_BACK

    def begin(self) -> None:
        """Begin an answer: that the caller was transferred before does not count for it."""
        self._before = len(self.notes)
        for claim in self.settings.claims:
            if claim.name == MOMENTARY:
                self.succeeded.difference_update(list_true(claim, self.succeeded))

    def record_result(self, tool: str, result: JsonObject) -> None:
        """Record what a tool has returned."""
        if "error" not in result:
            self.succeeded.add(tool)

    async def review(self, sentence: str, history: Sequence[Message]) -> Finding | None:
        """Return what a sentence says and must not; None if it may be said. `history` is what the agent was given.

        What a model does not judge in time must not be said.
        """
        if self.is_open:
            return None
        given = [message for message in history if message not in self.notes]
        found = find_statements(sentence, self.settings, self.succeeded, given)
        if not found or not found[0].question:
            return found[0] if found else None
        before = next((message.content for message in reversed(history) if message.role == "user"), "")
        questions = [finding.question for finding in found]
        place = await find_yes(self.llm, self.settings, questions, sentence, before=before, usage=self.usage)
        return found[0] if place is None else found[place] if place >= 0 else None

    async def cut(self, text: str, history: Sequence[Message]) -> tuple[str, list[str], Finding | None]:
        """Return the part of a text that may be said, the sentences after it, and what the first of them says."""
        if not self.is_open:
            sentences, last = split_sentences(text)
            for place, sentence in enumerate(whole := [*sentences, last]):
                if (finding := await self.review(sentence, history)) is not None:
                    return " ".join(whole[:place]), whole[place:], finding
        return text, [], None

    async def hold_back(self, finding: Finding, sentence: str) -> None:
        """Record a sentence that was not said, and write the note for the model."""
        metrics.sentences_held_back.labels(finding.rule).inc()
        quoted, name = (json.dumps(text, ensure_ascii=False) for text in (sentence.strip(), finding.name))
        note = NOTES["figure" if finding.name in FIGURES else finding.rule].format(name=name)
        self.notes.append(
            Message("system", f"You were about to say {quoted}. It was not said, and nothing after it. {note}")
        )
        if self.record is not None:
            await self.record(finding, sentence)

    def get_last_resort(self, finding: Finding) -> str:
        """Return what is said if the model goes on to say what it must not."""
        return get_sentence(self.settings.stt_language, "unsure" if finding.rule == "claim" else "refusal")


def describe(finding: Finding, sentence: str) -> str:
    """Return the line of the transcript for a sentence that was not said."""
    return HELD_BACK.format(name=finding.name, text=sentence.strip())
