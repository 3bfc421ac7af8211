"""Seeds, played one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry

from tests.fixtures.virtual_clock import CLOCK
from tests.interleavings.deliveries import DeliveryStory
from tests.interleavings.processes import create_owned_task
from tests.interleavings.scheduler import SimulationLoop, Stuck
from tests.interleavings.world import Installation, World, enter_world, open_installation


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

    def play(self, seed: int) -> Outcome:
        """Play the story of a seed."""
        return self.loop.run_until_complete(self._play(seed))

    async def _play(self, seed: int) -> Outcome:
        async with enter_world(self.installation, seed) as world:
            try:
                await tell_story(world)
            except Stuck as error:
                world.complain(str(error))
        return Outcome(seed, tuple(world.complaints), tuple(world.scheduler.trace), world.scheduler.steps)


async def tell_story(world: World) -> None:
    """Play the story that a seed draws."""
    await DeliveryStory.draw(world).play()


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
