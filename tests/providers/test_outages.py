"""Providers while the database restarts: a call that begins then waits for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from switchboard.apps.embedded import DataDirectory
from switchboard.engine.providers.conversation import CAPABILITIES, open_conversation_providers
from switchboard.engine.providers.health import ServiceRecord
from switchboard.foundation.database import Database, ReadSession
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.resources.agents.models import Agent
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller


class RestartingDatabase(Database):
    """Database that refuses every other transaction, as one that restarts again and again."""

    refusals = 0
    _refuses = False

    @asynccontextmanager
    async def read(self, organization_id: UUID, *, actor: str | None = None) -> AsyncIterator[ReadSession]:
        self._refuses = not self._refuses
        if self._refuses:
            self.refusals += 1
            raise ConnectionRefusedError("the database system is starting up")
        async with super().read(organization_id, actor=actor) as session:
            yield session


async def test_a_call_that_begins_while_the_database_restarts_gets_its_providers(
    servers: DataDirectory, runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await caller.post("/v1/agents", {"name": "Patient"})
    async with runtime.database.write(caller.organization_id) as session:
        agent = await get_row(session, Agent, UUID(str(created.json["id"])))
    database = RestartingDatabase(servers.database_url)
    monkeypatch.setattr(runtime.providers, "_database", database)
    configurations = await runtime.providers.read_configurations(caller.organization_id, *CAPABILITIES)
    async with (
        runtime.providers.use(caller.organization_id, TelephonyProvider, "loopback") as carrier,
        open_conversation_providers(
            runtime.providers,
            configurations,
            agent.settings,
            carrier=carrier.name,
            record=ServiceRecord(),
            predicts_turns=False,
        ) as providers,
    ):
        assert carrier.name == "loopback"
        assert providers.llm is not None
    assert database.refusals == 2  # the read of the carrier, and the one of the conversation's providers
    await database.close()
