"""The contract of a watcher, and tests of this plugin's own."""

import pytest
from acme_server import AcmeCalls
from switchboard.plugin_sdk import PublishedEvent
from switchboard.plugin_sdk.testing import EventWatcherContract
from switchboard_acme import CopyCalls
from switchboard_acme.client import AcmeSettings


class TestCopyCalls(EventWatcherContract):
    @pytest.fixture
    def watcher(self, settings: AcmeSettings) -> CopyCalls:
        watcher = CopyCalls()
        watcher.settings = settings
        return watcher

    async def test_a_call_is_copied_once(self, watcher: CopyCalls, event: PublishedEvent, acme: AcmeCalls) -> None:
        await watcher.watch(event)
        await watcher.watch(event)
        assert acme.calls == {str(event.id): event.data}
