"""The simulation that the tests of a process share."""

from collections.abc import Iterator

import pytest
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry

from tests.interleavings.simulation import Simulation, open_simulation


@pytest.fixture(scope="package")
def simulation(servers: DataDirectory, registry: Registry, default_settings: Settings) -> Iterator[Simulation]:
    """The simulation, whose seeds share their connections."""
    with open_simulation(servers, registry, default_settings) as simulation:
        yield simulation
