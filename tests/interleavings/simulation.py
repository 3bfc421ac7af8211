"""Seeds, played one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry

from tests.fixtures.virtual_clock import CLOCK
from tests.interleavings.calls import CallStory
from tests.interleavings.deliveries import DeliveryStory
from tests.interleavings.processes import create_owned_task
from tests.interleavings.scheduler import SimulationLoop, Stuck
from tests.interleavings.world import Installation, World, enter_world, open_installation

Story: TypeAlias = type[CallStory | DeliveryStory]
CALL_SHARE: Final = 0.15
"""A story of calls takes five times as long as one of deliveries."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The complaints about a seed, and its trace."""

    seed: int
    complaints: tuple[str, ...]
    trace: tuple[str, ...]
    steps: int

    def __str__(self) -> str:
        return "\n".join((*self.trace, f"seed {self.seed}:", *self.complaints))


@dataclass(frozen=True, slots=True)
class Simulation:
    """The simulation of a test process."""

    loop: SimulationLoop
    installation: Installation

    def play(self, seed: int, story: Story | None = None) -> Outcome:
        """Play the story of a seed, which draws its kind unless it is given."""
        return self.loop.run_until_complete(self._play(seed, story))

    async def _play(self, seed: int, story: Story | None) -> Outcome:
        async with enter_world(self.installation, seed) as world:
            try:
                await (story or draw_kind(world)).draw(world).play()
            except Stuck as error:
                world.complain(str(error))
            return Outcome(seed, tuple(world.complaints), tuple(world.scheduler.trace), world.scheduler.steps)


def draw_kind(world: World) -> Story:
    """Draw the kind of a seed's story."""
    return CallStory if world.create_choices("kind").random() < CALL_SHARE else DeliveryStory


@contextmanager
def open_simulation(servers: DataDirectory, registry: Registry, settings: Settings) -> Iterator[Simulation]:
    """Open the simulation on the database of the tests."""

    async def open_it() -> Installation:
        return await opening.__aenter__()

    loop = SimulationLoop()
    loop.set_task_factory(create_owned_task)
    loop.selector.scheduler.outside = 1
    opening = open_installation(loop, servers.database_url, registry, settings)
    CLOCK.set_virtual(True)
    try:
        yield Simulation(loop, loop.run_until_complete(open_it()))
        loop.run_until_complete(opening.__aexit__(None, None, None))
    finally:
        loop.close()
        CLOCK.set_virtual(False)
        CLOCK.synchronize()
