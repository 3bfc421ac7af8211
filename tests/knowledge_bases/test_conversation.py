"""Answers that only a knowledge base holds, on the phone and by text message."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from uuid import UUID

import pytest
from switchboard.engine.conversation.knowledge import KnowledgeQuestion, SearchKnowledge, retrieve_context
from switchboard.plugin_sdk import (
    KNOWLEDGE,
    Embeddings,
    ProviderError,
    SimulatedCarrier,
    TelephonyProvider,
    ToolContext,
    ToolError,
)
from switchboard.resources.identity.policy import Policy
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.simulations import runner
from switchboard.runtime import Runtime
from switchboard_offline.minilm import MiniLMEmbedding

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, number_at, objects_at

ANSWER = "The dough of our bread rests for thirty six hours before it is baked."
QUESTION = "How long does the bread rest?"
DOCUMENTS = {"bread.txt": ANSWER, "parking.txt": "Behind the bakery there is room for six cars."}
PROMPT = (
    f'When the caller says "{QUESTION}": call search_knowledge(query="{QUESTION}")\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)


async def teach(live: LivePlatform, prompt: str) -> Json:
    """Give the agent a knowledge base that contains the answer among other texts."""
    base = (await live.caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json
    for filename, content in DOCUMENTS.items():
        added = await live.caller.post(
            f"/v1/knowledge-bases/{base['id']}/documents", {"filename": filename, "content": content}
        )
        assert added.json["status"] == "ready", added.body
    changed = await live.caller.send(
        "PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt, "knowledge_base_ids": [base["id"]]}
    )
    assert changed.json["knowledge_base_ids"] == [base["id"]], changed.body
    return base


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedding provider whose requests cost 0.25 dollars each."""
    embed = MiniLMEmbedding.embed

    async def asked(
        provider: MiniLMEmbedding, texts: Sequence[str], *, purpose: Literal["document", "query"], **more: str | None
    ) -> Embeddings:
        return replace(await embed(provider, texts, purpose=purpose, **more), cost=0.25)

    monkeypatch.setattr(MiniLMEmbedding, "embed", asked)


async def balance(caller: Caller) -> float:
    found = (await caller.get("/v1/billing/balance")).json["balance"]
    assert isinstance(found, int | float)
    return found


async def test_on_the_phone_the_agent_answers_what_only_its_knowledge_base_holds(
    live: LivePlatform, dear: None
) -> None:
    base = await teach(live, PROMPT)
    await live.ring(QUESTION, "Goodbye")
    call = at((await live.caller.get("/v1/calls")).json, "items", 0)
    ended = await live.ended(at(call, "id"))
    assert number_at(ended, "costs", "embedding") == number_at(ended, "cost_total") >= 0.5
    assert await balance(live.caller) == -0.25 * len(DOCUMENTS) - ended["cost_total"]  # type: ignore[operator]
    lines = (await live.caller.get(f"/v1/calls/{at(call, 'id')}/transcript")).json["items"]
    said = [(line["role"], line["content"]) for line in objects_at(lines)]
    assert ("agent", ANSWER) in said
    assert any(role == "tool" and "search_knowledge" in str(content) for role, content in said)
    assert (await live.caller.send("DELETE", f"/v1/knowledge-bases/{base['id']}")).status == 204


async def test_by_text_passages_are_there_before_the_model_asks_for_them(live: LivePlatform) -> None:
    await teach(live, "You answer the phone of a bakery.")
    async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = build_callback_urls(live.runtime.settings.base_url, live.caller.organization_id, "loopback")
        await carrier.simulate_text_message(
            from_number="+15550100001", to_number=live.number, body=QUESTION, callbacks=urls
        )
    caller = live.caller
    listed = await eventually(lambda: caller.get("/v1/sms/conversations"), lambda found: found.json["total"] == 1)
    path = f"/v1/sms/conversations/{at(listed.json, 'items', 0, 'id')}/messages"
    messages = await eventually(lambda: caller.get(path), lambda found: found.json["total"] == 2)
    assert at(messages.json, "items", 0, "body") == ANSWER


