"""What only a knowledge base holds, told on the phone and by text."""

import asyncio
from collections.abc import Sequence

import pytest
from switchboard.conversation.knowledge import Question, SearchKnowledge, recalled
from switchboard.phone_numbers.purchase import callback_urls
from switchboard.plugins import KNOWLEDGE, ProviderError, SimulatedCarrier, ToolContext, ToolError

from tests.fixtures.app import UNKNOWN_ID, Caller, Json, LivePlatform

ANSWER = "The dough of our bread rests for thirty six hours before it is baked."
QUESTION = "How long does the bread rest?"
PROMPT = (
    f'When the caller says "{QUESTION}": call search_knowledge(query="{QUESTION}")\nWhen the caller says "goodbye": say "Goodbye." and call end_call'
)


async def teach(live: LivePlatform, prompt: str) -> Json:
    """Give the agent a knowledge base with the answer among other things."""
    base = (await live.caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json
    for filename, content in {"bread.txt": ANSWER, "parking.txt": "Behind the bakery there is room for six cars."}.items():
        added = await live.caller.post(f"/v1/knowledge-bases/{base['id']}/documents", {"filename": filename, "content": content})
        assert added.json["status"] == "ready", added.body
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt, "knowledge_base_ids": [base["id"]]})
    assert changed.json["knowledge_base_ids"] == [base["id"]], changed.body
    return base


async def test_on_the_phone_the_agent_answers_what_only_its_knowledge_base_holds(live: LivePlatform) -> None:
    base = await teach(live, PROMPT)
    await live.ring(QUESTION, "Goodbye")
    call = (await live.caller.get("/v1/calls")).json["items"][0]  # type: ignore[index]
    await live.ended(call["id"])  # type: ignore[index,call-overload]
    lines = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"]  # type: ignore[index,call-overload]
    said = [(line["role"], line["content"]) for line in lines]  # type: ignore[union-attr,index,call-overload]
    assert ("agent", ANSWER) in said
    assert any(role == "tool" and "search_knowledge" in str(content) for role, content in said)
    assert (await live.caller.send("DELETE", f"/v1/knowledge-bases/{base['id']}")).status == 204


async def test_by_text_passages_are_there_before_the_model_asks_for_them(live: LivePlatform) -> None:
    await teach(live, "You answer the phone of a bakery.")
    async with live.runtime.providers.telephony(live.caller.organization_id) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = callback_urls(live.runtime, live.caller.organization_id, "loopback")
        await carrier.simulate_text(from_number="+15550100001", to_number=live.number, body=QUESTION, callbacks=urls)
    async with asyncio.timeout(20):
        while True:
            conversations = (await live.caller.get("/v1/sms/conversations")).json["items"]
            for conversation in conversations:  # type: ignore[union-attr]
                found = (await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")).json["items"]  # type: ignore[index,call-overload]
                if len(found) == 2:  # type: ignore[arg-type]
                    assert found[0]["body"] == ANSWER  # type: ignore[index,call-overload]
                    return
            await asyncio.sleep(0.05)


async def test_an_agent_knows_only_its_organizations_knowledge_bases(caller: Caller, stranger: Caller) -> None:
    theirs = (await stranger.post("/v1/knowledge-bases", {"name": "Theirs"})).json["id"]
    for unknown in (theirs, UNKNOWN_ID, "x"):
        answer = await caller.post("/v1/agents", {"name": "Spy", "knowledge_base_ids": [unknown]})
        assert (answer.status, answer.json["errors"][0]["field"]) == (422, "knowledge_base_ids")  # type: ignore[index,call-overload]


class Shelf:
    """Answers after so long, or not at all."""

    def __init__(self, *passages: str, seconds: float = 0, fails: bool = False) -> None:
        self._passages, self._seconds, self._fails = passages, seconds, fails

    async def passages(self, question: str, *, limit: int) -> Sequence[str]:
        await asyncio.sleep(self._seconds)
        if self._fails:
            raise ProviderError("the vector store is away")
        return self._passages[:limit]


async def test_knowledge_that_is_slow_or_away_keeps_nobody_waiting() -> None:
    assert (await recalled(Shelf("a", "b"), "where is it"))[0].content == f"{KNOWLEDGE}\n\na\n\nb"
    for shelf in (None, Shelf(), Shelf("a", seconds=5), Shelf(fails=True)):
        assert await recalled(shelf, "where is it", seconds=0.01) == ()
    assert await recalled(Shelf("a"), "yes") == ()
    tool, context = SearchKnowledge(Shelf(fails=True)), ToolContext(*[None] * 5)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="the vector store is away"):
        await tool.run(context, Question(query="where is it"))
