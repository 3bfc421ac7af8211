"""The contract of capability `event_watcher`."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from switchboard.plugin_sdk.event_watchers import EventWatcher, PublishedEvent
from switchboard.plugin_sdk.testing.contract import ExtensionContract


class EventWatcherContract(ExtensionContract):
    """Rules of every event watcher. Override `watcher`, and `event` if the watcher needs certain data."""

    @pytest.fixture
    def watcher(self) -> EventWatcher:
        """The watcher under test, with its settings if it has any. Must be overridden."""
        raise NotImplementedError("override the fixture `watcher` of this contract")

    @pytest.fixture
    def extension(self, watcher: EventWatcher) -> EventWatcher:
        return watcher

    @pytest.fixture
    def event(self) -> PublishedEvent:
        """An event that the watcher handles."""
        return PublishedEvent(uuid4(), uuid4(), "call.completed", {}, datetime.now(UTC))

    async def test_it_may_see_an_event_again(self, watcher: EventWatcher, event: PublishedEvent) -> None:
        """Events are delivered at least once. If this fails, use `event.id` to act once."""
        await watcher.watch(event)
        await watcher.watch(event)

    async def test_it_ignores_events_that_it_does_not_know(self, watcher: EventWatcher) -> None:
        """A watcher receives every event, those of later versions, too. If this fails, compare `event.name` first."""
        await watcher.watch(PublishedEvent(uuid4(), uuid4(), "weather.changed", {}, datetime.now(UTC)))
