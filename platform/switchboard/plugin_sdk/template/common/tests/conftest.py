"""Acme on this machine, and the settings for it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from acme_server import create_acme
from acme_vendor import Acme, create_settings
from aiohttp.test_utils import TestServer
from switchboard_acme.client import AcmeSettings


@pytest.fixture
def acme() -> Acme:
    return create_acme()


@pytest_asyncio.fixture
async def server(acme: Acme) -> AsyncIterator[TestServer]:
    async with TestServer(acme.application) as server:
        yield server


@pytest.fixture
def settings(server: TestServer) -> AcmeSettings:
    return create_settings(str(server.make_url("/")))
