"""Acme: a watcher that copies calls. Replace the request with your vendor's."""

from collections.abc import Sequence
from contextlib import aclosing

from switchboard.plugin_sdk import EventWatcher, PublishedEvent, hookimpl

from switchboard_acme.client import AcmeClient, AcmeExtension

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


class CopyCalls(AcmeExtension, EventWatcher):
    """Copies ended calls to Acme."""

    name = "acme_calls"
    title = "Copy calls to Acme"

    async def watch(self, event: PublishedEvent) -> None:
        """Copy the call once, however often the event arrives: its id is the call's id at Acme, too."""
        if event.name != "call.completed":
            return
        async with aclosing(AcmeClient(self.settings)) as client:
            await client.request("PUT", f"/calls/{event.id}", json=event.data)


@hookimpl
def event_watchers() -> Sequence[type[CopyCalls]]:
    return [CopyCalls]
