"""The demo organization: it needs no tenant file, and keeps what was changed in the dashboard."""

from pathlib import Path

import pytest
from switchboard.apps.cli.demo import seed
from switchboard.engine.providers.editing import list_providers, remove_provider
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"tenants_dir": tmp_path, "data_dir": tmp_path})


async def test_a_restart_keeps_changed_providers(runtime: Runtime) -> None:
    demo = await seed(runtime)
    async with runtime.database.write(demo.organization_id) as session:
        await remove_provider(session, Capability.VECTOR_STORE, "lancedb")
    assert (await seed(runtime)).facts() == demo.facts()
    async with runtime.database.write(demo.organization_id) as session:
        assert "lancedb" not in [row.name for row in await list_providers(session)]
