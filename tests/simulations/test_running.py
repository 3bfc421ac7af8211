"""Running simulations without a worker: one at a time, once despite crashes, few at once, and judged by a model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest
import pytest_asyncio
from sqlalchemy import update
from sqlmodel import col, select
from switchboard.foundation.database import now
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import LLMProvider, ProviderError, ProviderSettings
from switchboard.resources.agents import colleagues
from switchboard.resources.agents.models import Simulation
from switchboard.resources.simulations import jobs
from switchboard.resources.simulations import judge as judging
from switchboard.resources.simulations.judge import contains_phrase
from switchboard.resources.simulations.queries import DUE_SIMULATIONS
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.conversation import Model
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at
from tests.fixtures.simulations import run_simulation
from tests.fixtures.work import list_due

SAID: Json = {"type": "said", "text": "yes"}


class Bench:
    """An agent with scripted answers, and its simulations."""

    def __init__(self, runtime: Runtime, caller: Caller, agent_id: str, model: Model) -> None:
        self.runtime, self.caller, self.agent_id, self.model = runtime, caller, agent_id, model

    async def create(self, *assertions: Json) -> str:
        body = {"name": "Test", "lines": ["Hello"], "assertions": assertions or [SAID]}
        response = await self.caller.post(f"/v1/agents/{self.agent_id}/simulations", body)
        assert response.status == 201, response.body
        return str(response.json["id"])

    async def run(self, simulation_id: str) -> Json:
        """Run a simulation as a woken worker does; return it."""
        return await run_simulation(self.runtime, self.caller, self.agent_id, simulation_id)

    async def set(self, simulation_id: str, **values: object) -> None:
        async with self.runtime.database.write(self.caller.organization_id) as session:
            await session.exec(update(Simulation).where(col(Simulation.id) == UUID(simulation_id)).values(**values))

    async def due(self) -> list[str]:
        """List the simulations of this agent that a reconciler finds."""
        return [str(simulation_id) for simulation_id in await list_due(self.runtime, DUE_SIMULATIONS)]

    async def count_completed_events(self) -> int:
        async with self.runtime.database.write(self.caller.organization_id) as session:
            return len((await session.exec(select(Event).where(col(Event.name) == "simulation.completed"))).all())


@pytest_asyncio.fixture
async def bench(runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> Bench:
    model = Model()

    @asynccontextmanager
    async def agent_model(*_: object) -> AsyncIterator[LLMProvider[ProviderSettings]]:
        yield model

    monkeypatch.setattr(colleagues, "open_agent_model", agent_model)
    monkeypatch.setattr(judging, "open_agent_model", agent_model)
    agent = (await caller.post("/v1/agents", {"name": "Agent", "system_prompt": "Be {{mood}}kind."})).json["id"]
    return Bench(runtime, caller, str(agent), model)


async def test_simulations_with_lost_wake_ups_and_workers_are_found_and_published_once(bench: Bench) -> None:
    simulation_id = await bench.create()
    assert await bench.due() == [simulation_id]
    await bench.set(simulation_id, status="running", attempts=1, due_at=now() + jobs.LEASE)
    assert (await bench.run(simulation_id))["status"] == "running"
    assert await bench.due() == []
    await bench.set(simulation_id, due_at=now() - timedelta(seconds=1))
    assert await bench.due() == [simulation_id]
    assert (await bench.run(simulation_id))["status"] == "passed"
    assert (await bench.run(simulation_id))["status"] == "passed"
    assert (await bench.due(), await bench.count_completed_events(), len(bench.model.requests)) == ([], 1, 1)


async def test_a_simulation_that_loses_its_worker_each_time_is_given_up(bench: Bench) -> None:
    simulation_id = await bench.create()
    await bench.set(simulation_id, status="running", attempts=jobs.MAX_ATTEMPTS, due_at=now() - timedelta(seconds=1))
    simulation = await bench.run(simulation_id)
    assert (simulation["status"], simulation["error_message"], await bench.count_completed_events()) == (
        "error",
        jobs.LOST,
        1,
    )


async def test_a_worker_that_lost_its_claim_writes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation_id = await bench.create()
    judge = judging.evaluate_assertions

    async def overtaken(*arguments: object) -> object:
        await bench.set(simulation_id, attempts=2)
        return await judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "evaluate_assertions", overtaken)
    assert ((await bench.run(simulation_id))["status"], await bench.count_completed_events()) == ("running", 0)


async def test_the_transcript_so_far_is_shown_during_a_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation_id = await bench.create()
    judge = judging.evaluate_assertions

    async def when_shown(*arguments: object) -> object:
        path = f"/v1/agents/{bench.agent_id}/simulations/{simulation_id}"
        simulation = (await eventually(lambda: bench.caller.get(path), lambda response: response.json["turns"])).json
        assert (at(simulation, "status"), at(simulation, "transcript", 0)) == (
            "running",
            {"role": "user", "content": "Hello"},
        )
        return await judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "evaluate_assertions", when_shown)
    assert (await bench.run(simulation_id))["status"] == "passed"


async def test_a_few_simulations_run_at_once_and_the_others_wait(bench: Bench) -> None:
    *others, last = [await bench.create() for _ in range(jobs.AT_ONCE + 1)]
    for simulation_id in others:
        await bench.set(simulation_id, status="running", due_at=now() + jobs.LEASE)
    assert (await bench.run(last))["status"] == "queued"
    await bench.set(last, due_at=now())
    await bench.set(others[0], status="passed", due_at=None)
    assert (await bench.run(last))["status"] == "passed"


async def test_deleting_an_agent_deletes_its_simulations(bench: Bench) -> None:
    simulation_id = await bench.create()
    await bench.caller.send("DELETE", f"/v1/agents/{bench.agent_id}")
    assert (await bench.run(simulation_id))["code"] == "not_found"


async def test_a_provider_failure_is_an_error_and_not_a_failed_simulation(bench: Bench) -> None:
    bench.model.answers = [ProviderError("out of order")]
    simulation = await bench.run(await bench.create())
    assert (simulation["status"], simulation["error_message"], simulation["score"], simulation["ended_by"]) == (
        "error",
        "out of order",
        None,
        None,
    )
    assert simulation["transcript"] == [{"role": "user", "content": "Hello"}]


async def test_a_judge_reads_the_transcript_and_states_its_reason(bench: Bench) -> None:
    bench.model.answers = ["Yes, dear.", '{"passed": false, "explanation": "Too familiar."}']
    simulation = await bench.run(
        await bench.create(SAID, {"type": "judge", "question": "Was it formal?", "name": "Formal"})
    )
    assert (simulation["status"], simulation["score"]) == ("failed", 0.5)
    assert at(simulation, "criteria", 1) == {"name": "Formal", "passed": False, "explanation": "Too familiar."}
    system, transcript = bench.model.requests[1].messages
    assert "Was it formal?" in system.content
    assert transcript.content == "user: Hello\nagent: Yes, dear."


@pytest.mark.parametrize(
    ("phrase", "simulation"),
    [
        ("OPEN  from", True),
        ("open * six", True),
        ("six * open", False),
        ("opens", False),
        ("*", True),
        ("open*open", False),
    ],
)
def test_phrases_are_matched(phrase: str, simulation: bool) -> None:
    assert contains_phrase("We are open\nfrom seven to six.", phrase) == simulation
