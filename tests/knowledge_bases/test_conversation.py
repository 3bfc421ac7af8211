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
from switchboard.resources.simulations.jobs import run_simulation
from switchboard.runtime import Runtime
from switchboard_offline.minilm import MiniLMEmbedding

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, number_at, objects_at

ANSWER = "The dough of our bread rests for thirty six hours before it is baked."
QUESTION = "How long does the bread rest?"
DOCUMENTS = {"bread.txt": ANSWER, "parking.txt": "Behind the bakery there is room for six cars."}
CALLS = 3
"""On a busy machine a search takes so long that the caller says goodbye before the answer."""
PROMPT = (
    f'When the caller says "{QUESTION}": call search_knowledge(query="{QUESTION}")\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)


async def teach(live: LivePlatform, prompt: str) -> Json:
    """Give the agent a knowledge base that contains the answer among other texts."""
    base = (await live.caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json
    for filename, content in DOCUMENTS.items():
        response = await live.caller.post(
            f"/v1/knowledge-bases/{base['id']}/documents", {"filename": filename, "content": content}
        )
        assert response.json["status"] == "ready", response.body
    changed = await live.caller.send(
        "PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt, "knowledge_base_ids": [base["id"]]}
    )
    assert changed.json["knowledge_base_ids"] == [base["id"]], changed.body
    return base


@pytest.fixture
def expensive_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedding provider whose requests cost 0.25 dollars each."""
    embed = MiniLMEmbedding.embed

    async def embed_at_a_cost(
        provider: MiniLMEmbedding, texts: Sequence[str], *, purpose: Literal["document", "query"], **more: str | None
    ) -> Embeddings:
        return replace(await embed(provider, texts, purpose=purpose, **more), cost=0.25)

    monkeypatch.setattr(MiniLMEmbedding, "embed", embed_at_a_cost)


async def get_balance(caller: Caller) -> float:
    amount = (await caller.get("/v1/billing/balance")).json["balance"]
    assert isinstance(amount, int | float)
    return amount


async def ask_on_the_phone(live: LivePlatform) -> list[tuple[object, object]]:
    """Call, check that the call was charged for its embeddings, and return the transcript."""
    before = await get_balance(live.caller)
    await live.simulate_call(QUESTION, "Goodbye")
    call = at((await live.caller.get("/v1/calls")).json, "items", 0)
    finished = await live.wait_for_end(at(call, "id"))
    assert number_at(finished, "costs", "embedding") == number_at(finished, "cost_total") >= 0.5
    assert await get_balance(live.caller) == pytest.approx(before - number_at(finished, "cost_total"))
    lines = (await live.caller.get(f"/v1/calls/{at(call, 'id')}/transcript")).json["items"]
    return [(line["role"], line["content"]) for line in objects_at(lines)]


async def test_on_the_phone_the_agent_answers_from_its_knowledge_base(
    live: LivePlatform, expensive_embedding: None
) -> None:
    base = await teach(live, PROMPT)
    assert await get_balance(live.caller) == -0.25 * len(DOCUMENTS)
    for _ in range(CALLS):
        transcript = await ask_on_the_phone(live)
        assert any(role == "tool" and "search_knowledge" in str(content) for role, content in transcript), transcript
        if ("agent", ANSWER) in transcript:
            break
    else:
        pytest.fail(f"the caller never heard the answer: {transcript}")
    assert (await live.caller.send("DELETE", f"/v1/knowledge-bases/{base['id']}")).status == 204


async def test_passages_precede_the_models_first_answer_by_text_message(live: LivePlatform) -> None:
    await teach(live, "You answer the phone of a bakery.")
    async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = build_callback_urls(live.runtime.settings.base_url, live.caller.organization_id, "loopback")
        await carrier.simulate_text_message(
            from_number="+15550100001", to_number=live.number, body=QUESTION, callbacks=urls
        )
    caller = live.caller
    conversations = await eventually(
        lambda: caller.get("/v1/sms/conversations"), lambda response: response.json["total"] == 1
    )
    path = f"/v1/sms/conversations/{at(conversations.json, 'items', 0, 'id')}/messages"
    messages = await eventually(lambda: caller.get(path), lambda response: response.json["total"] == 2)
    assert at(messages.json, "items", 0, "body") == ANSWER


async def test_embeddings_of_documents_searches_and_simulations_are_charged(
    runtime: Runtime, caller: Caller, expensive_embedding: None
) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json["id"]
    await caller.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "bread.txt", "content": ANSWER})
    assert await get_balance(caller) == -0.25
    response = await caller.post("/v1/knowledge-bases/search", {"query": QUESTION})
    assert len(objects_at(response.json, "items")) == 1
    assert await get_balance(caller) == -0.5
    agent = (
        await caller.post("/v1/agents", {"name": "Agent", "system_prompt": PROMPT, "knowledge_base_ids": [base]})
    ).json["id"]
    body = {"name": "Test", "lines": [QUESTION], "assertions": [{"type": "said", "text": "thirty six hours"}]}
    simulation = (await caller.post(f"/v1/agents/{agent}/simulations", body)).json["id"]
    for _ in range(2):
        ids = {"organization_id": caller.organization_id, "simulation_id": UUID(str(simulation))}
        await runtime.call(run_simulation, **ids)
        assert await get_balance(caller) == -1.0  # one for the recalled passages, one for the tool
    assert (await caller.get("/v1/usage")).json["cost"] == 1.0


async def test_a_prepaid_organization_in_debt_cannot_embed_or_simulate(
    runtime: Runtime, organizations: Organizations, expensive_embedding: None
) -> None:
    caller = await organizations.create(policy=Policy(billing_mode="prepaid"))
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
        response = await caller.post(path, body)
        assert (response.status, response.json["code"]) == (402, "insufficient_balance"), path


async def test_an_agent_searches_only_its_organizations_knowledge_bases(caller: Caller, stranger: Caller) -> None:
    foreign_base = (await stranger.post("/v1/knowledge-bases", {"name": "Theirs"})).json["id"]
    for unknown in (foreign_base, UNKNOWN_ID, "x"):
        response = await caller.post("/v1/agents", {"name": "Spy", "knowledge_base_ids": [unknown]})
        assert (response.status, at(response.json, "errors", 0, "field")) == (422, "knowledge_base_ids")


class SlowKnowledge:
    """Knowledge that answers after a delay, or fails."""

    def __init__(self, *passages: str, seconds: float = 0, fails: bool = False) -> None:
        self._passages, self._seconds, self._fails = passages, seconds, fails

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        await asyncio.sleep(self._seconds)
        if self._fails:
            raise ProviderError("the vector store cannot be reached")
        return self._passages[:limit]


async def test_slow_or_unavailable_knowledge_delays_no_answer() -> None:
    assert (await retrieve_context(SlowKnowledge("a", "b"), "where is it"))[0].content == f"{KNOWLEDGE}\n\na\n\nb"
    for shelf in (None, SlowKnowledge(), SlowKnowledge("a", seconds=5), SlowKnowledge(fails=True)):
        assert await retrieve_context(shelf, "where is it", seconds=0.01) == ()
    assert await retrieve_context(SlowKnowledge("a"), "yes") == ()
    tool, context = SearchKnowledge(SlowKnowledge(fails=True)), ToolContext(*[None] * 5)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="the vector store cannot be reached"):
        await tool.run(context, KnowledgeQuestion(query="where is it"))
