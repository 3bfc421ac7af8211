"""State machines over the real database. Each example has an organization of its own, which is deleted at the end.

The examples of a machine share a runtime: its connections to PostgreSQL take longer than an example's steps.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, TypeVar
from uuid import UUID

import asyncpg
from hypothesis import HealthCheck
from hypothesis import settings as run_settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import configure_providers
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy
from switchboard.runtime import Runtime

Result = TypeVar("Result")


class PlatformMachine(RuleBasedStateMachine):
    """Base of the state machines. No worker runs: the machine itself is worker and carrier, so each step is its
    choice.
    """

    runner: ClassVar[asyncio.Runner]
    runtime: ClassVar[Runtime]
    deleter: ClassVar[asyncpg.Connection]
    policy: ClassVar[Policy] = Policy()

    def __init__(self) -> None:
        super().__init__()
        self.run(self._begin())

    def run(self, steps: Coroutine[None, None, Result]) -> Result:
        """Run a coroutine."""
        return self.runner.run(steps)

    async def _begin(self) -> None:
        async with self.runtime.database.system() as session:
            self.organization_id: UUID = identity.create_organization(session, name="Machine", policy=self.policy).id
        async with self.runtime.database.write(self.organization_id) as session:
            await configure_providers(
                session, self.runtime.registry, self.runtime.keyring, list_embedded_providers(self.runtime.registry)
            )
        await self.begin()

    @classmethod
    async def prepare(cls, _stack: AsyncExitStack) -> dict[str, object]:
        """Open what the examples share beside the runtime; return the settings that it needs."""
        return {}

    async def begin(self) -> None:
        """Create the subject of the machine."""

    async def _end(self) -> None:
        await self.runtime.redis.flushdb()
        await self.deleter.execute("delete from organization where id = $1", self.organization_id)

    def teardown(self) -> None:
        self.run(self._end())


@asynccontextmanager
async def open_parts(machine: type[PlatformMachine], servers: DataDirectory, registry: Registry) -> AsyncIterator[None]:
    """Open the runtime that all examples of a machine share."""
    with TemporaryDirectory() as folder:
        # A Redis database of its own: nobody must see the wake-ups.
        redis = f"{servers.redis_url}?db=7"
        async with AsyncExitStack() as stack:
            settings = Settings(data_dir=Path(folder)).model_copy(update=await machine.prepare(stack))
            machine.runtime = await stack.enter_async_context(
                open_process_runtime(settings, database_url=servers.database_url, redis_url=redis, registry=registry)
            )
            machine.deleter = await asyncpg.connect(servers.database_url)
            yield
            await machine.deleter.close()


def play(
    machine: type[PlatformMachine], servers: DataDirectory, registry: Registry, *, examples: int, steps: int = 25
) -> None:
    """Search for steps after which an invariant does not hold."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    with asyncio.Runner() as machine.runner:
        stack = AsyncExitStack()
        machine.runner.run(stack.enter_async_context(open_parts(machine, servers, registry)))
        try:
            run_state_machine_as_test(
                machine,
                settings=run_settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    deadline=None,
                    suppress_health_check=slow,
                    derandomize=False,
                ),
            )
        finally:
            machine.runner.run(stack.aclose())