async def test_what_documents_searches_and_simulations_embed_is_charged(
    runtime: Runtime, caller: Caller, dear: None
) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json["id"]
    await caller.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "bread.txt", "content": ANSWER})
    assert await balance(caller) == -0.25
    found = await caller.post("/v1/knowledge-bases/search", {"query": QUESTION})
    assert len(objects_at(found.json, "items")) == 1
    assert await balance(caller) == -0.5
    agent = (
        await caller.post("/v1/agents", {"name": "Agent", "system_prompt": PROMPT, "knowledge_base_ids": [base]})
    ).json["id"]
    body = {"name": "Test", "lines": [QUESTION], "assertions": [{"type": "said", "text": "thirty six hours"}]}
    simulation = (await caller.post(f"/v1/agents/{agent}/simulations", body)).json["id"]
    for _ in range(2):
        await runner.run_claimed_simulation(runtime, caller.organization_id, UUID(str(agent)), UUID(str(simulation)))
        assert await balance(caller) == -1.0  # one for the recalled passages, one for the tool
    assert (await caller.get("/v1/usage")).json["cost"] == 1.0


async def test_who_pays_beforehand_and_owes_embeds_and_simulates_no_more(
    runtime: Runtime, organizations: Organizations, dear: None
) -> None:
    caller = await organizations.make(policy=Policy(billing_mode="prepaid"))
    base, agent = [
        (await caller.post(path, {"name": "Bakery"})).json["id"] for path in ("/v1/knowledge-bases", "/v1/agents")
    ]
    document = {"filename": "bread.txt", "content": ANSWER}
    assert (await caller.post(f"/v1/knowledge-bases/{base}/documents", document)).status == 201, "nothing is owed yet"
    simulation = {"name": "Test", "lines": [QUESTION], "assertions": [{"type": "said", "text": "x"}]}
    for path, body in (
        (f"/v1/knowledge-bases/{base}/documents", document), ("/v1/knowledge-bases/search", {"query": QUESTION}),
        (f"/v1/agents/{agent}/simulations", simulation),
    ):  # fmt: skip
        answer = await caller.post(path, body)
        assert (answer.status, answer.json["code"]) == (402, "insufficient_balance"), path


async def test_an_agent_knows_only_its_organizations_knowledge_bases(caller: Caller, stranger: Caller) -> None:
    theirs = (await stranger.post("/v1/knowledge-bases", {"name": "Theirs"})).json["id"]
    for unknown in (theirs, UNKNOWN_ID, "x"):
        answer = await caller.post("/v1/agents", {"name": "Spy", "knowledge_base_ids": [unknown]})
        assert (answer.status, at(answer.json, "errors", 0, "field")) == (422, "knowledge_base_ids")


class Shelf:
    """Knowledge that answers after a delay, or fails."""

    def __init__(self, *passages: str, seconds: float = 0, fails: bool = False) -> None:
        self._passages, self._seconds, self._fails = passages, seconds, fails

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        await asyncio.sleep(self._seconds)
        if self._fails:
            raise ProviderError("the vector store is away")
        return self._passages[:limit]


async def test_knowledge_that_is_slow_or_away_keeps_nobody_waiting() -> None:
    assert (await retrieve_context(Shelf("a", "b"), "where is it"))[0].content == f"{KNOWLEDGE}\n\na\n\nb"
    for shelf in (None, Shelf(), Shelf("a", seconds=5), Shelf(fails=True)):
        assert await retrieve_context(shelf, "where is it", seconds=0.01) == ()
    assert await retrieve_context(Shelf("a"), "yes") == ()
    tool, context = SearchKnowledge(Shelf(fails=True)), ToolContext(*[None] * 5)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="the vector store is away"):
        await tool.run(context, KnowledgeQuestion(query="where is it"))
